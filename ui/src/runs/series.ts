import type { HistogramData, LatencySplit, Payload, Phase, Point, Run } from '../api/types';
import { nothingHeard } from './unresponsive';
import { merge } from '../charts/histogram';

/** One second of a run as the charts draw it. */
export interface Sample {
  /** Seconds since the run's start. */
  t: number;
  /** Unix time in milliseconds. */
  at: number;
  /** The seconds that it stands for; of several, rates and P50 are means, P95 and P99 the highest. */
  span: number;
  phase: Phase;
  qps: number;
  byKind: Record<string, number>;
  p50: number | null;
  p95: number | null;
  p99: number | null;
  errors: number;
  /** Errors so far in the phase, by class. */
  byClass: Record<string, number>;
  /** Operations dropped so far in the phase; null where history does not keep it. */
  dropped: number | null;
  active: number;
  target: number;
  histogram: HistogramData | null;
  cpu: number | null;
  memory: number | null;
  hostCpu: number | null;
  hostMemory: number | null;
  /** The rate of an open loop's schedule; null in a closed one. */
  rate: number | null;
  /** P95 from when an operation was begun; null in a closed loop, where it is p95. */
  service95: number | null;
  split: LatencySplit | null;
  inFlight: number;
  waiting: number;
}

export interface Series {
  samples: Sample[];
}

/** Samples closer than this are the same second, told by history and by the socket. */
export const sameSecond = 0.5;
/** Reports whether nothing is missing between two seconds; across a gap nothing is drawn. */
export const continues = (a: Sample, b: Sample) => b.t - a.t <= 1.6 + Math.max(a.span, b.span);

function seconds(at: number, start: number, told: number): number {
  return start > 0 ? (at - start) / 1000 : told;
}

/** What history and the socket tell alike of a schedule and of where the time went. */
function detail(p: Point | Payload) {
  return {
    rate: p.target_qps ?? null,
    service95: p.service?.p95 ?? null,
    split: p.latency_split ?? null,
    inFlight: p.in_flight ?? 0,
    waiting: p.waiting ?? 0,
  };
}

/**
 * Reads a row of history, which stands for span seconds. start is the run's start in Unix milliseconds, 0 when
 * unknown.
 */
export function fromPoint(p: Point, start: number, span = 1): Sample {
  const at = Date.parse(p.timestamp);
  return {
    t: seconds(at, start, p.elapsed_seconds),
    at,
    span,
    phase: p.phase,
    qps: p.qps,
    byKind: p.qps_by_kind ?? {},
    p50: p.p50_latency_ms,
    p95: p.p95_latency_ms,
    p99: p.p99_latency_ms,
    errors: p.errors_per_sec,
    byClass: p.errors_by_class ?? {},
    dropped: null,
    active: p.active_connections,
    target: p.target_connections,
    histogram: p.histogram,
    cpu: p.cpu_pct,
    memory: p.memory_pct ?? null,
    hostCpu: p.host_cpu_pct ?? null,
    hostMemory: p.host_memory_pct ?? null,
    ...detail(p),
  };
}

/**
 * Reads a live payload. It is null while nothing is being executed, and while no run worker is heard of: that is no
 * second of load, or none of which anything is known.
 */
export function fromPayload(p: Payload, start: number): Sample | null {
  if (p.phase !== 'WARMUP' && p.phase !== 'MEASUREMENT' && p.phase !== 'COOLDOWN') return null;
  if (nothingHeard(p)) return null;
  // Reports come with what the process uses: before the first ones nothing is known, and that is no rate of zero.
  if (p.custom_metrics?.resources?.goroutines === 0) return null;
  const at = Date.parse(p.timestamp);
  const byKind: Record<string, number> = {};
  for (const [kind, r] of Object.entries(p.ops_by_kind ?? {})) byKind[kind] = r.per_sec;
  return {
    t: seconds(at, start, p.elapsed),
    at,
    span: 1,
    phase: holdsWarmup(p) ? 'WARMUP' : p.phase,
    qps: p.ops.current_per_sec,
    byKind,
    p50: p.latency.p50,
    p95: p.latency.p95,
    p99: p.latency.p99,
    errors: p.errors.per_sec,
    byClass: p.errors.by_class ?? {},
    dropped: p.errors.dropped,
    active: p.connections.active,
    target: p.connections.target,
    histogram: p.latency_histogram,
    cpu: p.custom_metrics?.resources?.cpu_pct ?? null,
    memory: p.custom_metrics?.resources?.memory_pct ?? null,
    hostCpu: p.custom_metrics?.resources?.host_cpu_pct ?? null,
    hostMemory: p.custom_metrics?.resources?.host_memory_pct ?? null,
    ...detail(p),
  };
}

/** A second that began in the warm-up is one of it, as the server stores it: no figure of the measurement has any. */
const holdsWarmup = (p: Payload) =>
  p.phase === 'MEASUREMENT' && p.timing.warmup_seconds > 0 && (p.timing.phase_elapsed_seconds ?? 1) < 1;

/** Puts a sample into a list in its place; one of a second that is known already replaces it. */
export function put(list: Sample[], s: Sample): void {
  const last = list[list.length - 1];
  if (!last || s.t >= last.t + sameSecond) {
    list.push(s);
    return;
  }
  const near = nearest(list, s.t);
  if (Math.abs(list[near]!.t - s.t) < sameSecond) list[near] = s;
  else list.splice(list[near]!.t > s.t ? near : near + 1, 0, s);
}

/** Sorts history by time, where it is not. */
export function inOrder(history: Sample[]): Sample[] {
  return history.every((s, i) => i === 0 || history[i - 1]!.t <= s.t) ? history : history.toSorted((a, b) => a.t - b.t);
}

/** Joins history with what the socket told; where both know a second, history wins. */
export function join(history: Sample[], live: Series): Series {
  const out = [...inOrder(history)];
  for (const s of live.samples) {
    const near = nearest(out, s.t);
    const was = out[near];
    if (!was || Math.abs(was.t - s.t) >= sameSecond) put(out, s);
    else if (was.dropped === null && s.dropped !== null) out[near] = { ...was, dropped: s.dropped };
  }
  return { samples: out };
}

/**
 * Two neighbours as one, as the server makes them of history: rates and P50 are means, P95 and P99 the highest,
 * histograms are added, and the rest is that of the later one.
 */
export function pair(a: Sample, b: Sample): Sample {
  const span = a.span + b.span;
  const mean = (x: number, y: number) => (x * a.span + y * b.span) / span;
  const known = (of: (x: number, y: number) => number, x: number | null, y: number | null) =>
    x === null || y === null ? (x ?? y) : of(x, y);
  const byKind: Record<string, number> = {};
  for (const k of Object.keys({ ...a.byKind, ...b.byKind })) byKind[k] = mean(a.byKind[k] ?? 0, b.byKind[k] ?? 0);
  const alike = a.histogram && b.histogram && a.histogram.schema === b.histogram.schema;
  // Written out, so that it takes no more room than one that was told.
  return {
    t: b.t,
    at: b.at,
    span,
    phase: b.phase,
    qps: mean(a.qps, b.qps),
    byKind,
    p50: known(mean, a.p50, b.p50),
    p95: known(Math.max, a.p95, b.p95),
    p99: known(Math.max, a.p99, b.p99),
    errors: mean(a.errors, b.errors),
    byClass: b.byClass,
    dropped: b.dropped,
    active: b.active,
    target: b.target,
    histogram: alike ? merge(a.histogram!, b.histogram!) : (b.histogram ?? a.histogram),
    cpu: b.cpu,
    memory: b.memory,
    hostCpu: b.hostCpu,
    hostMemory: b.hostMemory,
    rate: b.rate,
    service95: known(Math.max, a.service95, b.service95),
    split: b.split,
    inFlight: b.inFlight,
    waiting: b.waiting,
  };
}

/** About how many samples a page holds, how many of the newest stay as they came, and how many are joined at a time. */
export const held = 3600;
const fine = 600;
export const joined = 240;

/**
 * Joins the oldest of the finest samples that are old enough, two to one, where there are more than can be held. A list
 * that need not, or cannot, be shortened is returned as it is. Neighbours of two phases, with a gap between them or of
 * which one is idle stay apart.
 */
export function thinned(list: Sample[]): Sample[] {
  if (list.length < held + joined / 2) return list;
  const old = list.slice(0, -fine);
  const count = new Map<number, number>();
  for (const s of old) count.set(s.span, (count.get(s.span) ?? 0) + 1);
  const enough = [...count].filter(([, n]) => n >= joined).map(([span]) => span);
  const span = Math.min(...enough);
  const first = old.findIndex((s) => s.span === span);
  if (first < 0) return list;
  const out = list.slice(0, first);
  let i = first;
  for (; i < old.length && i < first + joined; i++) {
    const [a, b] = [old[i]!, old[i + 1]];
    const both = b && a.span === span && b.span === span && a.phase === b.phase && idle(a) === idle(b);
    out.push(both && continues(a, b) ? pair(a, b) : a);
    if (both && continues(a, b)) i++;
  }
  return out.length === i ? list : [...out, ...list.slice(i)];
}

/** Puts the finer samples of a part of a run in the place of the coarse ones there. */
export function refine(coarse: Sample[], fine: Sample[]): Sample[] {
  const first = fine[0];
  const last = fine[fine.length - 1];
  if (!first || !last) return coarse;
  const from = first.t - sameSecond;
  const to = last.t + sameSecond;
  return [...coarse.filter((s) => s.t < from), ...fine, ...coarse.filter((s) => s.t > to)];
}

/** The most seconds that a point within a part of the time stands for: what is drawn there is that coarse. */
export function resolution(c: Columns, from = 0, to = Number.POSITIVE_INFINITY): number {
  return c.rows.reduce((n, s) => (s && s.t >= from && s.t <= to ? Math.max(n, s.span) : n), 1);
}

/** Index of the sample nearest to t, by bisection; −1 when there is none. */
export function nearest(samples: Sample[], t: number): number {
  if (samples.length === 0) return -1;
  let lo = 0;
  let hi = samples.length - 1;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (samples[mid]!.t < t) lo = mid + 1;
    else hi = mid;
  }
  if (lo > 0 && Math.abs(samples[lo - 1]!.t - t) < Math.abs(samples[lo]!.t - t)) return lo - 1;
  return lo;
}

export interface Columns {
  t: number[];
  at: number[];
  rows: (Sample | null)[];
  /** The same object for columns that came to be by adding rows to others: what was read of those still holds. */
  stem: object;
}

/** Reports whether nothing was open and nothing was executed: before the first connection, and after the last. */
export const idle = (s: Sample) => s.active === 0 && s.qps === 0;

/**
 * Lays samples out along the time axis with an empty row in every gap. Idle
 * seconds at either end are left out: they would pass for a throughput of zero. In the
 * middle of a run zero is zero, and is drawn.
 */
export function columns(series: Series): Columns {
  const t: number[] = [];
  const at: number[] = [];
  const rows: (Sample | null)[] = [];
  let last: Sample | null = null;
  const first = series.samples.findIndex((s) => !idle(s));
  const end = series.samples.findLastIndex((s) => !idle(s));
  for (const s of first < 0 ? [] : series.samples.slice(first, end + 1)) {
    if (last && !continues(last, s)) {
      t.push(last.t + 1);
      at.push(last.at + 1000);
      rows.push(null);
    }
    t.push(s.t);
    at.push(s.at);
    rows.push(s);
    last = s;
  }
  return { t, at, rows, stem: {} };
}

/** Names that occur in a per-name record of any sample, in a given order, then alphabetically. */
export function names(
  series: Series,
  of: (s: Sample) => Record<string, number>,
  order: readonly string[] = [],
): string[] {
  const seen = new Set<string>();
  for (const s of series.samples) for (const [k, v] of Object.entries(of(s))) if (v > 0) seen.add(k);
  const known = order.filter((k) => seen.has(k));
  return [...known, ...[...seen].filter((k) => !order.includes(k)).sort()];
}

export interface PhaseBand {
  from: number;
  to: number;
  phase: Phase;
}

export interface Marker {
  t: number;
  label: string;
}

/** A preparation that took longer than this, in seconds, has no room on the axis of charts that show nothing of it. */
const preparedFor = 5;

/**
 * The second at which the charts of a run begin: 0, or, after a slow preparation, just before its first load, whether
 * its phases tell when that was or its samples alone.
 */
export function axisBegins(run: Parameters<typeof phases>[0], c: Columns): number {
  const told = [run.warmup_start_time, run.warmup_end_time].map(
    (t) => (Date.parse(t ?? '') - Date.parse(run.start_time ?? '')) / 1000,
  );
  const seen = c.t.slice(0, 1).map((t) => t - (c.rows[0]?.span ?? 1));
  const first = Math.min(...[...told, ...seen].filter(Number.isFinite));
  return Number.isFinite(first) && first > preparedFor ? Math.floor(first) - 1 : 0;
}

/** Where the phases of a run lie on the time axis, from the run's own times. */
export function phases(
  run: Pick<Run, 'start_time' | 'warmup_start_time' | 'warmup_end_time' | 'measurement_end_time'>,
): { bands: PhaseBand[]; markers: Marker[] } {
  const start = run.start_time ? Date.parse(run.start_time) : 0;
  const at = (iso: string | null) => (iso && start ? (Date.parse(iso) - start) / 1000 : null);
  const warm = at(run.warmup_start_time);
  const measure = at(run.warmup_end_time);
  const end = at(run.measurement_end_time);
  const bands: PhaseBand[] = [];
  const markers: Marker[] = [];
  if (warm !== null) {
    const to = measure ?? Number.POSITIVE_INFINITY;
    if (to - warm > 0.05) {
      bands.push({ from: warm, to, phase: 'WARMUP' });
      markers.push({ t: warm, label: 'warm-up' });
    }
  }
  if (measure !== null) markers.push({ t: measure, label: 'measurement' });
  if (end !== null) markers.push({ t: end, label: 'end' });
  return { bands, markers };
}
