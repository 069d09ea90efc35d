import { type KeyboardEvent, useEffect, useId, useMemo, useRef, useState } from 'react';
import type { FieldError } from '../api/types';
import { Icon } from '../design/icons';
import { VisibleText } from './VisibleText';
import './editor.css';

const lineHeight = 20;

/** Piece is a span of text in one colour: key, string, number, comment or none. */
export interface Piece {
  text: string;
  kind: string;
}

export interface Completion {
  /** Replaces the word. */
  text: string;
  label: string;
  detail: string;
}

/** CompletionList is the offered completions and where the replaced word begins. */
export interface CompletionList {
  from: number;
  offers: Completion[];
}

/** Language is what the editor knows of a language. */
export interface Language {
  /** Completes "Control and space offers" for screen readers. */
  completionHelp: string;
  /** Splits a text into lines of coloured pieces; joined, they equal the text. */
  colour: (text: string) => Piece[][];
  /** Completions at the caret, possibly fetched; explicit means that the user asked, not just typed. */
  complete: (text: string, caret: number, explicit: boolean) => CompletionList | Promise<CompletionList>;
}

const keyboardHelp = (l: Language) =>
  `Control and space offers ${l.completionHelp}; Escape, then Tab, leaves the editor.`;

interface Props {
  label: string;
  value: string;
  onChange: (v: string) => void;
  language: Language;
  errors?: FieldError[];
  /** Ctrl+Enter or ⌘+Enter. */
  onRun?: () => void;
  readOnly?: boolean;
}

interface Menu extends CompletionList {
  chosen: number;
  line: number;
  column: number;
}

/** Editor is a text editor with line numbers, colours, completion and error marks. */
export function Editor(props: Props) {
  const { language } = props;
  const area = useRef<HTMLTextAreaElement>(null);
  const scroll = useRef<HTMLDivElement>(null);
  const leaving = useRef(false);
  const id = useId();
  const [menu, setMenu] = useState<Menu | null>(null);
  const lines = useMemo(() => language.colour(props.value), [language, props.value]);
  const errors = props.errors ?? [];
  const wrong = useMemo(
    () => new Map((props.errors ?? []).filter((e) => e.line).map((e) => [e.line!, e])),
    [props.errors],
  );

  const place = (line: number, column: number) => {
    const el = area.current;
    if (!el) return;
    const start = props.value
      .split('\n')
      .slice(0, line - 1)
      .reduce((n, l) => n + l.length + 1, 0);
    el.focus();
    el.setSelectionRange(start + column - 1, start + column - 1);
    scroll.current?.scrollTo({ top: (line - 4) * lineHeight });
  };

  /** insert uses the browser's own insertion, so that undo works. */
  const insert = (text: string, from?: number) => {
    const el = area.current!;
    if (from !== undefined) el.setSelectionRange(from, el.selectionEnd);
    if (!document.execCommand('insertText', false, text)) {
      el.setRangeText(text, el.selectionStart, el.selectionEnd, 'end');
      props.onChange(el.value);
    }
  };

  const show = (found: CompletionList) => {
    if (found.offers.length === 0) return setMenu(null);
    const above = area.current!.value.slice(0, found.from).split('\n');
    setMenu({ ...found, chosen: 0, line: above.length, column: above.at(-1)!.length });
  };

  const openMenu = (explicit: boolean) => {
    const el = area.current;
    if (!el || props.readOnly || el.selectionStart !== el.selectionEnd) return setMenu(null);
    const [text, caret] = [el.value, el.selectionEnd];
    const found = language.complete(text, caret, explicit);
    if (!(found instanceof Promise)) return show(found);
    setMenu(null);
    const isUnchanged = () => area.current?.value === text && area.current.selectionEnd === caret;
    void found.then((f) => isUnchanged() && document.activeElement === area.current && show(f)).catch(() => {});
  };

  const accept = (o: Completion) => {
    insert(o.text, menu!.from);
    setMenu(null);
  };

  const key = (e: KeyboardEvent<HTMLTextAreaElement>) => {
    const run = e.key === 'Enter' && (e.metaKey || e.ctrlKey);
    if (run) {
      e.preventDefault();
      setMenu(null);
      props.onRun?.();
      return;
    }
    if (e.key === ' ' && e.ctrlKey) {
      e.preventDefault();
      openMenu(true);
      return;
    }
    if (menu) {
      const step = e.key === 'ArrowDown' ? 1 : e.key === 'ArrowUp' ? -1 : 0;
      if (step) {
        e.preventDefault();
        setMenu({ ...menu, chosen: (menu.chosen + step + menu.offers.length) % menu.offers.length });
        return;
      }
      if (e.key === 'Enter' || e.key === 'Tab') {
        e.preventDefault();
        accept(menu.offers[menu.chosen]!);
        return;
      }
      if (e.key === 'Escape') {
        e.preventDefault();
        e.stopPropagation();
        setMenu(null);
        return;
      }
      if (/^(?:Arrow|Home|End|Page)/.test(e.key)) setMenu(null);
    }
    if (e.key === 'Escape') leaving.current = true;
    else if (e.key === 'Tab' && !e.shiftKey && !leaving.current && !props.readOnly) {
      e.preventDefault();
      insert('  ');
    } else if (e.key === 'Enter') {
      const before = e.currentTarget.value.slice(0, e.currentTarget.selectionStart);
      const indent = /^[ \t]*/.exec(before.slice(before.lastIndexOf('\n') + 1))![0];
      if (indent) {
        e.preventDefault();
        insert(`\n${indent}`);
      }
    } else if (e.key !== 'Shift') leaving.current = false;
  };

  const chosen = useRef<HTMLLIElement>(null);
  useEffect(() => {
    chosen.current?.scrollIntoView?.({ block: 'nearest' });
  }, [menu]);

  return (
    <div className="stack tightly editor">
      <div className="editor-frame">
        <div className="editor-scroll" ref={scroll} onScroll={() => setMenu(null)}>
          <div className="editor-gutter" aria-hidden="true">
            {lines.map((_, i) => (
              <div key={i} className={wrong.has(i + 1) ? 'bad' : ''}>
                {i + 1}
              </div>
            ))}
          </div>
          <div className="editor-text">
            <pre aria-hidden="true">
              {lines.map((l, i) => (
                <div key={i} className={wrong.has(i + 1) ? 'bad' : ''}>
                  {l.map((p, k) =>
                    p.kind ? (
                      <span key={k} className={`q-${p.kind}`}>
                        <VisibleText text={p.text} />
                      </span>
                    ) : (
                      <VisibleText key={k} text={p.text} />
                    ),
                  )}
                  {wrong.get(i + 1)?.column ? (
                    <i className="editor-mark" style={{ left: `calc(14px + ${wrong.get(i + 1)!.column! - 1}ch)` }} />
                  ) : null}
                </div>
              ))}
            </pre>
            <textarea
              ref={area}
              value={props.value}
              aria-label={`${props.label}. ${keyboardHelp(language)}`}
              aria-invalid={errors.length > 0}
              aria-autocomplete="list"
              aria-controls={menu ? id : undefined}
              aria-activedescendant={menu ? `${id}-${menu.chosen}` : undefined}
              readOnly={props.readOnly}
              spellCheck={false}
              autoCapitalize="off"
              autoCorrect="off"
              autoComplete="off"
              wrap="off"
              onChange={(e) => {
                props.onChange(e.target.value);
                openMenu(false);
              }}
              onKeyDown={key}
              onBlur={() => setMenu(null)}
            />
          </div>
        </div>
        {menu && (
          <ul
            id={id}
            className="editor-menu"
            role="listbox"
            aria-label="Completions"
            style={{
              top: 13 + menu.line * lineHeight - (scroll.current?.scrollTop ?? 0),
              left: `calc(min(66px + ${menu.column}ch - ${scroll.current?.scrollLeft ?? 0}px, 100% - 220px))`,
            }}
          >
            {menu.offers.map((o, i) => (
              <li
                key={o.text + o.detail}
                id={`${id}-${i}`}
                ref={i === menu.chosen ? chosen : undefined}
                role="option"
                aria-selected={i === menu.chosen}
                onPointerDown={(e) => {
                  e.preventDefault();
                  accept(o);
                }}
              >
                <span>{o.label}</span>
                <span className="muted">{o.detail}</span>
              </li>
            ))}
          </ul>
        )}
      </div>
      {errors.length > 0 && (
        <ul className="editor-errors" aria-label="Errors">
          {errors.map((e) => (
            <li key={e.field + e.message}>
              <button type="button" disabled={!e.line} onClick={() => e.line && place(e.line, e.column ?? 1)}>
                <Icon name="alert" size={14} />
                {e.line ? (
                  <span className="muted nowrap">
                    line {e.line}
                    {e.column ? `, column ${e.column}` : ''}
                  </span>
                ) : null}
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
