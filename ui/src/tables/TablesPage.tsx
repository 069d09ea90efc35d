import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import { OperatorOnly } from '../app/OperatorOnly';
import { api, asProblem } from '../api/client';
import type { DerivedTable, DerivedTableList } from '../api/types';
import { usePageTitle } from '../app/location';
import { ActionsMenu, SearchBox, Term } from '../design/Controls';
import { useConfirm } from '../design/Dialog';
import { ago, dateTime, duration } from '../design/format';
import { Icon } from '../design/icons';
import { Empty, Load, Notice, SkeletonRows } from '../design/States';
import { terms } from '../design/terms';
import { useToast } from '../design/Toast';
import { Graph } from './Graph';
import { claimAge, failureText, freshness, isAbandoned, tablePath, triesText, waitReason } from './model';
import { useTables, useTablesChanged } from './queries';
import { FreshnessBadge, Lag } from './Freshness';
import './tables.css';
import { problemText } from '../design/sentences';

/** NextRefresh shows a table's current or next refresh. */
export function NextRefresh({ t, list, now }: { t: DerivedTable; list: DerivedTableList; now: number }) {
  const claims = list.claims.filter((c) => c.dynamic_table === t.name);
  if (claims.length > 0)
    return (
      <span title={claims.map((c) => c.worker_id).join(', ')}>
        being refreshed{claims.length > 1 ? `, ${claims.length} parts` : ''} for{' '}
        {duration(Math.round(claimAge(claims[0]!, now)))}
      </span>
    );
  const waiting = list.pending.filter((p) => p.dynamic_table === t.name);
  if (waiting.length > 0) {
    const due = Math.min(...waiting.map((p) => Date.parse(p.next_refresh_due ?? '') || now));
    return due > now + 1000 ? (
      <span>tried again in {duration(Math.round((due - now) / 1000))}</span>
    ) : (
      <>
        <span>waiting for a worker</span>
        {waitReason(list.workers) && <span className="second">{waitReason(list.workers)}</span>}
      </>
    );
  }
  const due = Date.parse(t.next_refresh_due ?? '');
  if (t.status !== 'ACTIVE') return <span className="muted">after it is resumed</span>;
  if (due > now) return <span title={dateTime(t.next_refresh_due)}>in {duration(Math.round((due - now) / 1000))}</span>;
  return <span className="muted">{t.kind === 'INGEST' ? 'when a run ends' : 'when a source changes'}</span>;
}

function LastRefresh({ t, now }: { t: DerivedTable; now: number }) {
  const f = failureText(t);
  if (f)
    return (
      <span className="clip-2 why-bad" title={`${f.text} ${f.error}`}>
        {t.suspended_reason
          ? 'suspended: '
          : isAbandoned(t)
            ? `${t.failures} ${t.failures === 1 ? 'run' : 'runs'} skipped: `
            : `${triesText(t) || (t.failures > 0 ? `failed ${t.failures} times` : 'failed')}: `}
        {f.error}
      </span>
    );
  if (!t.as_of) return <span className="muted">{t.kind === 'INGEST' ? 'run by run' : 'never'}</span>;
  return (
    <span title={dateTime(t.as_of)}>
      {ago(t.as_of, now)} <span className="muted">in {duration(t.last_refresh_seconds)}</span>
    </span>
  );
}

/** TablesPage is /tables: derived tables, their freshness and dependencies. */
export function TablesPage() {
  usePageTitle('Tables');
  const list = useTables();
  const [text, setText] = useState('');
  const now = Date.parse(list.data?.at ?? '') || Date.now();
  const states = (list.data?.tables ?? []).map((t) => freshness(t, now));
  const [late, failingCount] = ['failed', 'failing'].map((s) => states.filter((one) => one === s).length);
  return (
    <>
      <header className="page-head">
        <h1>Tables</h1>
        <span className="sub hide-phone" role="status">
          {list.data
            ? `${list.data.tables.length} tables, ${list.data.claims.length} being refreshed, ` +
              `${list.data.pending.length - list.data.claims.length} waiting` +
              `${late ? `, ${late} failed` : ''}${failingCount ? `, ${failingCount} failing` : ''}`
            : 'Results of many runs, refreshed by the server.'}
        </span>
        <div className="actions">
          <Link href="/query" className="btn">
            <Icon name="search" /> Query
          </Link>
          <OperatorOnly>
            <Link href="/tables/new" className="btn primary">
              <Icon name="plus" /> New table
            </Link>
          </OperatorOnly>
        </div>
      </header>
      <div className="page">
        {list.data && list.error && (
          <Notice tone="warn">The server does not answer; what is shown is of {ago(list.data.at)}.</Notice>
        )}
        <Load
          from={list}
          what="The tables could not be read."
          skeleton={
            <div className="panel">
              <SkeletonRows rows={9} />
            </div>
          }
          empty={(d) =>
            d.tables.length === 0 && (
              <div className="panel">
                <Empty icon="table" title="No tables yet">
                  Tables appear once a server has opened its results database.
                </Empty>
              </div>
            )
          }
        >
          {(d) => (
            <>
              {d.nobody && <Notice tone="warn">{d.nobody}</Notice>}
              <div className="toolbar">
                <SearchBox value={text} placeholder="Search tables" onChange={setText} />
              </div>
              <TableList list={d} now={now} search={text} />
              <RefreshWorkers list={d} />
              <section className="panel" aria-label="Dependencies">
                <header>
                  <h2>Dependencies of tables</h2>
                </header>
                <Graph tables={d.tables} now={now} />
              </section>
            </>
          )}
        </Load>
      </div>
    </>
  );
}

/** RefreshWorkers lists the refresh workers and their claims. */
function RefreshWorkers({ list }: { list: DerivedTableList }) {
  if (list.workers.length === 0) return null;
  return (
    <section className="panel" aria-label="Workers">
      <header>
        <h2>Refresh workers</h2>
      </header>
      <div className="table-wrap" tabIndex={0} role="group" aria-label="Workers, scrollable">
        <table className="table dense cards">
          <thead>
            <tr>
              <th>Worker</th>
              <th>Does</th>
              <th>Holds</th>
            </tr>
          </thead>
          <tbody>
            {list.workers.map((w) => {
              const holds = list.claims.filter((c) => c.worker_id === w.worker_id);
              return (
                <tr key={w.worker_id}>
                  <td>
                    <span className="mono">{w.host || w.worker_id}</span>
                    <span className="second">
                      {w.role === 'NODE' ? 'node' : 'server'} {w.worker_id}
                    </span>
                  </td>
                  <td data-label="Does">
                    {w.kinds.map((k) => (k === 'INGEST' ? 'runs' : 'tables')).join(' and ')}, {w.slots} at a time
                  </td>
                  <td data-label="Holds">
                    {holds.length > 0 ? (
                      holds.map((c) => c.dynamic_table + (c.subtask ? ` ${c.subtask}` : '')).join(', ')
                    ) : (
                      <span className="muted">{w.waits_for ? `nothing: ${w.waits_for}` : 'nothing'}</span>
                    )}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function TableList({ list, now, search }: { list: DerivedTableList; now: number; search: string }) {
  const changed = useTablesChanged();
  const toast = useToast();
  const [, navigate] = useLocation();
  const [dialog, ask] = useConfirm();
  const act = async (t: DerivedTable, verb: 'refresh' | 'suspend' | 'resume') => {
    try {
      await api.post(`/api/v1/tables/{name}/${verb}`, { path: { name: t.name } });
      await changed();
    } catch (err) {
      const p = asProblem(err);
      toast(problemText(p), 'bad');
    }
  };
  const needle = search.trim().toLowerCase();
  const rows = list.tables
    .filter((t) => `${t.name} ${t.description}`.toLowerCase().includes(needle))
    .sort((a, b) => Number(a.bundled) - Number(b.bundled) || (a.name < b.name ? -1 : 1));
  if (rows.length === 0)
    return (
      <div className="panel">
        <Empty icon="search" title="No table matches" tight>
          No table name contains “{search}”.
        </Empty>
      </div>
    );
  return (
    <section className="panel" aria-label="Tables">
      <div className="table-wrap" tabIndex={0} role="group" aria-label="Tables, scrollable">
        <table className="table dense cards derived">
          <thead>
            <tr>
              <th>Table</th>
              <th>State</th>
              <th>
                <Term tip={terms.lag}>Lag / target</Term>
              </th>
              <th>Next refresh</th>
              <th>Last refresh</th>
              <th>
                <span className="sr">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((t) => (
              <tr key={t.name} className="link" onClick={() => navigate(tablePath(t.name))}>
                <td>
                  <Link href={tablePath(t.name)} className="name mono" onClick={(e) => e.stopPropagation()}>
                    {t.name}
                  </Link>
                  <span className="second clip-2">
                    {t.description || (t.bundled ? '' : `by ${t.created_by || 'somebody'}`)}
                  </span>
                </td>
                <td>
                  <FreshnessBadge table={t} now={now} />
                </td>
                <td data-label="Lag">
                  <Lag table={t} now={now} />
                </td>
                <td data-label="Next">
                  <NextRefresh t={t} list={list} now={now} />
                </td>
                <td data-label="Last">
                  <LastRefresh t={t} now={now} />
                </td>
                <td className="act">
                  <ActionsMenu
                    small
                    label={`Actions for ${t.name}`}
                    actions={[
                      ...(t.kind === 'SQL' && t.status === 'ACTIVE'
                        ? [
                            {
                              label: 'Refresh now',
                              icon: 'refresh',
                              needs: 'operator' as const,
                              act: () => void act(t, 'refresh'),
                            },
                          ]
                        : []),
                      ...(isAbandoned(t)
                        ? [
                            {
                              label: 'Try again',
                              icon: 'refresh',
                              needs: 'operator' as const,
                              act: () => void act(t, 'resume'),
                            },
                          ]
                        : []),
                      t.status === 'ACTIVE'
                        ? { label: 'Suspend', icon: 'stop', needs: 'operator', act: () => void act(t, 'suspend') }
                        : { label: 'Resume', icon: 'play', needs: 'operator', act: () => void act(t, 'resume') },
                      ...(t.bundled
                        ? []
                        : [
                            {
                              label: 'Edit',
                              icon: 'edit',
                              needs: 'operator' as const,
                              act: () => navigate(`${tablePath(t.name)}/edit`),
                            },
                            null,
                            {
                              label: 'Drop',
                              needs: 'operator' as const,
                              icon: 'trash',
                              danger: true,
                              act: () =>
                                ask({
                                  title: `Drop the table ${t.name}?`,
                                  body: 'This deletes its definition, rows and history. The runs do not change.',
                                  verb: 'Drop table',
                                  act: async () => {
                                    await api.remove('/api/v1/tables/{name}', { path: { name: t.name } });
                                    await changed();
                                  },
                                }),
                            },
                          ]),
                    ]}
                  />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {dialog}
    </section>
  );
}
