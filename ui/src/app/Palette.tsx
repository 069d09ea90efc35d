import { type KeyboardEvent, useEffect, useId, useMemo, useRef, useState } from 'react';
import { useLocation } from 'wouter';
import { useConnections, useHasRole, useMe, useRuns, useTemplates } from '../api/queries';
import { Dialog } from '../design/Dialog';
import { ago } from '../design/format';
import { Icon } from '../design/icons';
import { useToast } from '../design/Toast';
import { useDebounced } from '../design/useDebounced';
import { type Entry, pageEntries, ranked } from './paletteEntries';
import { signOut, signOutError } from './signOut';
import { nextTheme, useTheme } from './theme';
import './palette.css';

/** useEntries are what the palette finds for a search. */
function useEntries(search: string): { entries: Entry[]; pending: boolean; failed: boolean } {
  const operator = useHasRole('operator');
  const admin = useMe().data?.role === 'admin';
  const [theme, setTheme] = useTheme();
  const toast = useToast();
  const settled = useDebounced(search.trim());
  const runs = useRuns({ search: settled || undefined, limit: 8 });
  const templates = useTemplates();
  const connections = useConnections();
  const entries = useMemo((): Entry[] => {
    const theirs = (runs.data?.runs ?? []).map((r): Entry => ({
      kind: 'Run',
      icon: 'chart',
      text: r.test_name,
      note: ago(r.start_time ?? r.created_at),
      href: `/runs/${r.run_id}`,
    }));
    const saved = (templates.data ?? []).map((t): Entry => ({
      kind: 'Template',
      icon: 'templates',
      text: t.name,
      note: t.config.target?.table_name ?? '',
      href: `/templates/${t.template_id}`,
    }));
    const databases = (connections.data ?? []).map((c): Entry => ({
      kind: 'Connection',
      icon: 'connections',
      text: c.name,
      note: c.driver,
      href: `/connections?search=${encodeURIComponent(c.name)}`,
    }));
    const actions: Entry[] = [
      { kind: 'Action', icon: 'system', text: `Theme: ${nextTheme[theme]}`, act: () => setTheme(nextTheme[theme]) },
      {
        kind: 'Action',
        icon: 'keyboard',
        text: 'Show keyboard shortcuts',
        act: () => dispatchEvent(new Event('loadstone:shortcuts')),
      },
      {
        kind: 'Action',
        icon: 'signout',
        text: 'Sign out',
        act: () => void signOut().catch((err: unknown) => toast(signOutError(err), 'bad')),
      },
    ];
    return [...pageEntries(operator, admin), ...actions, ...theirs, ...saved, ...databases];
  }, [runs.data, templates.data, connections.data, theme, setTheme, toast, operator, admin]);
  const found = ranked(entries, search);
  return {
    entries: found.slice(0, 40),
    pending: runs.isFetching || templates.isPending || connections.isPending,
    failed: Boolean(runs.error ?? templates.error ?? connections.error),
  };
}

/** Palette finds runs, templates, connections, pages and actions by their names. */
export default function Palette({ onClose }: { onClose: () => void }) {
  const [search, setSearch] = useState('');
  const [at, setAt] = useState(0);
  const [, navigate] = useLocation();
  const listId = useId();
  const list = useRef<HTMLUListElement>(null);
  const { entries, pending, failed } = useEntries(search);
  const current = Math.min(at, entries.length - 1);
  useEffect(() => {
    list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' });
  }, [current]);
  const choose = (e: Entry | undefined) => {
    if (!e) return;
    onClose();
    if (e.href) navigate(e.href);
    else e.act?.();
  };
  const key = (e: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (step && entries.length) {
      e.preventDefault();
      setAt((current + step + entries.length) % entries.length);
    } else if (e.key === 'Enter') {
      e.preventDefault();
      choose(entries[current]);
    }
  };
  return (
    <Dialog title="Find" wide onClose={onClose}>
      <div className="palette">
        <input
          className="input"
          type="text"
          role="combobox"
          aria-label="Find runs, templates, connections, pages and actions"
          aria-expanded="true"
          aria-controls={listId}
          aria-activedescendant={entries.length ? `${listId}-${current}` : undefined}
          placeholder="Run, template, connection, page or action"
          autoFocus
          value={search}
          onChange={(e) => {
            setSearch(e.target.value);
            setAt(0);
          }}
          onKeyDown={key}
        />
        <ul id={listId} ref={list} role="listbox" aria-label="Results">
          {entries.map((e, i) => (
            <li
              key={`${e.kind} ${e.href ?? e.text}`}
              id={`${listId}-${i}`}
              role="option"
              aria-selected={i === current}
              onPointerMove={() => setAt(i)}
              onClick={() => choose(e)}
            >
              <Icon name={e.icon} size={16} />
              <bdi className="grow clip">{e.text}</bdi>
              {e.note && <span className="muted clip palette-note">{e.note}</span>}
              <span className="muted">{e.kind}</span>
            </li>
          ))}
        </ul>
        <p className="muted note" role="status">
          {failed
            ? 'Some lists could not be loaded. The results are incomplete.'
            : entries.length === 0
              ? pending
                ? 'Searching…'
                : `Nothing matches “${search.trim()}”.`
              : `${entries.length} ${entries.length === 1 ? 'result' : 'results'}. Arrow keys choose, Enter opens.`}
        </p>
      </div>
    </Dialog>
  );
}
