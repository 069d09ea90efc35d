import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { api, asProblem } from '../api/client';
import { usePlugins } from '../api/queries';
import type { ScenarioDraft } from '../api/types';
import { findPlugin } from '../plugins/refs';
import { type Draft, draftBody, edit } from './draft';
import { type Finding, lineOf, moveFindings, sortByLine } from './findings';
import { unknownStatementFindings } from './feedLines';
import { useForbiddenConnections, useUnknownTables } from './relations';
import { tablesOf } from './resets';
import { check, get, type Schema, shownAs } from './schema';
import { hiddenCharacterWarnings, removeHiddenCharacters } from './hiddenCharacters';
import { writeYaml } from './yaml';

interface Editing {
  draft: Draft;
  /** Errors in line order of the current text. */
  errors: Finding[];
  /** idle: the content is checked; checking: a check is pending; unreachable: the server did not answer. */
  state: 'idle' | 'checking' | 'unreachable';
  /** Whether the form can show the document: not while the text does not parse. */
  formable: boolean;
  dirty: boolean;
  touched: ReadonlySet<string>;
  /** Changes the document when the control at path does more than setting its field. */
  change: (path: string, next: (config: ScenarioDraft) => ScenarioDraft) => void;
  setField: (path: string, value: unknown) => void;
  setSource: (s: string) => void;
  /** Fills in the text of the document where there is none; call it before showing the text. */
  showText: () => void;
  /** Whether a text has hidden characters, and a function that removes them. */
  hasHiddenCharacters: boolean;
  removeUnseen: () => void;
  reset: (d: Draft) => void;
}

function draftKey(id: string): string {
  return `loadstone.draft.${id}`;
}

/** savedDraft restores unsaved input of an earlier visit. */
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
    // Without storage nothing was saved.
  }
}

/**
 * useDraft keeps form and text in sync. The edited one is sent to the server after a pause; the response updates the
 * other.
 */
export function useDraft(id: string, initial: Draft): Editing {
  const [draft, setDraft] = useState<Draft>(initial);
  const [found, setFound] = useState<CheckedFindings>({ list: [], text: null, of: null });
  const [state, setState] = useState<Editing['state']>('idle');
  const [textValid, setTextValid] = useState(true);
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set());
  const requestCount = useRef(0);
  const plugins = usePlugins();

  const revision = useRef(0);
  useEffect(() => {
    const request = ++requestCount.current;
    setState('checking');
    const abort = new AbortController();
    const ask = async () => {
      try {
        const v = await api.post('/api/templates/validate', {
          body: draftBody(draft),
          signal: abort.signal,
          asStored: true,
        });
        if (requestCount.current !== request) return;
        setFound({
          list: [...(v.errors ?? []), ...v.warnings.map((w) => ({ ...w, warning: true as const }))],
          text: draft.edited === 'yaml' ? draft.source : null,
          of: checkedContent(draft),
        });
        setState('idle');
        if (draft.edited === 'yaml') setTextValid(v.config !== null);
        setDraft((d) => {
          if (draft.edited === 'yaml') return v.config ? { ...d, config: v.config } : d;
          return v.source ? { ...d, source: d.edited === null && d.source ? d.source : v.source } : d;
        });
      } catch (err) {
        if (requestCount.current !== request || abort.signal.aborted) return;
        const p = asProblem(err);
        setFound({ list: p.fields, text: null, of: checkedContent(draft) });
        setState(p.status === 0 || p.status >= 500 ? 'unreachable' : 'idle');
      }
    };
    const timer = setTimeout(() => void ask(), revision.current === 0 ? 0 : 350);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
    // Only edits are checked, not updates from responses.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [checkedContent(draft), draft.edited]);

  const dirty = draft.edited !== null;
  useEffect(() => {
    if (!dirty) return;
    try {
      // An inline address may hold a password: such a draft is not stored.
      const inline = typeof draft.config.target?.connection === 'object' || /\bdsn\s*:/.test(draft.source);
      if (inline) sessionStorage.removeItem(draftKey(id));
      else sessionStorage.setItem(draftKey(id), JSON.stringify(draft));
    } catch {
      // Storage is full or blocked: the draft lives as long as the page.
    }
    const warn = (e: BeforeUnloadEvent) => e.preventDefault();
    addEventListener('beforeunload', warn);
    return () => removeEventListener('beforeunload', warn);
  }, [id, draft, dirty]);

  const change = useCallback((path: string, next: (config: ScenarioDraft) => ScenarioDraft) => {
    revision.current++;
    setTouched((t) => new Set(t).add(path));
    setTextValid(true);
    // The text of the document before this change must not be shown or edited any more.
    setDraft((d) => ({ ...d, config: next(d.config), source: '', edited: 'form' }));
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
    setDraft((d) => {
      if (d.source !== '' || d.edited === 'yaml') return d;
      return { ...d, source: writeYaml(d.config) };
    });
  }, []);

  const removeUnseen = useCallback(() => {
    revision.current++;
    setTextValid(true);
    setDraft((d) => {
      const source = removeHiddenCharacters(d.source);
      // The text may have them as escapes.
      return source !== d.source && d.edited !== 'form'
        ? { ...d, source, edited: 'yaml' }
        : { ...d, config: removeHiddenCharacters(d.config), source: '', edited: 'form' };
    });
  }, []);

  const reset = useCallback((d: Draft) => {
    revision.current = 0;
    setTextValid(true);
    setTouched(new Set());
    setDraft(d);
  }, []);

  // The server's template check does not ask the plugin; its schema is checked here.
  const own = useMemo(() => paramErrors(draft.config, plugins.data), [draft.config, plugins.data]);
  const tables = tablesOf(plugins.data, shownAs(get(draft.config, 'workload.plugin')));
  const unknown = useUnknownTables(draft.config, tables.several);
  const closed = useForbiddenConnections(draft.config);
  const [feed, statements] = [get(draft.config, 'workload.feed'), get(draft.config, 'workload.params.statements')];
  const feedFindings = useMemo(() => unknownStatementFindings(feed, statements), [feed, statements]);
  const hiddenWarnings = useMemo(() => hiddenCharacterWarnings(draft.config), [draft.config]);
  const errors = useMemo(() => {
    const here = [...own, ...closed, ...unknown, ...feedFindings, ...hiddenWarnings].filter(
      (e) => !found.list.some((f) => f.field === e.field),
    );
    return sortByLine([...placeFindings(found, draft.source), ...withLines(here, draft.source)]);
  }, [found, own, closed, unknown, feedFindings, hiddenWarnings, draft.source]);

  // Between a key press and the request too, known errors are of the earlier text.
  const now = state === 'idle' && found.of !== checkedContent(draft) ? 'checking' : state;
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
    hasHiddenCharacters: hiddenWarnings.length > 0,
    removeUnseen,
    reset,
  };
}

type PluginList = ReturnType<typeof usePlugins>['data'];

function paramErrors(config: ScenarioDraft, plugins: PluginList): Finding[] {
  const name = shownAs(get(config, 'workload.plugin'));
  const schema = findPlugin(plugins, 'workload', name)?.manifest.parameters as Schema | undefined;
  return schema ? check(get(config, 'workload.params'), schema, 'workload.params') : [];
}

/** CheckedFindings are a check's findings and its text; null when it checked the document, which has no lines. */
interface CheckedFindings {
  list: Finding[];
  text: string | null;
  /** The checked content, see checkedContent. */
  of: unknown;
}

/** checkedContent is the text or the document, whichever was edited. */
const checkedContent = (d: Draft): unknown => (d.edited === 'yaml' ? d.source : d.config);

function placeFindings(found: CheckedFindings, source: string): Finding[] {
  return found.text === null ? withLines(found.list, source) : moveFindings(found.list, found.text, source);
}

function withLines(list: Finding[], source: string): Finding[] {
  return list.map((e) => ({ ...e, line: lineOf(source, e.field), column: undefined }));
}
