import { type FormEvent, useId, useState } from 'react';
import { Link } from 'wouter';
import { Icon } from '../design/icons';

/** Reads what was typed as a tag: key:value, with or without spaces around them; null when it is none. */
export function tagFrom(text: string): string | null {
  const i = text.indexOf(':');
  if (i < 1) return null;
  const key = text.slice(0, i).trim();
  const value = text.slice(i + 1).trim();
  return key && value ? `${key}:${value}` : null;
}

/** The address of all runs that carry a tag. */
export function tagAddress(key: string, value: string): string {
  return `/history?${new URLSearchParams({ tag: `${key}:${value}` })}`;
}

/** A run's tags; each leads to all runs that carry it. */
export function Tags({ tags, most = 8 }: { tags: Record<string, string> | null | undefined; most?: number }) {
  const list = Object.entries(tags ?? {});
  if (list.length === 0) return null;
  return (
    <span className="run-tags">
      {list.slice(0, most).map(([k, v]) => (
        <Link key={k} href={tagAddress(k, v)} className="tag" title={`All runs with ${k}: ${v}`}>
          {k}: {v}
        </Link>
      ))}
      {list.length > most && (
        <span
          className="tag"
          title={list
            .slice(most)
            .map(([k, v]) => `${k}: ${v}`)
            .join(', ')}
        >
          +{list.length - most}
        </span>
      )}
    </span>
  );
}

/** Narrows a list to runs that carry all the tags named. */
export function TagFilter(props: { tags: string[]; known: string[]; onChange: (tags: string[]) => void }) {
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
            if (!('inputType' in e.nativeEvent) && props.known.includes(e.target.value)) add(e.target.value);
          }}
        />
        <datalist id={`${id}-known`}>
          {props.known.map((t) => (
            <option key={t} value={t} />
          ))}
        </datalist>
        {wrong && (
          <span id={`${id}-wrong`} className="problem" role="alert">
            Write it as name:value, then press Enter.
          </span>
        )}
      </form>
    </>
  );
}
