import { useQueryClient, type UseQueryResult } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { api, asProblem, Problem } from '../api/client';
import { useHasRole } from '../api/queries';
import type { SavedQuery } from '../api/types';
import { ActionsMenu } from '../design/Controls';
import { Dialog, useConfirm } from '../design/Dialog';
import { ago } from '../design/format';
import { Icon } from '../design/icons';
import { Empty, Load, Notice, SkeletonRows } from '../design/States';
import { useToast } from '../design/Toast';
import { problemText } from '../design/sentences';

interface Props {
  list: UseQueryResult<SavedQuery[]>;
  current: string;
  sql: string;
  chart: string;
  /** The text is a default or an example, not the user's. */
  untouched: boolean;
  /** Opens a query in the editor; one without a name is unsaved. */
  onOpen: (q: OpenedQuery) => void;
  onSaved: (name: string) => void;
  onRenamed: (name: string) => void;
  onGone: () => void;
}

/** OpenedQuery is what opening a query loads. */
type OpenedQuery = Pick<SavedQuery, 'name' | 'sql' | 'chart'>;

/** explorePrefix marks the chart settings of PromQL queries; others are SQL. */
const explorePrefix = 'page=explore';

export const isPromql = (q: Pick<SavedQuery, 'chart'>) => q.chart.split('&')[0] === explorePrefix;

/** exploreChart and choicesOf convert the chart settings of an Explore query. */
export const exploreChart = (choices: string) => (choices ? `${explorePrefix}&${choices}` : explorePrefix);
export const choicesOf = (q: Pick<SavedQuery, 'chart'>) => q.chart.slice(explorePrefix.length + 1);

/** MissingQuery says that a linked or open query was deleted. */
export function MissingQuery({ name, list }: { name: string; list: UseQueryResult<SavedQuery[]> }) {
  if (!name || !list.data || list.data.some((q) => q.name === name)) return null;
  return (
    <Notice tone="warn">
      <strong>There is no saved query “{name}”.</strong> Somebody has deleted or renamed it.
    </Notice>
  );
}

/** SavedQueries lists the queries saved on this server. */
export function SavedQueries(props: Props) {
  const qc = useQueryClient();
  const toast = useToast();
  const may = useHasRole('operator');
  const [naming, setNaming] = useState<'new' | SavedQuery | null>(null);
  const [refusal, setRefusal] = useState<Problem | null>(null);
  const [dialog, ask] = useConfirm();
  const changed = () => qc.invalidateQueries({ queryKey: ['saved-queries'] });
  const listed = props.list.data?.find((q) => q.name === props.current);
  // The opened version: the list may have a newer one that was not edited.
  const [basis, setBasis] = useState<SavedQuery | null>(null);
  useEffect(() => {
    if (listed && basis?.name !== listed.name) setBasis(listed);
  }, [listed, basis]);
  const current = listed && basis?.name === listed.name ? basis : listed;
  const save = async (name: string, version: number) => {
    const saved = await api.put('/api/v1/queries/{name}', {
      path: { name },
      body: { sql: props.sql, chart: props.chart, version },
    });
    setBasis(saved);
    setRefusal(null);
    await changed();
    props.onSaved(name);
    toast(`Saved as ${name}.`, 'ok');
  };
  const again = async (version: number) => {
    try {
      await save(props.current, version);
    } catch (err) {
      const p = asProblem(err);
      await changed();
      if (p.fields.some((f) => f.field === 'version')) setRefusal(p);
      else toast(problemText(p), 'bad');
    }
  };
  const rename = async (q: SavedQuery, name: string) => {
    const saved = await api.put('/api/v1/queries/{name}', {
      path: { name: q.name },
      body: { sql: q.sql, chart: q.chart, version: q.version, name },
    });
    const open = q.name === props.current;
    if (open) setBasis((b) => (b ? { ...b, name, version: saved.version } : b));
    await changed();
    if (open) props.onRenamed(name);
    toast(`${q.name} was renamed to ${name}.`, 'ok');
  };
  // Unsaved text that another query replaced.
  const [left, setLeft] = useState<(OpenedQuery & { basis: SavedQuery | null }) | null>(null);
  const replace = (q: OpenedQuery) => {
    const lost = props.sql.trim() !== '' && !props.untouched && !props.list.data?.some((o) => o.sql === props.sql);
    if (lost) setLeft({ name: props.current, sql: props.sql, chart: props.chart, basis: current ?? null });
    setRefusal(null);
    props.onOpen(q);
    return lost;
  };
  const openIt = (q: SavedQuery) => {
    replace(q);
    setBasis(q);
  };
  const bringBack = (q: NonNullable<typeof left>) => {
    if (!replace(q)) setLeft(null);
    setBasis(q.basis);
  };
  const promql = isPromql(props);
  const edited = current && (current.sql !== props.sql || current.chart !== props.chart);
  return (
    <section className="panel saved" aria-label="Saved queries">
      <header>
        <h2>Saved queries</h2>
        {may && (
          <div className="end">
            {edited && (
              <button type="button" className="btn small" onClick={() => void again(current.version)}>
                Save
              </button>
            )}
            <button type="button" className="btn small" onClick={() => setNaming('new')}>
              Save as…
            </button>
          </div>
        )}
      </header>
      {refusal && listed && (
        <div className="inside">
          <Notice tone="bad">
            <strong>{refusal.message}</strong> What you have written is still in the editor.
            <div className="row choices">
              <button type="button" className="btn small" onClick={() => openIt(listed)}>
                <Icon name="refresh" size={14} /> Open theirs
              </button>
              <button type="button" className="btn small" onClick={() => void again(listed.version)}>
                <Icon name="check" size={14} /> Overwrite with mine
              </button>
            </div>
          </Notice>
        </div>
      )}
      {left && !refusal && (
        <div className="inside">
          <Notice>
            What you had written{left.name && ` in ${left.name}`} was not saved. It stays here while you stay on this
            page.
            <div className="row choices">
              <button type="button" className="btn small" onClick={() => bringBack(left)}>
                <Icon name="back" size={14} /> Bring it back
              </button>
              <button type="button" className="btn quiet small" onClick={() => setLeft(null)}>
                Dismiss
              </button>
            </div>
          </Notice>
        </div>
      )}
      <Load
        from={props.list}
        what="The saved queries could not be read."
        skeleton={<SkeletonRows rows={3} />}
        empty={(l) =>
          !l.some((q) => isPromql(q) === promql) && (
            <Empty tight title="None yet">
              A saved query has a link. All users of this server see it here.
            </Empty>
          )
        }
      >
        {(all) => (
          <ul>
            {all
              .filter((q) => isPromql(q) === promql)
              .map((q) => (
                <li key={q.name} className={q.name === props.current ? 'on' : ''}>
                  <button type="button" className="pick" onClick={() => openIt(q)} title={q.sql}>
                    <Icon name={promql ? 'explore' : q.chart ? 'chart' : 'table'} size={14} />
                    <span className="clip">{q.name}</span>
                    <span className="muted note nowrap">
                      {q.updated_by} {ago(q.updated_at)}
                    </span>
                  </button>
                  <ActionsMenu
                    small
                    label={`Actions for ${q.name}`}
                    actions={[
                      { label: 'Rename', needs: 'operator', icon: 'edit', act: () => setNaming(q) },
                      {
                        label: 'Delete',
                        needs: 'operator',
                        icon: 'trash',
                        danger: true,
                        act: () =>
                          ask({
                            title: `Delete the saved query ${q.name}?`,
                            body: 'Existing links to this query will stop working.',
                            verb: 'Delete',
                            act: async () => {
                              await api.remove('/api/v1/queries/{name}', { path: { name: q.name } });
                              await changed();
                              if (q.name === props.current) props.onGone();
                            },
                          }),
                      },
                    ]}
                  />
                </li>
              ))}
          </ul>
        )}
      </Load>
      {naming && (
        <Name
          of={naming === 'new' ? null : naming}
          onClose={() => setNaming(null)}
          onName={(name) => (naming === 'new' ? save(name, 0) : rename(naming, name))}
        />
      )}
      {dialog}
    </section>
  );
}

/** Name asks for the name of a new or renamed query. */
function Name(props: { of: SavedQuery | null; onClose: () => void; onName: (name: string) => Promise<void> }) {
  const { of } = props;
  const [name, setName] = useState(of?.name ?? '');
  const [problem, setProblem] = useState('');
  const save = async () => {
    try {
      await props.onName(name.trim());
      props.onClose();
    } catch (err) {
      const p = asProblem(err);
      setProblem(problemText(p));
    }
  };
  return (
    <Dialog title={of ? `Rename ${of.name}` : 'Save the query'} onClose={props.onClose}>
      <form
        className="stack"
        onSubmit={(e) => {
          e.preventDefault();
          void save();
        }}
      >
        <label className="field">
          <span className="label">Name</span>
          <input className="input" value={name} maxLength={100} autoFocus onChange={(e) => setName(e.target.value)} />
        </label>
        {of && <p className="help">Existing links to this query will stop working.</p>}
        {problem && <Notice tone="bad">{problem}</Notice>}
        <div className="actions">
          <button type="button" className="btn" onClick={props.onClose}>
            Cancel
          </button>
          <button type="submit" className="btn primary" disabled={!name.trim() || name.trim() === of?.name}>
            {of ? 'Rename' : 'Save'}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
