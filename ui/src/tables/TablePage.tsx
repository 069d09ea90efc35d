import { useQuery } from '@tanstack/react-query';
import { Fragment, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { api, asProblem, Problem } from '../api/client';
import type { DerivedTable, DerivedTableDetail, RefreshRecord } from '../api/types';
import { usePageTitle } from '../app/location';
import { OperatorOnly } from '../app/OperatorOnly';
import { ActionsMenu, CopyButton } from '../design/Controls';
import { useConfirm } from '../design/Dialog';
import { ago, bytes, count, dateTime, duration, plain } from '../design/format';
import { Icon } from '../design/icons';
import { VisibleText } from '../editor/VisibleText';
import { Empty, Failed, Load, Notice, SkeletonRows } from '../design/States';
import { useToast } from '../design/Toast';
import { Graph } from './Graph';
import { Grid } from './Grid';
import {
  type Cell,
  claimAge,
  dueIn,
  failureText,
  isAbandoned,
  nextRefresh,
  type Point,
  relatedTables,
  tablePath,
  writtenRefreshes,
} from './model';
import { useRefreshes, useTable, useTables, useTablesChanged } from './queries';
import { colourSql, fullName } from './sql';
import { FreshnessBadge, Lag } from './Freshness';
import '../editor/editor.css';
import './tables.css';
import { XYChart } from './XYChart';
import { problemText } from '../design/sentences';

/** TablePage is /table/NAME: one derived table. */
export function TablePage({ name }: { name: string }) {
  usePageTitle(name);
  const table = useTable(name);
  const isDeleted = table.error instanceof Problem && table.error.status === 404;
  return (
    <>
      {isDeleted ? (
        <Failed what={`There is no table ${name}.`} error={table.error} />
      ) : (
        <Load
          from={table}
          what="The table could not be read."
          skeleton={
            <div className="page">
              <SkeletonRows rows={12} />
            </div>
          }
        >
          {(d) => <TableView d={d} stale={Boolean(table.error)} />}
        </Load>
      )}
    </>
  );
}

function TableView({ d, stale }: { d: DerivedTableDetail; stale: boolean }) {
  const t = d.table;
  const now = Date.parse(d.at ?? '') || Date.now();
  const changed = useTablesChanged();
  const toast = useToast();
  const [, navigate] = useLocation();
  const [dialog, ask] = useConfirm();
  const [busy, setBusy] = useState(false);
  const act = async (verb: 'refresh' | 'suspend' | 'resume') => {
    setBusy(true);
    try {
      await api.post(`/api/v1/tables/{name}/${verb}`, { path: { name: t.name } });
      await changed();
    } catch (err) {
      const p = asProblem(err);
      toast(problemText(p), 'bad');
    }
    setBusy(false);
  };
  const drop = () =>
    ask({
      title: `Drop the table ${t.name}?`,
      body: 'This deletes its definition, rows and history. The runs do not change.',
      verb: 'Drop table',
      act: async () => {
        await api.remove('/api/v1/tables/{name}', { path: { name: t.name } });
        await changed();
        navigate('/tables');
      },
    });
  const failed = failureText(t);
  const select = `SELECT * FROM ${fullName({ schema: 'tables', name: t.name })}`;
  return (
    <>
      <header className="page-head">
        <Link href="/tables" className="back" aria-label="All tables" title="All tables">
          <Icon name="back" />
        </Link>
        <h1 className="mono clip">{t.name}</h1>
        <FreshnessBadge table={t} now={now} />
        <div className="actions">
          {t.kind === 'SQL' && (
            <Link href={`/query?q=${encodeURIComponent(select)}`} className="btn hide-phone">
              <Icon name="search" /> Query
            </Link>
          )}
          <OperatorOnly>
            {t.status !== 'ACTIVE' ? (
              <button type="button" className="btn primary" disabled={busy} onClick={() => void act('resume')}>
                <Icon name="play" /> Resume
              </button>
            ) : (
              <>
                <button type="button" className="btn" disabled={busy} onClick={() => void act('suspend')}>
                  <Icon name="stop" /> Suspend
                </button>
                {isAbandoned(t) && (
                  <button type="button" className="btn primary" disabled={busy} onClick={() => void act('resume')}>
                    <Icon name="refresh" /> Try again
                  </button>
                )}
                {t.kind === 'SQL' && (
                  <button
                    type="button"
                    className="btn primary"
                    disabled={busy || d.claims.length > 0}
                    onClick={() => void act('refresh')}
                  >
                    <Icon name="refresh" /> {d.claims.length > 0 ? 'Refreshing' : 'Refresh now'}
                  </button>
                )}
              </>
            )}
          </OperatorOnly>
          {!t.bundled && (
            <ActionsMenu
              label={`More for ${t.name}`}
              actions={[
                { label: 'Edit', icon: 'edit', needs: 'operator', act: () => navigate(`${tablePath(t.name)}/edit`) },
                null,
                { label: 'Drop', icon: 'trash', danger: true, needs: 'operator', act: drop },
              ]}
            />
          )}
        </div>
      </header>
      <div className="page">
        {stale && <Notice tone="warn">The server does not answer; what is shown is of {ago(d.at)}.</Notice>}
        {failed && (
          <Notice tone={t.status === 'FAILED' || isAbandoned(t) ? 'bad' : 'warn'}>
            <strong>{failed.text}</strong> {failed.error}
            {t.suspended_reason && ' The user who resumes or changes it becomes its owner.'}
            {isAbandoned(t) && ' Remove the cause, then press “Try again”.'}
            {t.status === 'FAILED' &&
              (t.bundled ? ' Resume it to try again.' : ' Edit its definition, or resume it to try again unchanged.')}
          </Notice>
        )}
        <div className="columns two">
          <Facts d={d} now={now} />
          <Claims d={d} now={now} />
        </div>
        <History name={t.name} />
        <Dependencies name={t.name} now={now} />
        {t.kind === 'SQL' && <Rows name={t.name} select={select} asOf={t.as_of ?? ''} />}
        {t.definition && (
          <section className="panel" aria-label="Definition">
            <header>
              <h2>Definition</h2>
              <div className="end">
                <CopyButton text={t.definition} label="Copy the definition" />
                {!t.bundled && (
                  <OperatorOnly>
                    <Link href={`${tablePath(t.name)}/edit`} className="btn small">
                      <Icon name="edit" size={14} /> Edit
                    </Link>
                  </OperatorOnly>
                )}
              </div>
            </header>
            <div className="body">
              <pre className="code sql-read" tabIndex={0} aria-label="Definition in SQL">
                {colourSql(t.definition).map((l, i) => (
                  <div key={i}>
                    {l.map((p, k) => (
                      <span key={k} className={p.kind && `q-${p.kind}`}>
                        <VisibleText text={p.text} />
                      </span>
                    ))}
                    {l.length === 0 && ' '}
                  </div>
                ))}
              </pre>
            </div>
          </section>
        )}
      </div>
      {dialog}
    </>
  );
}

/** replaces says what a refresh replaces, and in how many parts. */
function replaces(t: DerivedTable): string {
  const what = t.partition_by === 'DAY' ? 'days' : 'runs';
  const rows =
    t.refresh_mode === 'FULL'
      ? 'all rows'
      : t.refresh_mode === 'INCREMENTAL'
        ? `the rows of changed ${what}`
        : 'as few rows as possible';
  if (t.partitions === 0) return rows;
  return t.partitions === 1 ? `${rows}, undivided` : `${rows}, in ${t.partitions} parts`;
}

function Facts({ d, now }: { d: DerivedTableDetail; now: number }) {
  const t = d.table;
  return (
    <section className="panel" aria-label="Status">
      <header>
        <h2>Status</h2>
      </header>
      <div className="body stack">
        {t.description && <p className="muted">{t.description}</p>}
        <dl className="defs">
          <dt>Lag / target</dt>
          <dd>
            <Lag table={t} now={now} />
          </dd>
          <dt>Last refresh</dt>
          <dd>
            {t.as_of
              ? `${ago(t.as_of, now)}, in ${duration(t.last_refresh_seconds)}`
              : t.kind === 'INGEST'
                ? 'run by run'
                : 'never'}
          </dd>
          <dt>Next refresh</dt>
          <dd>{nextRefresh(t, d, now)}</dd>
          <dt>Refresh mode</dt>
          <dd>
            {replaces(t)} <span className="muted">({t.refresh_mode})</span>
          </dd>
          {t.owner && (
            <>
              <dt>Owner</dt>
              <dd title="The table is suspended if this user is disabled, deleted or becomes a viewer.">{t.owner}</dd>
            </>
          )}
          <dt>Created by</dt>
          <dd>
            {t.bundled ? 'bundled with Loadstone' : `${t.created_by || 'somebody'}, ${dateTime(t.created_at)}`}
            {!t.bundled && t.version > 1 && (
              <span className="muted">
                {' '}
                · changed by {t.updated_by || 'somebody'} {ago(t.updated_at, now)}, version {t.version}
              </span>
            )}
          </dd>
        </dl>
      </div>
    </section>
  );
}

function Claims({ d, now }: { d: DerivedTableDetail; now: number }) {
  const claimed = new Set(d.claims.map((c) => c.subtask));
  const waiting = d.pending.filter((p) => !claimed.has(p.subtask));
  return (
    <section className="panel" aria-label="Claims">
      <header>
        <h2>Refresh workers</h2>
      </header>
      {d.claims.length === 0 && waiting.length === 0 ? (
        <Empty tight title="No worker">
          {d.table.status === 'ACTIVE'
            ? 'A worker claims the table when a refresh is due.'
            : 'The table is not refreshed until a user resumes it.'}
        </Empty>
      ) : (
        <div className="table-wrap" tabIndex={0} role="group" aria-label="Workers, scrollable">
          <table className="table dense">
            <thead>
              <tr>
                <th>Part</th>
                <th>Holder</th>
                <th className="num">Held for</th>
                <th className="num">Last heartbeat</th>
              </tr>
            </thead>
            <tbody>
              {d.claims.map((c) => (
                <tr key={c.subtask}>
                  <td className="mono">{c.subtask || 'whole table'}</td>
                  <td className="mono">{c.worker_id}</td>
                  <td className="num">{duration(Math.round(claimAge(c, now)))}</td>
                  <td
                    className="num"
                    title={`The claim expires at ${dateTime(c.expires_at)} unless the worker renews it.`}
                  >
                    {ago(c.heartbeat_at, now)}
                  </td>
                </tr>
              ))}
              {waiting.slice(0, 20).map((p) => (
                <tr key={`waiting ${p.subtask}`}>
                  <td className="mono">{p.subtask || 'whole table'}</td>
                  <td className="muted" colSpan={3}>
                    {dueIn(p, now) > 0
                      ? `retries at ${dateTime(p.next_refresh_due)}`
                      : `waiting for a worker since ${dateTime(p.next_refresh_due)}`}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
          {waiting.length > 20 && <p className="note muted body">and {waiting.length - 20} more</p>}
        </div>
      )}
    </section>
  );
}

const seconds = (r: RefreshRecord) => (Date.parse(r.ended_at ?? '') - Date.parse(r.started_at ?? '')) / 1000;

function History({ name }: { name: string }) {
  const history = useRefreshes(name);
  return (
    <section className="panel" aria-label="History">
      <header>
        <h2>History</h2>
      </header>
      <Load
        from={history}
        what="The history could not be read."
        skeleton={<SkeletonRows rows={4} />}
        empty={(h) =>
          h.length === 0 && (
            <Empty tight title="No refresh yet">
              Each refresh adds a row: its duration and the rows it wrote.
            </Empty>
          )
        }
      >
        {(h) => <HistoryTable records={h} />}
      </Load>
    </section>
  );
}

function HistoryTable({ records }: { records: RefreshRecord[] }) {
  const [all, setAll] = useState(false);
  const at = new Map(records.map((r) => [Date.parse(r.ended_at ?? ''), r]));
  const points = (of: RefreshRecord[], y: (r: RefreshRecord) => number): Point[] =>
    of.toReversed().map((r) => ({ x: Date.parse(r.ended_at ?? ''), y: y(r), bad: Boolean(r.error) }));
  const more = (p: Point) => {
    const r = at.get(p.x);
    return r ? r.error || `${r.refresh_mode.toLowerCase()}, ${plain(count(r.row_count))} rows` : '';
  };
  const failed = records.filter((r) => r.error).length;
  const note = failed > 0 && (
    <span className="note why-bad">
      {failed} of {records.length} failed
    </span>
  );
  return (
    <>
      <div className="columns two body">
        <XYChart
          title="Duration"
          kind="time"
          shape="bars"
          height={190}
          curves={[{ name: 'duration', points: points(records, seconds) }]}
          format={(n) => ({ value: duration(n), unit: '', exact: `${n} s` })}
          more={more}
          note={note}
        />
        {writtenRefreshes(records).length > 0 && (
          <XYChart
            title="Rows written"
            kind="time"
            shape="bars"
            height={190}
            curves={[{ name: 'rows', points: points(writtenRefreshes(records), (r) => r.row_count) }]}
            more={more}
          />
        )}
      </div>
      <div className="table-wrap" tabIndex={0} role="group" aria-label="Refreshes, scrollable">
        <table className="table dense cards refreshes">
          <thead>
            <tr>
              <th>Ended</th>
              <th className="num">Took</th>
              <th>Replaced</th>
              <th className="num">Rows</th>
              <th className="num">Size</th>
              <th className="num">Lag reached</th>
              <th>Worker</th>
              <th>Result</th>
            </tr>
          </thead>
          <tbody>
            {records.slice(0, all ? undefined : 8).map((r) => (
              <Fragment key={r.seq}>
                <tr className={r.error ? 'explained' : ''}>
                  <td className="nowrap" title={r.ended_at ?? ''}>
                    {dateTime(r.ended_at)}
                  </td>
                  <td className="num" data-label="Took">
                    {duration(seconds(r))}
                  </td>
                  <td data-label="Replaced">
                    {r.subtask ? (
                      <span className="mono">{r.subtask.slice(0, 8)}</span>
                    ) : (
                      r.refresh_mode.toLowerCase() || '–'
                    )}
                  </td>
                  <td className="num" data-label="Rows">
                    {r.error ? '–' : plain(count(r.row_count))}
                  </td>
                  <td className="num" data-label="Size">
                    {r.error ? '–' : plain(bytes(r.byte_count))}
                  </td>
                  <td className="num" data-label="Lag reached">
                    {r.lag_seconds === null ? '–' : duration(r.lag_seconds)}
                  </td>
                  <td className="mono clip-2" data-label="Worker">
                    {r.worker_id}
                  </td>
                  <td className={r.error ? 'result why-bad' : 'result muted'}>
                    {r.error ? 'failed' : r.note || 'done'}
                  </td>
                </tr>
                {r.error && (
                  <tr className="why">
                    <td colSpan={8} className="why-bad">
                      {r.error}
                    </td>
                  </tr>
                )}
              </Fragment>
            ))}
          </tbody>
        </table>
      </div>
      {records.length > 8 && !all && (
        <div className="body">
          <button type="button" className="btn quiet small" onClick={() => setAll(true)}>
            Show all {records.length}
          </button>
        </div>
      )}
    </>
  );
}

function Dependencies({ name, now }: { name: string; now: number }) {
  const tables = useTables();
  const near = relatedTables(tables.data?.tables ?? [], name);
  if (near.length < 2) return null;
  return (
    <section className="panel" aria-label="Dependencies">
      <header>
        <h2>Dependencies</h2>
      </header>
      <Graph tables={near} now={now} current={name} />
    </section>
  );
}

const firstRows = 100;

function Rows({ name, select, asOf }: { name: string; select: string; asOf: string }) {
  const rows = useQuery({
    queryKey: ['table-rows', name, asOf],
    queryFn: ({ signal }) => api.post('/api/query', { body: { sql: select, max_rows: firstRows }, signal }),
    enabled: asOf !== '',
    placeholderData: (before) => before,
  });
  return (
    <section className="panel" aria-label="Rows">
      <header>
        <h2>Columns and first rows</h2>
        {rows.data?.truncated && <span className="note muted">the first {firstRows}</span>}
      </header>
      {asOf === '' ? (
        <Empty tight title="Not built yet">
          The rows appear after the first refresh.
        </Empty>
      ) : (
        <Load from={rows} what="The rows could not be read." skeleton={<SkeletonRows rows={5} />}>
          {(a) => <Grid label="First rows" columns={a.columns} rows={a.rows as Cell[][]} height={320} />}
        </Load>
      )}
    </section>
  );
}
