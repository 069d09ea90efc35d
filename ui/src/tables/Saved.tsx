import { type UseQueryResult, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, asProblem } from '../api/client';
import type { SavedQuery } from '../api/types';
import { ActionsMenu } from '../design/Controls';
import { Dialog, useConfirm } from '../design/Dialog';
import { ago } from '../design/format';
import { Icon } from '../design/icons';
import { Empty, Load, Notice, SkeletonRows } from '../design/States';
import { useToast } from '../design/Toast';

interface Props {
  list: UseQueryResult<SavedQuery[]>;
  current: string;
  sql: string;
  chart: string;
  onOpen: (q: SavedQuery) => void;
  onSaved: (name: string) => void;
  onGone: () => void;
}

/** Begins what is kept about how a query of the page Explore is drawn; others are SQL. */
const ofExplore = 'page=explore';

export const isPromql = (q: Pick<SavedQuery, 'chart'>) => q.chart.split('&')[0] === ofExplore;

/** How a query of the page Explore is drawn, as it is kept with it, and back. */
export const exploreChart = (choices: string) => (choices ? `${ofExplore}&${choices}` : ofExplore);
export const choicesOf = (q: Pick<SavedQuery, 'chart'>) => q.chart.slice(ofExplore.length + 1);

/** The queries that are kept under a name, for everybody on this server. */
export function Saved(props: Props) {
  const qc = useQueryClient();
  const toast = useToast();
  const [naming, setNaming] = useState(false);
  const [dialog, ask] = useConfirm();
  const changed = () => qc.invalidateQueries({ queryKey: ['saved-queries'] });
  const current = props.list.data?.find((q) => q.name === props.current);
  const save = async (name: string, version: number) => {
    await api.put('/api/v1/queries/{name}', {
      path: { name },
      body: { sql: props.sql, chart: props.chart, version },
    });
    await changed();
    props.onSaved(name);
    toast(`Saved as ${name}.`, 'ok');
  };
  const again = async () => {
    if (!current) return;
    try {
      await save(current.name, current.version);
    } catch (err) {
      const p = asProblem(err);
      toast(`${p.message} ${p.hint}`, 'bad');
    }
  };
  const promql = isPromql(props);
  const edited = current && (current.sql !== props.sql || current.chart !== props.chart);
  return (
    <section className="panel saved" aria-label="Saved queries">
      <header>
        <h2>Saved queries</h2>
        <div className="end">
          {edited && (
            <button type="button" className="btn small" onClick={() => void again()}>
              Save
            </button>
          )}
          <button type="button" className="btn small" onClick={() => setNaming(true)}>
            Save as…
          </button>
        </div>
      </header>
      <Load
        from={props.list}
        what="The saved queries could not be read."
        skeleton={<SkeletonRows rows={3} />}
        empty={(l) =>
          !l.some((q) => isPromql(q) === promql) && (
            <Empty tight title="None yet">
              A saved query has a link, and everybody on this server finds it here.
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
                  <button type="button" className="pick" onClick={() => props.onOpen(q)} title={q.sql}>
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
                      {
                        label: 'Delete',
                        needs: 'operator',
                        icon: 'trash',
                        danger: true,
                        act: () =>
                          ask({
                            title: `Delete the saved query ${q.name}?`,
                            body: 'Links to it lead nowhere then.',
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
      {naming && <Name onClose={() => setNaming(false)} onName={(name) => save(name, 0)} />}
      {dialog}
    </section>
  );
}

function Name(props: { onClose: () => void; onName: (name: string) => Promise<void> }) {
  const [name, setName] = useState('');
  const [problem, setProblem] = useState('');
  const save = async () => {
    try {
      await props.onName(name.trim());
      props.onClose();
    } catch (err) {
      const p = asProblem(err);
      setProblem(`${p.message} ${p.hint}`);
    }
  };
  return (
    <Dialog title="Save the query" onClose={props.onClose}>
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
        {problem && <Notice tone="bad">{problem}</Notice>}
        <div className="actions">
          <button type="button" className="btn" onClick={props.onClose}>
            Cancel
          </button>
          <button type="submit" className="btn primary" disabled={!name.trim()}>
            Save
          </button>
        </div>
      </form>
    </Dialog>
  );
}
