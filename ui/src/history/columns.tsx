import type { ReactNode } from 'react';
import type { RunSort } from '../api/queries';
import { connectivity } from '../api/connectivity';
import { isTerminal, type RunRow } from '../api/types';
import { ago, count, dateTime, duration, errorRate, latency, missing, rate } from '../design/format';
import { Num } from '../design/Num';
import { VerdictBadge } from '../design/Status';
import { isTooShort, listedVerdict } from '../runs/validity';
import { noRate } from '../runs/rates';

/** Column is a column besides name and status. */
export interface Column {
  name: RunSort | 'target';
  title: string;
  /** False when the server cannot sort by it. */
  sorts: boolean;
  /** Text is aligned left, numbers right. */
  isText?: boolean;
  /** Shown by default. */
  standard?: boolean;
  /** Hidden by default on small screens. */
  room?: 'phone' | 'narrow' | 'both';
  hint?: (r: RunRow) => string;
  cell: (r: RunRow) => ReactNode;
}

/** hadNoLoad: a run that ended before its load has no figures, and a zero would be misread. */
const hadNoLoad = (r: RunRow) => isTerminal(r.status) && r.total_ops === 0 && r.p50_ms === null;

function throughput(r: RunRow) {
  if (!hadNoLoad(r) && r.qps !== null && r.qps !== undefined) return rate(r.qps);
  if (!isTerminal(r.status) && r.current_qps > 0) return rate(r.current_qps);
  return r.total_ops > 0 && isTerminal(r.status) ? noRate : missing;
}

function length(r: RunRow): string {
  if (!r.start_time) return '–';
  const end = r.end_time ? Date.parse(r.end_time) : connectivity.lastContact();
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
    cell: (r) => <Num q={hadNoLoad(r) ? missing : errorRate(r.error_rate)} />,
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
    isText: true,
    standard: true,
    room: 'phone',
    cell: (r) => (listedVerdict(r) ? <VerdictBadge verdict={listedVerdict(r)!} of={r} short={isTooShort(r)} /> : none),
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
    isText: true,
    cell: (r) => <span className="clip">{r.scenario_config?.target?.adapter || '–'}</span>,
  },
  {
    name: 'created_by',
    title: 'Started by',
    sorts: true,
    isText: true,
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

/** standard is the default set. */
export const standard = columns.filter((c) => c.standard).map((c) => c.name);

const brief = new Set<Column['name']>(['total_ops', 'validity']);

/** compact is the set of a short list. */
export const compact = standard.filter((n) => !brief.has(n));

/** columnsFrom parses columns and drops unknown ones; null when none is left. */
export function columnsFrom(text: string): Column['name'][] | null {
  const named = new Set(text.split(','));
  const known = columns.filter((c) => named.has(c.name)).map((c) => c.name);
  return known.length > 0 ? known : null;
}

const key = 'loadstone.runs.columns';

/** readSavedColumns returns the columns last chosen in this browser; '' for the default. */
export function readSavedColumns(): string {
  try {
    return localStorage.getItem(key) ?? '';
  } catch {
    return '';
  }
}

export function saveColumns(text: string): void {
  try {
    if (text) localStorage.setItem(key, text);
    else localStorage.removeItem(key);
  } catch {
    // Without storage the address still has them.
  }
}
