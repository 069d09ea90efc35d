import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { api, asProblem } from '../api/client';
import { usePlugins } from '../api/queries';
import type { Sketch } from '../api/types';
import { meant } from '../plugins/refs';
import { body, type Draft, edit } from './draft';
import { type Finding, inOrder, lineOf, moved } from './findings';
import { strangeLines } from './feedLines';
import { useBarred, useUnknownTables } from './relations';
import { tablesOf } from './resets';
import { check, get, type Schema, shownAs } from './schema';
import { unseenTexts, withoutUnseen } from './unseen';
import { writeYaml } from './yaml';

export interface Editing {
  draft: Draft;
  /** What is wrong, in the order of the lines of the text as it is now. */
  errors: Finding[];
  /** idle: what is shown is checked; checking: an answer is awaited; unreachable: the server did not answer. */
  state: 'idle' | 'checking' | 'unreachable';
  /** Reports whether the form can show the document: not while the text does not parse. */
  formable: boolean;
  dirty: boolean;
  touched: ReadonlySet<string>;
  /** Changes the document where the control at path does more than setting its field. */
  change: (path: string, next: (config: Sketch) => Sketch) => void;
  setField: (path: string, value: unknown) => void;
  setSource: (s: string) => void;
  /** Makes the text stand for the document; called when the text is about to be shown. */
  showText: () => void;
  /** Whether a text has characters that nobody sees, and what takes them out. */
  unseen: boolean;
  removeUnseen: () => void;
  reset: (d: Draft) => void;
}

function draftKey(id: string): string {
  return `loadstone.draft.${id}`;
}

/** What was typed and not saved before the page was left. */
export function savedDraft(id: string): Draft | null {
  try {
    const text = sessionStorage.getItem(draftKey(id));
    return text ? (JSON.parse(text) as Draft) : null;
  } catch {
    return null;
  }
}

export function dropDraft(id: string): void {
  try {
    sessionStorage.removeItem(draftKey(id));
  } catch {
    // Nothing was kept then.
  }
}

/**
 * Keeps form and text of a template in step. Whichever was edited is sent to
 * the server after a short rest; its answer becomes the other one.
 */
export function useDraft(id: string, initial: Draft): Editing {
  const [draft, setDraft] = useState<Draft>(initial);
  const [found, setFound] = useState<Found>({ list: [], text: null, of: null });
  const [state, setState] = useState<Editing['state']>('idle');
  const [textValid, setTextValid] = useState(true);
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set());
  const asked = useRef(0);
  const plugins = usePlugins();

  const revision = useRef(0);
  useEffect(() => {
    const mine = ++asked.current;
    setState('checking');
    const abort = new AbortController();
    const ask = async () => {
      try {
        const v = await api.post('/api/templates/validate', {
          body: body(draft),
          signal: abort.signal,
          asStored: true,
        });
        if (asked.current !== mine) return;
        setFound({
          list: [...(v.errors ?? []), ...v.warnings.map((w) => ({ ...w, warning: true as const }))],
          text: draft.edited === 'yaml' ? draft.source : null,
          of: subject(draft),
        });
        setState('idle');
        if (draft.edited === 'yaml') setTextValid(v.config !== null);
        setDraft((d) => {
          if (draft.edited === 'yaml') return v.config ? { ...d, config: v.config } : d;
          return v.source
            ? { ...d, source: draft.edited === null && d.source ? d.source : v.source }
            : { ...d, source: d.edited === null ? d.source : '' };
        });
      } catch (err) {
        if (asked.current !== mine || abort.signal.aborted) return;
        const p = asProblem(err);
        setFound({ list: p.fields, text: null, of: subject(draft) });
        setState(p.status === 0 || p.status >= 500 ? 'unreachable' : 'idle');
      }
    };
    const timer = setTimeout(() => void ask(), revision.current === 0 ? 0 : 350);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
    // Only what was edited is checked, not what the answer filled in.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [subject(draft), draft.edited]);

  const dirty = draft.edited !== null;
  useEffect(() => {
    if (!dirty) return;
    try {
      // A spelled-out address may hold a password: such a draft is not kept.
      const inline = typeof draft.config.target?.connection === 'object' || /\bdsn\s*:/.test(draft.source);
      if (inline) sessionStorage.removeItem(draftKey(id));
      else sessionStorage.setItem(draftKey(id), JSON.stringify(draft));
    } catch {
      // Full or forbidden storage: the draft then lives as long as the page.
    }
    const warn = (e: BeforeUnloadEvent) => e.preventDefault();
    addEventListener('beforeunload', warn);
    return () => removeEventListener('beforeunload', warn);
  }, [id, draft, dirty]);

  const change = useCallback((path: string, next: (config: Sketch) => Sketch) => {
    revision.current++;
    setTouched((t) => new Set(t).add(path));
    setTextValid(true);
    setDraft((d) => ({ ...d, config: next(d.config), edited: 'form' }));
  }, []);
  const setField = useCallback(
    (path: string, value: unknown) => change(path, (config) => edit(config, path, value)),
    [change],
  );

  const setSource = useCallback((source: string) => {
    revision.current++;
    setDraft((d) => ({ ...d, source, edited: 'yaml' }));
  }, []);

  const showText = useCallback(() => {
    setDraft((d) =>
      d.edited === 'form' && d.source === '' ? { ...d, source: writeYaml(d.config), edited: 'yaml' } : d,
    );
  }, []);

  const removeUnseen = useCallback(() => {
    revision.current++;
    setTextValid(true);
    setDraft((d) => {
      const source = withoutUnseen(d.source);
      // They may be written as escapes, which the text itself does not show.
      return source !== d.source && d.edited !== 'form'
        ? { ...d, source, edited: 'yaml' }
        : { ...d, config: withoutUnseen(d.config), edited: 'form' };
    });
  }, []);

  const reset = useCallback((d: Draft) => {
    revision.current = 0;
    setTextValid(true);
    setTouched(new Set());
    setDraft(d);
  }, []);

  // The server's check of a template does not ask the plugin; its schema is checked here.
  const own = useMemo(() => paramErrors(draft.config, plugins.data), [draft.config, plugins.data]);
  const tables = tablesOf(plugins.data, shownAs(get(draft.config, 'workload.plugin')));
  const unknown = useUnknownTables(draft.config, tables.several);
  const closed = useBarred(draft.config);
  const [feed, statements] = [get(draft.config, 'workload.feed'), get(draft.config, 'workload.params.statements')];
  const strange = useMemo(() => strangeLines(feed, statements), [feed, statements]);
  const odd = useMemo(() => unseenTexts(draft.config), [draft.config]);
  const errors = useMemo(() => {
    const here = [...own, ...closed, ...unknown, ...strange, ...odd].filter(
      (e) => !found.list.some((f) => f.field === e.field),
    );
    return inOrder([...placed(found, draft.source), ...located(here, draft.source)]);
  }, [found, own, closed, unknown, strange, odd, draft.source]);

  // Between a key and the request that follows it, too, what is known is about what stood there before.
  const now = state === 'idle' && found.of !== subject(draft) ? 'checking' : state;
  return {
    draft,
    errors,
    state: now,
    formable: textValid,
    dirty,
    touched,
    change,
    setField,
    setSource,
    showText,
    unseen: odd.length > 0,
    removeUnseen,
    reset,
  };
}

type PluginList = ReturnType<typeof usePlugins>['data'];

function paramErrors(config: Sketch, plugins: PluginList): Finding[] {
  const name = shownAs(get(config, 'workload.plugin'));
  const schema = meant(plugins, 'workload', name)?.manifest.parameters as Schema | undefined;
  return schema ? check(get(config, 'workload.params'), schema, 'workload.params') : [];
}

/** What a check found, and the text that it read; null when it read the form's document, which has no lines. */
interface Found {
  list: Finding[];
  text: string | null;
  /** What was checked, see subject. */
  of: unknown;
}

/** What of a draft is checked: the text or the document, whichever was edited. */
const subject = (d: Draft): unknown => (d.edited === 'yaml' ? d.source : d.config);

function placed(found: Found, source: string): Finding[] {
  return found.text === null ? located(found.list, source) : moved(found.list, found.text, source);
}

function located(list: Finding[], source: string): Finding[] {
  return list.map((e) => ({ ...e, line: lineOf(source, e.field), column: undefined }));
}
