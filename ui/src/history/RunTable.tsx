import type { ReactNode } from 'react';
import { Link, useLocation } from 'wouter';
import { type RunSort, useNeeds } from '../api/queries';
import type { RunRow } from '../api/types';
import { SimulatedBadge, StatusBadge } from '../design/Status';
import { type Column, columns, compact, standard } from './columns';
import { pressed, sortFrom } from './sorting';
import { Tags } from './tags';

/** On a phone these say what they are. */
const labelled = new Set<string>(['qps', 'p50_ms', 'p95_ms', 'error_rate']);

/** Runs as a list: the name is the link, the whole row follows it. */
export function RunTable({
  runs,
  compact: brief,
  action,
  picked,
  onPick,
  order = '',
  onOrder,
  shown,
  onPickAll,
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
  /** The columns that were asked for; without them the usual ones, as far as there is room. */
  shown?: Column['name'][];
  onPickAll?: (on: boolean) => void;
}) {
  const [, navigate] = useLocation();
  const chosen = shown !== undefined;
  const names = shown ?? (brief ? compact : standard);
  const cols = columns.filter((c) => names.includes(c.name));
  const look = (c: Column, cell: boolean) =>
    [
      c.words ? '' : 'num',
      !chosen && cell && c.room !== undefined && c.room !== 'narrow' ? 'extra' : '',
      !chosen && (c.room === 'both' || c.room === 'narrow') ? 'less' : '',
    ]
      .filter(Boolean)
      .join(' ');
  const all = picked !== undefined && runs.length > 0 && runs.every((r) => picked.includes(r.run_id));
  const needs = useNeeds(runs.some((r) => r.status === 'PREPARED'));
  const waits = new Map(needs.data?.waiting?.map((w) => [w.run_id, w.reason]));
  return (
    <div className="table-wrap">
      {onOrder && <PhoneHead order={order} onOrder={onOrder} all={all} onPickAll={onPickAll} />}
      <table className="table cards">
        <thead>
          <tr>
            <Head
              by="name"
              order={order}
              onOrder={onOrder}
              before={
                onPickAll && (
                  <input
                    type="checkbox"
                    className="pick-all"
                    checked={all}
                    onChange={(e) => onPickAll(e.target.checked)}
                    title="Mark all runs of this page"
                    aria-label="Mark all runs of this page"
                  />
                )
              }
            >
              Run
            </Head>
            <Head by="status" order={order} onOrder={onOrder}>
              Status
            </Head>
            {cols.map((c) => (
              <Head
                key={c.name}
                by={c.sorts ? (c.name as RunSort) : null}
                className={look(c, false)}
                order={order}
                onOrder={onOrder}
              >
                {c.title}
              </Head>
            ))}
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
                      {!brief && <Tags tags={s?.tags} most={3} />}
                    </div>
                  </div>
                </td>
                <td>
                  <StatusBadge
                    status={r.status}
                    passed={r.passed}
                    failed={r.failed_thresholds}
                    waits={waits.get(r.run_id)}
                  />
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
                {cols.map((c) => (
                  <td
                    key={c.name}
                    className={`${look(c, true)}${c.words ? '' : ' nowrap'}`}
                    data-label={chosen || labelled.has(c.name) ? c.title : undefined}
                    title={c.hint?.(r) || undefined}
                  >
                    {c.cell(r)}
                  </td>
                ))}
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
  by: RunSort | null;
  className?: string;
  order: string;
  onOrder?: (order: string) => void;
  before?: ReactNode;
  children: string;
}) {
  const { by, order, onOrder } = props;
  if (!onOrder || !by) return <th className={props.className}>{props.children}</th>;
  const now = sortFrom(order);
  const on = now?.by === by ? now.way : null;
  return (
    <th className={props.className} aria-sort={on ? (on === 'asc' ? 'ascending' : 'descending') : undefined}>
      {props.before}
      <button type="button" className="sort" onClick={() => onOrder(pressed(order, by))}>
        {props.children}
        <span aria-hidden="true">{on === 'asc' ? ' ↑' : on === 'desc' ? ' ↓' : ''}</span>
      </button>
    </th>
  );
}

/** What the heads of the columns are for, on a phone, which has none. */
function PhoneHead(props: {
  order: string;
  onOrder: (order: string) => void;
  all: boolean;
  onPickAll?: (on: boolean) => void;
}) {
  const { order, onOrder } = props;
  const now = sortFrom(order);
  const turned = now?.way === 'desc' ? now.by : `-${now?.by}`;
  return (
    <div className="phone-head row">
      {props.onPickAll && (
        <input
          type="checkbox"
          checked={props.all}
          onChange={(e) => props.onPickAll?.(e.target.checked)}
          aria-label="Mark all runs of this page"
        />
      )}
      <select
        className="input auto"
        aria-label="Order"
        value={now?.by ?? ''}
        onChange={(e) => onOrder(e.target.value && pressed('', e.target.value as RunSort))}
      >
        <option value="">Newest first</option>
        <option value="name">By name</option>
        <option value="status">By status</option>
        {columns
          .filter((c) => c.sorts)
          .map((c) => (
            <option key={c.name} value={c.name}>
              By {c.title}
            </option>
          ))}
      </select>
      {now && (
        <button
          type="button"
          className="btn"
          aria-label={now.way === 'desc' ? 'Greatest first: turn the order' : 'Smallest first: turn the order'}
          onClick={() => onOrder(turned)}
        >
          {now.way === 'desc' ? '↓' : '↑'}
        </button>
      )}
    </div>
  );
}
