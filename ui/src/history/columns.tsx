import type { ReactNode } from 'react';
import type { RunSort } from '../api/queries';
import { reach } from '../api/reach';
import { isTerminal, type RunRow } from '../api/types';
import { ago, count, dateTime, duration, errorRate, latency, missing, rate } from '../design/format';
import { Num } from '../design/Num';
import { VerdictBadge } from '../design/Status';
import { judged, tooShort } from '../runs/known';
import { norate } from '../runs/rates';

/** A column of the list beside the run's name and status, which are always there. */
export interface Column {
  name: RunSort | 'target';
  title: string;
  /** False for a column that the list cannot be in the order of. */
  sorts: boolean;
  /** Words stand on the left, numbers on the right. */
  words?: boolean;
  /** There without being asked for. */
  standard?: boolean;
  /** Left out, unless it is asked for, where there is little room: on a phone, and on a narrow screen. */
  room?: 'phone' | 'narrow' | 'both';
  hint?: (r: RunRow) => string;
  cell: (r: RunRow) => ReactNode;
}

/** A run that ended before its load has no figures; a zero would be read as one. */
const idle = (r: RunRow) => isTerminal(r.status) && r.total_ops === 0 && r.p50_ms === null;

function throughput(r: RunRow) {
  if (!idle(r) && r.qps !== null && r.qps !== undefined) return rate(r.qps);
  if (!isTerminal(r.status) && r.current_qps > 0) return rate(r.current_qps);
  return r.total_ops > 0 && isTerminal(r.status) ? norate : missing;
}

function length(r: RunRow): string {
  if (!r.start_time) return '–';
  const end = r.end_time ? Date.parse(r.end_time) : reach.known();
  return duration(Math.max(1, Math.round((end - Date.parse(r.start_time)) / 1000)));
}

const none = <span className="muted">–</span>;

export const columns: Column[] = [
  { name: 'qps', title: 'Throughput', sorts: true, standard: true, cell: (r) => <Num q={throughput(r)} /> },
  {
    name: 'p50_ms',
    title: 'P50',
    sorts: true,
    standard: true,
    room: 'both',
    cell: (r) => <Num q={latency(r.p50_ms)} />,
  },
  { name: 'p95_ms', title: 'P95', sorts: true, standard: true, cell: (r) => <Num q={latency(r.p95_ms)} /> },
  {
    name: 'p99_ms',
    title: 'P99',
    sorts: true,
    standard: true,
    room: 'phone',
    cell: (r) => <Num q={latency(r.p99_ms)} />,
  },
  {
    name: 'error_rate',
    title: 'Errors',
    sorts: true,
    standard: true,
    cell: (r) => <Num q={idle(r) ? missing : errorRate(r.error_rate)} />,
  },
  {
    name: 'total_ops',
    title: 'Operations',
    sorts: true,
    standard: true,
    room: 'both',
    cell: (r) => <Num q={r.total_ops > 0 ? count(r.total_ops) : missing} />,
  },
  {
    name: 'validity',
    title: 'Figures',
    sorts: true,
    words: true,
    standard: true,
    room: 'phone',
    cell: (r) => (judged(r) ? <VerdictBadge verdict={judged(r)!} of={r} short={tooShort(r)} /> : none),
  },
  {
    name: 'connections',
    title: 'Connections',
    sorts: true,
    cell: (r) => <Num q={count(r.scenario_config?.workload?.concurrent_connections)} />,
  },
  {
    name: 'target',
    title: 'Target',
    sorts: false,
    words: true,
    cell: (r) => <span className="clip">{r.scenario_config?.target?.adapter || '–'}</span>,
  },
  {
    name: 'created_by',
    title: 'Started by',
    sorts: true,
    words: true,
    hint: (r) => r.created_by ?? '',
    cell: (r) => (r.created_by ? <bdi className="clip by">{r.created_by}</bdi> : none),
  },
  { name: 'length', title: 'Length', sorts: true, standard: true, room: 'phone', cell: length },
  {
    name: 'created',
    title: 'Started',
    sorts: true,
    standard: true,
    hint: (r) => dateTime(r.start_time ?? r.created_at),
    cell: (r) => (r.start_time ? ago(r.start_time) : <span className="muted">not started</span>),
  },
  {
    name: 'ended',
    title: 'Ended',
    sorts: true,
    hint: (r) => (r.end_time ? dateTime(r.end_time) : ''),
    cell: (r) => (r.end_time ? ago(r.end_time) : none),
  },
];

/** What the list shows without being asked. */
export const standard = columns.filter((c) => c.standard).map((c) => c.name);

const brief = new Set<Column['name']>(['total_ops', 'validity']);

/** The columns of a short list. */
export const compact = standard.filter((n) => !brief.has(n));

/**
 * The columns that an address or a browser names, in their own order; those that nobody knows any more are left out.
 * Null when that names none.
 */
export function columnsFrom(text: string): Column['name'][] | null {
  const named = new Set(text.split(','));
  const known = columns.filter((c) => named.has(c.name)).map((c) => c.name);
  return known.length > 0 ? known : null;
}

const key = 'loadstone.runs.columns';

/** The columns that were chosen last in this browser; empty for the usual ones. */
export function keptColumns(): string {
  try {
    return localStorage.getItem(key) ?? '';
  } catch {
    return '';
  }
}

export function keepColumns(text: string): void {
  try {
    if (text) localStorage.setItem(key, text);
    else localStorage.removeItem(key);
  } catch {
    // They are in the address all the same.
  }
}
