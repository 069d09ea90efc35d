import { type KeyboardEvent, useEffect, useMemo, useRef } from 'react';
import { Icon } from '../design/icons';
import { VisibleText } from '../editor/VisibleText';
import type { Finding } from './findings';
import { colour } from './yaml';

/** YamlEditor is a YAML editor with line numbers, colours and error marks, without a library. */
export function YamlEditor(props: {
  value: string;
  onChange: (v: string) => void;
  errors: Finding[];
  /** What is edited; 'template' by default. */
  what?: string;
}) {
  const area = useRef<HTMLTextAreaElement>(null);
  const leaving = useRef(false);
  const lines = useMemo(() => props.value.split('\n'), [props.value]);
  const wrong = useMemo(() => {
    const marks = new Map<number, string>();
    for (const e of props.errors)
      if (e.line && marks.get(e.line) !== 'bad') marks.set(e.line, e.warning ? 'warned' : 'bad');
    return marks;
  }, [props.errors]);

  const goTo = (line: number, column?: number) => {
    const el = area.current;
    if (!el) return;
    const start = lines.slice(0, line - 1).reduce((n, l) => n + l.length + 1, 0);
    el.focus();
    const text = lines[line - 1] ?? '';
    const at = [...text].slice(0, (column ?? 1) - 1).join('').length;
    const word = column ? (/^[\w.]+/.exec(text.slice(at))?.[0].length ?? 1) : text.length;
    el.setSelectionRange(start + at, start + Math.min(at + word, text.length));
    el.closest('.yaml')?.scrollTo({ top: (line - 4) * 20 });
  };

  const insert = (text: string) => {
    const el = area.current!;
    // The browser's own insertion keeps undo working.
    if (!document.execCommand('insertText', false, text)) {
      el.setRangeText(text, el.selectionStart, el.selectionEnd, 'end');
      props.onChange(el.value);
    }
  };

  const key = (e: KeyboardEvent<HTMLTextAreaElement>) => {
    if (e.key === 'Escape') leaving.current = true;
    else if (e.key === 'Tab' && !e.shiftKey && !leaving.current) {
      e.preventDefault();
      insert('  ');
    } else if (e.key === 'Enter' && !e.metaKey && !e.ctrlKey) {
      const before = e.currentTarget.value.slice(0, e.currentTarget.selectionStart);
      const line = before.slice(before.lastIndexOf('\n') + 1);
      const indent = /^\s*/.exec(line)![0] + (/:\s*$/.test(line) ? '  ' : '');
      if (indent) {
        e.preventDefault();
        insert(`\n${indent}`);
      }
    } else if (e.key !== 'Shift') leaving.current = false;
  };

  useEffect(() => {
    leaving.current = false;
  }, []);

  return (
    <div className="stack tightly">
      <div className="yaml">
        <div className="yaml-gutter" aria-hidden="true">
          {lines.map((_, i) => (
            <div key={i} className={wrong.get(i + 1) ?? ''}>
              {i + 1}
            </div>
          ))}
        </div>
        <div className="yaml-text">
          <pre aria-hidden="true">
            {lines.map((l, i) => (
              <div key={i} className={wrong.get(i + 1) ?? ''}>
                {colour(l).map((p, k) =>
                  p.kind ? (
                    <span key={k} className={`y-${p.kind}`}>
                      <VisibleText text={p.text} />
                    </span>
                  ) : (
                    <VisibleText key={k} text={p.text} />
                  ),
                )}
              </div>
            ))}
          </pre>
          <textarea
            ref={area}
            value={props.value}
            aria-label={`${props.what ?? 'Template'} as YAML. Press Escape, then Tab, to leave the editor.`}
            aria-invalid={props.errors.some((e) => !e.warning)}
            spellCheck={false}
            autoCapitalize="off"
            autoCorrect="off"
            wrap="off"
            onChange={(e) => props.onChange(e.target.value)}
            onKeyDown={key}
          />
        </div>
      </div>
      {props.errors.length > 0 && (
        <ul className="yaml-errors" aria-label="Errors">
          {props.errors.map((e) => (
            <li key={e.field + e.message}>
              <button
                type="button"
                className={e.warning ? 'warned' : ''}
                onClick={() => e.line && goTo(e.line, e.column)}
                disabled={!e.line}
              >
                <Icon name={e.warning ? 'warn' : 'alert'} size={14} />
                {e.line ? (
                  <span className="muted nowrap">
                    line {e.line}
                    {e.column ? `, column ${e.column}` : ''}
                  </span>
                ) : null}
                <code>{e.field}</code>
                <span>
                  {e.message}
                  {e.hint && <span className="muted"> · {e.hint}</span>}
                </span>
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
