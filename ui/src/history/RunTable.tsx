import type { ReactNode } from 'react';
import { Link, useLocation } from 'wouter';
import { type RunSort, useNeeds } from '../api/queries';
import { reach } from '../api/reach';
import { isTerminal, type RunRow } from '../api/types';
import { ago, count, dateTime, duration, errorRate, latency, missing, rate } from '../design/format';
import { Num } from '../design/Num';
import { SimulatedBadge, StatusBadge, VerdictBadge } from '../design/Status';
import { judged } from '../runs/known';
import { norate } from '../runs/rates';
import { pressed, sortFrom } from './sorting';
import { Tags } from './tags';

function length(r: RunRow): string {
  if (!r.start_time) return '–';
  const end = r.end_time ? Date.parse(r.end_time) : reach.known();
  return duration(Math.max(1, Math.round((end - Date.parse(r.start_time)) / 1000)));
}

/** Runs as a list: the name is the link, the whole row follows it. */
export function RunTable({
  runs,
  compact,
  action,
  picked,
  onPick,
  order = '',
  onOrder,
}: {
  runs: RunRow[];
  compact?: boolean;
  action?: (r: RunRow) => ReactNode;
  /** Offers a box on each row; picked are the ids of those that are marked. */
  picked?: string[];
  onPick?: (id: string, on: boolean) => void;
  /** The order of the list, as the address says it; a press on a column's head asks for another. */
  order?: string;
  onOrder?: (order: string) => void;
}) {
  const [, navigate] = useLocation();
  const needs = useNeeds(runs.some((r) => r.status === 'PREPARED'));
  const waits = new Map(needs.data?.waiting?.map((w) => [w.run_id, w.reason]));
  return (
    <div className="table-wrap">
      <table className="table cards">
        <thead>
          <tr>
            <Head by="name" order={order} onOrder={onOrder}>
              Run
            </Head>
            <th>Status</th>
            <Head by="qps" className="num" order={order} onOrder={onOrder}>
              Throughput
            </Head>
            <Head by="p50_ms" className="num less" order={order} onOrder={onOrder}>
              P50
            </Head>
            <Head by="p95_ms" className="num" order={order} onOrder={onOrder}>
              P95
            </Head>
            <Head by="p99_ms" className="num" order={order} onOrder={onOrder}>
              P99
            </Head>
            <Head by="error_rate" className="num" order={order} onOrder={onOrder}>
              Errors
            </Head>
            {!compact && (
              <Head by="total_ops" className="num less" order={order} onOrder={onOrder}>
                Operations
              </Head>
            )}
            {!compact && <th>Figures</th>}
            <Head by="length" className="num" order={order} onOrder={onOrder}>
              Length
            </Head>
            <Head by="created" className="num" order={order} onOrder={onOrder}>
              Started
            </Head>
            {action && (
              <th>
                <span className="sr">Actions</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {runs.map((r) => {
            const href = `/runs/${r.run_id}`;
            const s = r.scenario_config;
            // A run that ended before its load has no figures; a zero would be read as one.
            const idle = isTerminal(r.status) && r.total_ops === 0 && r.p50_ms === null;
            return (
              <tr
                key={r.run_id}
                className="link"
                onClick={(e) => {
                  if (!(e.target as HTMLElement).closest('a, button, input, label')) navigate(href);
                }}
              >
                <td>
                  <div className={onPick ? 'pick-row' : undefined}>
                    {onPick && (
                      <input
                        type="checkbox"
                        checked={picked?.includes(r.run_id) ?? false}
                        onChange={(e) => onPick(r.run_id, e.target.checked)}
                        title="Mark it for a comparison"
                        aria-label={`Compare ${r.test_name}`}
                      />
                    )}
                    <div>
                      <Link href={href} className="name" data-row>
                        {r.test_name}
                      </Link>
                      <span className="second">
                        {[
                          s?.target?.adapter,
                          s?.target?.table_name,
                          s?.workload && `${s.workload.concurrent_connections} connections`,
                        ]
                          .filter(Boolean)
                          .join(' · ')}
                      </span>
                      {!compact && <Tags tags={s?.tags} most={3} />}
                    </div>
                  </div>
                </td>
                <td>
                  <StatusBadge status={r.status} passed={r.passed} waits={waits.get(r.run_id)} />
                  {r.simulated && (
                    <>
                      {' '}
                      <SimulatedBadge of={r} />
                    </>
                  )}
                  {r.status === 'PREPARED' && waits.has(r.run_id) && (
                    <span className="second waits">{waits.get(r.run_id)}</span>
                  )}
                </td>
                <td className="num" data-label="Throughput">
                  <Num
                    q={
                      !idle && r.qps !== null && r.qps !== undefined
                        ? rate(r.qps)
                        : !isTerminal(r.status) && r.current_qps > 0
                          ? rate(r.current_qps)
                          : r.total_ops > 0 && isTerminal(r.status)
                            ? norate
                            : missing
                    }
                  />
                </td>
                <td className="num extra less" data-label="P50">
                  <Num q={latency(r.p50_ms)} />
                </td>
                <td className="num" data-label="P95">
                  <Num q={latency(r.p95_ms)} />
                </td>
                <td className="num extra" data-label="P99">
                  <Num q={latency(r.p99_ms)} />
                </td>
                <td className="num" data-label="Errors">
                  <Num q={idle ? missing : errorRate(r.error_rate)} />
                </td>
                {!compact && (
                  <td className="num extra less">
                    <Num q={r.total_ops > 0 ? count(r.total_ops) : missing} />
                  </td>
                )}
                {!compact && (
                  <td className="extra">
                    {judged(r) ? <VerdictBadge verdict={judged(r)!} of={r} /> : <span className="muted">–</span>}
                  </td>
                )}
                <td className="num nowrap extra">{length(r)}</td>
                <td className="num nowrap" title={dateTime(r.start_time ?? r.created_at)}>
                  {r.start_time ? ago(r.start_time) : <span className="muted">not started</span>}
                </td>
                {action && <td className="num act">{action(r)}</td>}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

/** The head of a column that the list can be in the order of. */
function Head(props: {
  by: RunSort;
  className?: string;
  order: string;
  onOrder?: (order: string) => void;
  children: string;
}) {
  const { by, order, onOrder } = props;
  if (!onOrder) return <th className={props.className}>{props.children}</th>;
  const now = sortFrom(order);
  const on = now?.by === by ? now.way : null;
  return (
    <th className={props.className} aria-sort={on ? (on === 'asc' ? 'ascending' : 'descending') : undefined}>
      <button type="button" className="sort" onClick={() => onOrder(pressed(order, by))}>
        {props.children}
        <span aria-hidden="true">{on === 'asc' ? ' ↑' : on === 'desc' ? ' ↓' : ''}</span>
      </button>
    </th>
  );
}
