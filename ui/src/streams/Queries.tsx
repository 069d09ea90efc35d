import { useState } from 'react';
import type { StreamCatalog, StreamCounts, StreamQuery } from '../api/types';
import { ActionsMenu, SearchBox } from '../design/Controls';
import type { Question } from '../design/Dialog';
import { ago, bytes, dateTime, type Quantity, rate } from '../design/format';
import { Mark } from '../design/icons';
import { Num } from '../design/Num';
import { Empty } from '../design/States';
import { execute } from './StreamsPage';
import { hasEnded, lagOf, liveCounts, lossCounts, quotedName, states } from './model';

const initialCount = 100;

export function StateBadge({ query }: { query: StreamQuery }) {
  const s = states[query.state];
  return (
    <span className={`badge ${s.tone}`} title={s.what}>
      <Mark shape={s.shape} />
      {s.label}
    </span>
  );
}

/** Figure shows a live figure of a query. */
function Figure({ query, of }: { query: StreamQuery; of: (live: StreamCounts) => Quantity }) {
  const live = liveCounts(query);
  return live ? <Num q={of(live)} /> : '–';
}

/** Queries lists the continuous queries with their rates. */
export function Queries(props: {
  catalog: StreamCatalog;
  current?: string;
  onShow: (name: string) => void;
  ask: (q: Question) => void;
  changed: () => unknown;
  notify: (message: string) => void;
}) {
  const [search, setSearch] = useState('');
  const all = props.catalog.queries;
  const fit = all.filter((q) => `${q.name} ${q.sink} ${q.state}`.toLowerCase().includes(search.toLowerCase()));
  const drop = (q: StreamQuery, graceful: boolean) => {
    const over = hasEnded(q);
    props.ask({
      title: over ? `Drop query ${q.name}?` : graceful ? `Stop and drain ${q.name}?` : `Stop ${q.name} now?`,
      body: over
        ? 'The query has ended. This removes it from the list and frees its name.'
        : graceful
          ? 'Its sources stop first. Rows in flight and open windows still reach the sink. Then the query is dropped.'
          : 'Rows in flight and open windows are lost. You cannot undo this.',
      verb: over ? 'Drop query' : graceful ? 'Stop and drain' : 'Stop now',
      act: async () => {
        await execute(`DROP QUERY ${quotedName(q.name)} ${graceful ? 'GRACEFUL' : 'FORCEFUL'}`);
        props.notify(`Query ${q.name} is ${over ? 'dropped' : 'stopping'}.`);
        await props.changed();
      },
    });
  };
  const resume = (q: StreamQuery) =>
    props.ask({
      title: `Resume query ${q.name}?`,
      body: 'The query restarts from its sources with your permissions. You become its owner.',
      verb: 'Resume query',
      act: async () => {
        await execute(`RESUME QUERY ${quotedName(q.name)}`);
        props.notify(`Query ${q.name} is resumed.`);
        await props.changed();
      },
    });
  return (
    <section className="panel" aria-label="Continuous queries">
      <header>
        <h2>Continuous queries</h2>
        <div className="end">
          {all.length > 8 && <SearchBox value={search} placeholder="Name, sink or state" onChange={setSearch} />}
        </div>
      </header>
      {all.length === 0 ? (
        <Empty tight icon="streams" title="No continuous query">
          A <code>SELECT … INTO</code> a sink creates one. It runs until its sources end or you drop it.
        </Empty>
      ) : fit.length === 0 ? (
        <Empty tight icon="search" title="No query matches">
          No query has “{search}” in its name, sink or state.
        </Empty>
      ) : (
        <div className="table-wrap" tabIndex={0} role="group" aria-label="Continuous queries, scrollable">
          <table className="table">
            <thead>
              <tr>
                <th>Query</th>
                <th>State</th>
                <th>Sink</th>
                <th className="num">Rows in</th>
                <th className="num">Rows out</th>
                <th className="num" title="Age of the newest row">
                  Lag
                </th>
                <th className="num" title="Memory of windows, joins and LAG">
                  State held
                </th>
                <th>Last row out</th>
                <th>
                  <span className="sr">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {fit.slice(0, initialCount).map((q) => (
                <tr key={q.query_id} className={`link${q.name === props.current ? ' current' : ''}`}>
                  <td>
                    <button
                      type="button"
                      className="link-like"
                      data-row
                      aria-expanded={q.name === props.current}
                      onClick={() => props.onShow(q.name === props.current ? '' : q.name)}
                    >
                      {q.name}
                    </button>
                    {lossCounts(q).map(([word, n]) => (
                      <span key={word} className="second warn-text">
                        {n.toLocaleString('en-US')} {word}
                      </span>
                    ))}
                  </td>
                  <td>
                    <StateBadge query={q} />
                    {q.trouble && (
                      <span className="second warn-text" title={q.trouble.message}>
                        its sink accepts no rows
                      </span>
                    )}
                    {q.waiting && (
                      <span className="second warn-text" title={q.waiting}>
                        a source is waiting
                      </span>
                    )}
                  </td>
                  <td>
                    <code>{q.sink}</code>
                  </td>
                  <td className="num">
                    <Figure query={q} of={(l) => rate(l.in_per_second)} />
                  </td>
                  <td className="num">
                    <Figure query={q} of={(l) => rate(l.out_per_second)} />
                  </td>
                  <td className="num">{lagOf(q)}</td>
                  <td className="num">
                    <Figure query={q} of={(l) => bytes(l.state_bytes)} />
                  </td>
                  <td className="nowrap">
                    {q.live?.last_output ? (
                      <span title={dateTime(q.live.last_output)}>{ago(q.live.last_output)}</span>
                    ) : (
                      <span className="muted">none yet</span>
                    )}
                  </td>
                  <td className="num">
                    <ActionsMenu
                      small
                      label={`Actions for ${q.name}`}
                      actions={
                        hasEnded(q)
                          ? [
                              ...(q.state === 'SUSPENDED'
                                ? [
                                    {
                                      label: 'Resume',
                                      icon: 'play' as const,
                                      needs: 'operator' as const,
                                      act: () => resume(q),
                                    },
                                  ]
                                : []),
                              {
                                label: 'Drop',
                                icon: 'trash',
                                danger: true,
                                needs: 'operator',
                                act: () => drop(q, false),
                              },
                            ]
                          : [
                              { label: 'Stop and drain', icon: 'stop', needs: 'operator', act: () => drop(q, true) },
                              {
                                label: 'Stop now',
                                icon: 'trash',
                                danger: true,
                                needs: 'operator',
                                act: () => drop(q, false),
                              },
                            ]
                      }
                    />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {fit.length > initialCount && (
        <p className="body note muted">
          The first {initialCount} of {fit.length}; search for others.
        </p>
      )}
    </section>
  );
}
