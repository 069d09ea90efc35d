import { type FormEvent, useId, useState } from 'react';
import { Link } from 'wouter';
import { Icon } from '../design/icons';

/** tagFrom parses key:value, with optional spaces; null when invalid. */
export function tagFrom(text: string): string | null {
  const i = text.indexOf(':');
  if (i < 1) return null;
  const key = text.slice(0, i).trim();
  const value = text.slice(i + 1).trim();
  return key && value ? `${key}:${value}` : null;
}

/** tagAddress links to all runs with a tag. */
export function tagAddress(key: string, value: string): string {
  return `/history?${new URLSearchParams({ tag: `${key}:${value}` })}`;
}

/** Tags shows a run's tags; each links to all runs that have it. */
export function Tags({ tags, limit = 8 }: { tags: Record<string, string> | null | undefined; limit?: number }) {
  const list = Object.entries(tags ?? {});
  if (list.length === 0) return null;
  return (
    <span className="run-tags">
      {list.slice(0, limit).map(([k, v]) => (
        <Link key={k} href={tagAddress(k, v)} className="tag" title={`All runs with ${k}: ${v}`}>
          {k}: {v}
        </Link>
      ))}
      {list.length > limit && (
        <span
          className="tag"
          title={list
            .slice(limit)
            .map(([k, v]) => `${k}: ${v}`)
            .join(', ')}
        >
          +{list.length - limit}
        </span>
      )}
    </span>
  );
}

/** TagFilter filters a list by tags; a run must have all of them. */
export function TagFilter(props: { tags: string[]; suggestions: string[]; onChange: (tags: string[]) => void }) {
  const [text, setText] = useState('');
  const [wrong, setWrong] = useState(false);
  const id = useId();
  const add = (raw: string) => {
    const tag = tagFrom(raw);
    setWrong(tag === null);
    if (tag === null) return;
    setText('');
    if (!props.tags.includes(tag)) props.onChange([...props.tags, tag]);
  };
  const submit = (e: FormEvent) => {
    e.preventDefault();
    if (text.trim()) add(text);
  };
  return (
    <>
      {props.tags.map((t) => (
        <span key={t} className="chip removable">
          <span className="clip">{t.replace(':', ': ')}</span>
          <button
            type="button"
            aria-label={`Remove the filter ${t}`}
            onClick={() => props.onChange(props.tags.filter((x) => x !== t))}
          >
            <Icon name="close" size={12} />
          </button>
        </span>
      ))}
      <form onSubmit={submit}>
        <input
          className="input tag-filter"
          aria-label="Filter by tag, as name:value"
          aria-invalid={wrong || undefined}
          aria-describedby={wrong ? `${id}-wrong` : undefined}
          list={`${id}-known`}
          placeholder="Tag, as name:value"
          value={text}
          maxLength={200}
          onChange={(e) => {
            setWrong(false);
            setText(e.target.value);
            // A choice from the list arrives whole; typing arrives letter by letter.
            if (!('inputType' in e.nativeEvent) && props.suggestions.includes(e.target.value)) add(e.target.value);
          }}
        />
        <datalist id={`${id}-known`}>
          {props.suggestions.map((t) => (
            <option key={t} value={t} />
          ))}
        </datalist>
        {wrong && (
          <span id={`${id}-wrong`} className="problem" role="alert">
            Use the form name:value, then press Enter.
          </span>
        )}
      </form>
    </>
  );
}
