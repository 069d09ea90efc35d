import type { ReactNode } from 'react';
import { Link, useLocation } from 'wouter';
import { type RunSort, useNodeDemand } from '../api/queries';
import type { RunRow } from '../api/types';
import { SimulatedBadge, StatusBadge } from '../design/Status';
import { type Column, columns, compact, standard } from './columns';
import { nextSort, sortFrom } from './sorting';
import { Tags } from './tags';

/** On a phone these columns show their label. */
const labelled = new Set<string>(['qps', 'p50_ms', 'p95_ms', 'error_rate']);

/** RunTable lists runs; the name is the link, and the whole row follows it. */
export function RunTable({
  runs,
  compact: brief,
  action,
  picked,
  onPick,
  order = '',
  onOrder,
  shownColumns,
  onPickAll,
}: {
  runs: RunRow[];
  compact?: boolean;
  action?: (r: RunRow) => ReactNode;
  /** Shows checkboxes; the ids of the selected runs. */
  picked?: string[];
  onPick?: (id: string, on: boolean) => void;
  /** The order in the address; a click on a column header changes it. */
  order?: string;
  onOrder?: (order: string) => void;
  /** The chosen columns; by default the standard ones that fit. */
  shownColumns?: Column['name'][];
  onPickAll?: (on: boolean) => void;
}) {
  const [, navigate] = useLocation();
  const chosen = shownColumns !== undefined;
  const names = shownColumns ?? (brief ? compact : standard);
  const cols = columns.filter((c) => names.includes(c.name));
  const look = (c: Column, cell: boolean) =>
    [
      c.isText ? '' : 'num',
      !chosen && cell && c.room !== undefined && c.room !== 'narrow' ? 'extra' : '',
      !chosen && (c.room === 'both' || c.room === 'narrow') ? 'less' : '',
    ]
      .filter(Boolean)
      .join(' ');
  const all = picked !== undefined && runs.length > 0 && runs.every((r) => picked.includes(r.run_id));
  const needs = useNodeDemand(runs.some((r) => r.status === 'PREPARED'));
  const waits = new Map(needs.data?.waiting?.map((w) => [w.run_id, w.reason]));
  return (
    <div className="table-wrap">
      {onOrder && <PhoneHead order={order} onOrder={onOrder} all={all} onPickAll={onPickAll} />}
      <table className="table cards">
        <thead>
          <tr>
            <SortableHead
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
                    title="Select all runs on this page"
                    aria-label="Select all runs on this page"
                  />
                )
              }
            >
              Run
            </SortableHead>
            <SortableHead by="status" order={order} onOrder={onOrder}>
              Status
            </SortableHead>
            {cols.map((c) => (
              <SortableHead
                key={c.name}
                by={c.sorts ? (c.name as RunSort) : null}
                className={look(c, false)}
                order={order}
                onOrder={onOrder}
              >
                {c.title}
              </SortableHead>
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
                        title="Select for comparison"
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
                      {!brief && <Tags tags={s?.tags} limit={3} />}
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
                    className={`${look(c, true)}${c.isText ? '' : ' nowrap'}`}
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

/** SortableHead is a sortable column header. */
function SortableHead(props: {
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
  const on = now?.by === by ? now.direction : null;
  return (
    <th className={props.className} aria-sort={on ? (on === 'asc' ? 'ascending' : 'descending') : undefined}>
      {props.before}
      <button type="button" className="sort" onClick={() => onOrder(nextSort(order, by))}>
        {props.children}
        <span aria-hidden="true">{on === 'asc' ? ' ↑' : on === 'desc' ? ' ↓' : ''}</span>
      </button>
    </th>
  );
}

/** PhoneHead replaces the column headers on a phone. */
function PhoneHead(props: {
  order: string;
  onOrder: (order: string) => void;
  all: boolean;
  onPickAll?: (on: boolean) => void;
}) {
  const { order, onOrder } = props;
  const now = sortFrom(order);
  const turned = now?.direction === 'desc' ? now.by : `-${now?.by}`;
  return (
    <div className="phone-head row">
      {props.onPickAll && (
        <input
          type="checkbox"
          checked={props.all}
          onChange={(e) => props.onPickAll?.(e.target.checked)}
          aria-label="Select all runs on this page"
        />
      )}
      <select
        className="input auto"
        aria-label="Order"
        value={now?.by ?? ''}
        onChange={(e) => onOrder(e.target.value && nextSort('', e.target.value as RunSort))}
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
          aria-label={now.direction === 'desc' ? 'Descending: reverse the order' : 'Ascending: reverse the order'}
          onClick={() => onOrder(turned)}
        >
          {now.direction === 'desc' ? '↓' : '↑'}
        </button>
      )}
    </div>
  );
}
