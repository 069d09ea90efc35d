import { useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { useEnrichment, useEnrichmentAction } from '../api/queries';
import type {
  AggregateStatements,
  Enrichment,
  Payload,
  RunDetail,
  ServerFigures,
  ServerSplit,
  Summary,
} from '../api/types';
import { Term } from '../design/Controls';
import { capitalize, count, dateTime, exact, humanize, latency, percent, plain, timeOfDay } from '../design/format';
import { Icon } from '../design/icons';
import { Num } from '../design/Num';
import { Empty, Notice, ProblemNotice } from '../design/States';
import './enrichment.css';

export const isEnriching = (e: Enrichment | undefined) => e?.status === 'PENDING' || e?.status === 'RUNNING';

const parts: { key: keyof ServerSplit; label: string; color: string; tip: string }[] = [
  {
    key: 'compilation_ms',
    label: 'Compilation',
    color: 'var(--k-point_lookup)',
    tip: 'Parsing and planning on the server.',
  },
  {
    key: 'queued_ms',
    label: 'Queue',
    color: 'var(--warn-mark)',
    tip: 'Waiting for a warehouse that is overloaded, starting or under repair.',
  },
  { key: 'blocked_ms', label: 'Blocked', color: 'var(--e-1)', tip: 'Waiting for another transaction.' },
  { key: 'execution_ms', label: 'Execution', color: 'var(--accent)', tip: 'Executing on the warehouse.' },
  {
    key: 'other_ms',
    label: 'Other server time',
    color: 'var(--k-transaction)',
    tip: 'Server time that the history does not break down.',
  },
  {
    key: 'overhead_ms',
    label: 'Network',
    color: 'var(--k-generic_sql)',
    tip: 'What the client saw minus the server’s total: network, front end, driver.',
  },
];

const tones: Record<Enrichment['status'], 'plain' | 'ok' | 'warn' | 'bad'> = {
  PENDING: 'plain',
  RUNNING: 'plain',
  COMPLETED: 'ok',
  PARTIAL: 'warn',
  SKIPPED: 'plain',
  FAILED: 'bad',
};

/** EnrichmentView compares the target's query history with the client's figures. */
export function EnrichmentView({ run, live, s }: { run: RunDetail; live: Payload | null; s: Summary }) {
  const qc = useQueryClient();
  const polled = useEnrichment(run.run_id, run.enrichment, live === null);
  const e = live?.enrichment ?? polled.data;
  const act = useEnrichmentAction(run.run_id);
  const under = isEnriching(e);
  // The new files are in the run's artifacts; refetch them at the end.
  useEffect(() => {
    if (!under) void qc.invalidateQueries({ queryKey: ['run', run.run_id] });
  }, [under, qc, run.run_id]);

  if (e.status === 'SKIPPED')
    return (
      <section className="panel">
        <Empty icon="chart" title="No server-side figures">
          {e.reason}
        </Empty>
      </section>
    );
  const kinds = Object.entries(e.by_kind ?? {}).sort((a, b) => b[1].executions - a[1].executions);
  return (
    <div className="stack">
      <section className="panel">
        <header>
          <h2 className="h3">
            <Term
              tip={
                "After a run the server reads its executions from the target's query history and joins them " +
                'by query id.'
              }
            >
              Enrichment
            </Term>
          </h2>
          <span className={`chip judged ${tones[e.status]}`}>{capitalize(humanize(e.status))}</span>
          <div className="end">
            {under ? (
              <button type="button" className="btn" disabled={act.isPending} onClick={() => act.mutate('stop')}>
                <Icon name="stop" /> Stop asking
              </button>
            ) : (
              e.retryable && (
                <button type="button" className="btn" disabled={act.isPending} onClick={() => act.mutate('retry')}>
                  <Icon name="refresh" /> Ask again
                </button>
              )
            )}
          </div>
        </header>
        <div className="body stack tightly">
          {act.error && <ProblemNotice error={act.error} />}
          <p className="muted">
            {under
              ? `${exact(e.matched)} of ${exact(e.executions)} executions found in ${exact(e.polls)} ` +
                `polls.${e.next_poll_at ? ` The history is asked again at ${timeOfDay(e.next_poll_at)}.` : ''}`
              : e.reason}
            {!under &&
              e.ended_at &&
              ` Read ${e.polls} ${e.polls === 1 ? 'time' : 'times'}, last ${dateTime(e.ended_at)}.`}
          </p>
          {kinds.length > 0 && (
            <div className="table-wrap" tabIndex={0} role="group" aria-label="Enrichment, scrollable">
              <table className="table">
                <thead>
                  <tr>
                    <th>Kind</th>
                    <th className="num">Executions</th>
                    <th className="num">Found</th>
                    <th>
                      <Term tip="Found executions over those that have a query id, including the warm-up.">Ratio</Term>
                    </th>
                    <th className="num" />
                  </tr>
                </thead>
                <tbody>
                  {kinds.map(([kind, k]) => (
                    <tr key={kind}>
                      <td>
                        <span className="row nowrap">
                          <i className="swatch" style={{ background: `var(--k-${kind.toLowerCase()})` }} />
                          {capitalize(humanize(kind))}
                        </span>
                      </td>
                      <td className="num">{exact(k.executions)}</td>
                      <td className="num">{exact(k.matched)}</td>
                      <td>
                        <span className="share">
                          <i style={{ width: `${k.ratio * 100}%`, background: `var(--k-${kind.toLowerCase()})` }} />
                        </span>
                      </td>
                      <td className="num">
                        <Num q={percent(Math.floor(k.ratio * 1000) / 10)} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
          {e.without_id > 0 && (
            <p className="muted">
              {plain(count(e.without_id))} executions have no query id: they did not reach the server.
            </p>
          )}
          {(e.notes ?? []).map((n) => (
            <Notice key={n}>{n}</Notice>
          ))}
        </div>
      </section>
      {e.total && (
        <Split of={e.total} kinds={kinds.flatMap(([k, v]) => (v.figures ? [[k, v.figures] as const] : []))} />
      )}
      {e.total && <SideBySide total={e.total} s={s} />}
      {e.aggregate && <Aggregates a={e.aggregate} />}
    </div>
  );
}

/** Split breaks down the mean latency of matched executions, for all and each kind, on one scale. */
function Split({ of, kinds }: { of: ServerFigures; kinds: (readonly [string, ServerFigures])[] }) {
  const rows: (readonly [string, ServerFigures])[] = [['All', of], ...kinds];
  const maxLatency = Math.max(...rows.map(([, f]) => f.client_ms.avg), 1e-9);
  const shown = parts.filter((p) => rows.some(([, f]) => Math.abs(f.split[p.key]) > 5e-4));
  return (
    <section className="panel">
      <header>
        <h2 className="h3">Server time by phase</h2>
        <span className="muted note">means over the found executions of the measurement</span>
      </header>
      <div className="body stack">
        <div className="split-legend">
          {shown.map((p) => (
            <span key={p.key} className="row nowrap">
              <i className="swatch" style={{ background: p.color }} />
              <Term tip={p.tip}>{p.label}</Term>
            </span>
          ))}
        </div>
        {rows.map(([name, f]) => (
          <div key={name} className="split-row">
            <span>{name === 'All' ? 'All kinds' : capitalize(humanize(name))}</span>
            <span
              className="split-bar"
              role="img"
              aria-label={shown.map((p) => `${p.label} ${plain(latency(f.split[p.key]))}`).join(', ')}
              style={{ width: `${(f.client_ms.avg / maxLatency) * 100}%` }}
            >
              {shown.map((p) => (
                <i
                  key={p.key}
                  title={`${p.label}: ${plain(latency(f.split[p.key]))}`}
                  style={{ width: `${(Math.max(0, f.split[p.key]) / f.client_ms.avg) * 100}%`, background: p.color }}
                />
              ))}
            </span>
            <Num q={latency(f.client_ms.avg)} />
          </div>
        ))}
        <div className="table-wrap" tabIndex={0} role="group" aria-label="Server time by phase, scrollable">
          <table className="table">
            <thead>
              <tr>
                <th>Kind</th>
                {shown.map((p) => (
                  <th key={p.key} className="num">
                    {p.label}
                  </th>
                ))}
                <th className="num">Client</th>
              </tr>
            </thead>
            <tbody>
              {rows.map(([name, f]) => (
                <tr key={name}>
                  <td>{name === 'All' ? 'All kinds' : capitalize(humanize(name))}</td>
                  {shown.map((p) => (
                    <td key={p.key} className="num">
                      <Num q={latency(f.split[p.key])} />
                    </td>
                  ))}
                  <td className="num">
                    <Num q={latency(f.client_ms.avg)} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </div>
    </section>
  );
}

const columns = ['p50', 'p90', 'p95', 'p99', 'p999', 'max', 'avg'] as const;
const heads = { p50: 'P50', p90: 'P90', p95: 'P95', p99: 'P99', p999: 'P99.9', max: 'max', avg: 'mean' };

function SideBySide({ total, s }: { total: ServerFigures; s: Summary }) {
  const rows = [
    {
      name: 'Client, every execution',
      tip: 'The exact figures of the run.',
      n: s.operations,
      of: s.service_ms ?? s.latency_ms,
    },
    {
      name: 'Client, found executions',
      tip: 'Client-side figures of the executions found in the history.',
      n: total.matched,
      of: total.client_ms,
    },
    {
      name: 'Server, found executions',
      tip: 'Server-side figures from the history, in whole milliseconds.',
      n: total.matched,
      of: total.server_ms,
    },
  ];
  return (
    <section className="panel table-wrap" tabIndex={0} aria-label="Client and server, side by side">
      <header>
        <h2 className="h3">Client and server, side by side</h2>
        {total.matched < s.operations * 0.9 && (
          <span className="muted note">the history contains only part of the executions, and not a random part</span>
        )}
      </header>
      <table className="table">
        <thead>
          <tr>
            <th>Seen by</th>
            <th className="num">Executions</th>
            {columns.map((c) => (
              <th key={c} className="num">
                {heads[c]}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((r) => (
            <tr key={r.name}>
              <td>
                <Term tip={r.tip}>{r.name}</Term>
              </td>
              <td className="num">{exact(r.n)}</td>
              {columns.map((c) => (
                <td key={c} className="num">
                  <Num q={latency(r.of?.[c])} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Aggregates({ a }: { a: NonNullable<Enrichment['aggregate']> }) {
  const rows = a.rows ?? [];
  return (
    <section className="panel">
      <header>
        <h2 className="h3">
          <Term tip="AGGREGATE_QUERY_HISTORY contains every execution, aggregated by minute and statement.">
            The account’s aggregates
          </Term>
        </h2>
        <span className={`chip judged ${tones[a.status]}`}>{capitalize(humanize(a.status))}</span>
      </header>
      <div className="body stack tightly">
        <p className="muted">
          {a.reason} {a.status === 'PENDING' && a.available_at && `Available by ${dateTime(a.available_at)}.`}{' '}
          {a.next_poll_at && `The server reads again ${dateTime(a.next_poll_at)}.`}
        </p>
        {rows.length > 0 && (
          <>
            <p>
              {exact(a.calls)} calls of {exact(a.expected)} executions, including the warm-up;{' '}
              <strong className={a.throttled > 0 ? 'bad' : undefined}>{exact(a.throttled)} throttled</strong>.
            </p>
            <div className="table-wrap" tabIndex={0} role="group" aria-label="Queries, scrollable">
              <table className="table">
                <thead>
                  <tr>
                    <th>Statement</th>
                    <th className="num">Calls</th>
                    <th className="num">Throttled</th>
                    <th className="num">Server P50</th>
                    <th className="num">Client P50</th>
                    <th className="num">Server P90</th>
                    <th className="num">Server P99</th>
                    <th className="num">Client P99</th>
                    <th className="num">Server max</th>
                    <th className="num">Client max</th>
                  </tr>
                </thead>
                <tbody>
                  {rows.map((r, i) => (
                    <AggregateRow key={r.statement_id || i} r={r} />
                  ))}
                </tbody>
              </table>
            </div>
            <p className="muted note">
              Percentiles of several minutes cannot be merged exactly. Server percentiles are means of the minutes,
              weighted by calls.
            </p>
          </>
        )}
      </div>
    </section>
  );
}

function AggregateRow({ r }: { r: AggregateStatements }) {
  const cells = [r.p50_ms, r.client_ms?.p50, r.p90_ms, r.p99_ms, r.client_ms?.p99, r.max_ms, r.client_ms?.max];
  return (
    <tr>
      <td>
        {r.statement_id ? (
          <code>{r.statement_id}</code>
        ) : (
          <span className="muted">{humanize(r.query_type)}, not of the run’s list</span>
        )}
      </td>
      <td className="num">{exact(r.calls)}</td>
      <td className="num">{exact(r.throttled)}</td>
      {cells.map((v, i) => (
        <td key={i} className="num">
          <Num q={latency(v)} />
        </td>
      ))}
    </tr>
  );
}
