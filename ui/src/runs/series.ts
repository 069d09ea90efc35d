import type { HistogramData, LatencySplit, Payload, Phase, Point, Run } from '../api/types';
import { allSilent } from './unresponsive';
import { merge } from '../charts/histogram';

/** Sample is one second of a run in the charts. */
export interface Sample {
  /** Seconds since the run's start. */
  t: number;
  /** Unix time in milliseconds. */
  at: number;
  /** The seconds it covers; over several, rates and P50 are means, P95 and P99 are maxima. */
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
  /** Operations dropped so far in the phase; null when history lacks it. */
  dropped: number | null;
  active: number;
  target: number;
  histogram: HistogramData | null;
  cpu: number | null;
  memory: number | null;
  hostCpu: number | null;
  hostMemory: number | null;
  /** The scheduled rate of an open loop; null in a closed one. */
  rate: number | null;
  /** P95 from the start of an operation; null in a closed loop, where it equals p95. */
  service95: number | null;
  split: LatencySplit | null;
  inFlight: number;
  waiting: number;
}

export interface Series {
  samples: Sample[];
}

/** sameSecondWithin: closer samples are the same second, from history and the socket. */
export const sameSecondWithin = 0.5;
/** isContiguous reports that no second is missing between two samples; lines do not cross gaps. */
export const isContiguous = (a: Sample, b: Sample) => b.t - a.t <= 1.6 + Math.max(a.span, b.span);

function seconds(at: number, start: number, elapsed: number): number {
  return start > 0 ? (at - start) / 1000 : elapsed;
}

/** detail reads what history and payloads have in common about schedule and latency split. */
function detail(p: Point | Payload) {
  return {
    rate: p.target_qps ?? null,
    service95: p.service?.p95 ?? null,
    split: p.latency_split ?? null,
    inFlight: p.in_flight ?? 0,
    waiting: p.waiting ?? 0,
  };
}

/** fromPoint converts a history row of span seconds. start is the run's, in Unix milliseconds, 0 when unknown. */
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

/** fromPayload converts a live payload; null without load, and while no run worker reports. */
export function fromPayload(p: Payload, start: number): Sample | null {
  if (p.phase !== 'WARMUP' && p.phase !== 'MEASUREMENT' && p.phase !== 'COOLDOWN') return null;
  if (allSilent(p)) return null;
  // Before the first reports with resource usage, rates are unknown, not zero.
  if (p.custom_metrics?.resources?.goroutines === 0) return null;
  const at = Date.parse(p.timestamp);
  const byKind: Record<string, number> = {};
  for (const [kind, r] of Object.entries(p.ops_by_kind ?? {})) byKind[kind] = r.per_sec;
  return {
    t: seconds(at, start, p.elapsed),
    at,
    span: 1,
    phase: isWarmup(p) ? 'WARMUP' : p.phase,
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

/** isWarmup: a second that began in the warm-up belongs to it, as in the store. */
const isWarmup = (p: Payload) =>
  p.phase === 'MEASUREMENT' && p.timing.warmup_seconds > 0 && (p.timing.phase_elapsed_seconds ?? 1) < 1;

/** insertSample adds a sample in order; an existing one of the same second replaces it. */
export function insertSample(list: Sample[], s: Sample): void {
  const last = list[list.length - 1];
  if (!last || s.t >= last.t + sameSecondWithin) {
    list.push(s);
    return;
  }
  const near = nearest(list, s.t);
  if (Math.abs(list[near]!.t - s.t) < sameSecondWithin) list[near] = s;
  else list.splice(list[near]!.t > s.t ? near : near + 1, 0, s);
}

/** sortedByTime copies history only when it is unsorted. */
function sortedByTime(history: Sample[]): Sample[] {
  return history.every((s, i) => i === 0 || history[i - 1]!.t <= s.t) ? history : history.toSorted((a, b) => a.t - b.t);
}

/** joinHistory merges history and socket samples; history wins. */
export function joinHistory(history: Sample[], live: Series): Series {
  const out = [...sortedByTime(history)];
  for (const s of live.samples) {
    const near = nearest(out, s.t);
    const was = out[near];
    if (!was || Math.abs(was.t - s.t) >= sameSecondWithin) insertSample(out, s);
    else if (was.dropped === null && s.dropped !== null) out[near] = { ...was, dropped: s.dropped };
  }
  return { samples: out };
}

/**
 * mergePair merges two neighbours as the server does: rates and P50 are means, P95 and P99 maxima, histograms are
 * added, the rest comes from the later one.
 */
export function mergePair(a: Sample, b: Sample): Sample {
  const span = a.span + b.span;
  const mean = (x: number, y: number) => (x * a.span + y * b.span) / span;
  const known = (of: (x: number, y: number) => number, x: number | null, y: number | null) =>
    x === null || y === null ? (x ?? y) : of(x, y);
  const byKind: Record<string, number> = {};
  for (const k of Object.keys({ ...a.byKind, ...b.byKind })) byKind[k] = mean(a.byKind[k] ?? 0, b.byKind[k] ?? 0);
  const alike = a.histogram && b.histogram && a.histogram.schema === b.histogram.schema;
  // Written out field by field, so that it takes no more memory than a received sample.
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

/**
 * maxSamples is about how many samples a page holds; samplesKeptFine of the newest stay unmerged; samplesPerJoin are
 * merged at a time.
 */
export const maxSamples = 3600;
const samplesKeptFine = 600;
export const samplesPerJoin = 240;

/**
 * thin merges pairs of the oldest fine samples above the limit. A list that need not or cannot shrink is returned as
 * is. Neighbours in different phases, across a gap, or with one idle are not merged.
 */
export function thin(list: Sample[]): Sample[] {
  if (list.length < maxSamples + samplesPerJoin / 2) return list;
  const old = list.slice(0, -samplesKeptFine);
  const count = new Map<number, number>();
  for (const s of old) count.set(s.span, (count.get(s.span) ?? 0) + 1);
  const enough = [...count].filter(([, n]) => n >= samplesPerJoin).map(([span]) => span);
  const span = Math.min(...enough);
  const first = old.findIndex((s) => s.span === span);
  if (first < 0) return list;
  const out = list.slice(0, first);
  let i = first;
  for (; i < old.length && i < first + samplesPerJoin; i++) {
    const [a, b] = [old[i]!, old[i + 1]];
    const both = b && a.span === span && b.span === span && a.phase === b.phase && isIdle(a) === isIdle(b);
    out.push(both && isContiguous(a, b) ? mergePair(a, b) : a);
    if (both && isContiguous(a, b)) i++;
  }
  return out.length === i ? list : [...out, ...list.slice(i)];
}

/** refine replaces coarse samples by finer ones of a part. */
export function refine(coarse: Sample[], fine: Sample[]): Sample[] {
  const first = fine[0];
  const last = fine[fine.length - 1];
  if (!first || !last) return coarse;
  const from = first.t - sameSecondWithin;
  const to = last.t + sameSecondWithin;
  return [...coarse.filter((s) => s.t < from), ...fine, ...coarse.filter((s) => s.t > to)];
}

/** resolution is the largest span of a point within a range. */
export function resolution(c: Columns, from = 0, to = Number.POSITIVE_INFINITY): number {
  return c.rows.reduce((n, s) => (s && s.t >= from && s.t <= to ? Math.max(n, s.span) : n), 1);
}

/** nearest is the index of the sample nearest to t, by bisection; −1 when empty. */
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
  /** The same object while rows are only appended, so that derived data can be reused. */
  cacheKey: object;
}

/** isIdle: no connection was open and nothing executed, as before the first connection and after the last. */
export const isIdle = (s: Sample) => s.active === 0 && s.qps === 0;

/**
 * columns lays samples out on the time axis with an empty row in every gap. Idle seconds at either end are omitted:
 * they would look like zero throughput. In the middle, zero is drawn.
 */
export function columns(series: Series): Columns {
  const t: number[] = [];
  const at: number[] = [];
  const rows: (Sample | null)[] = [];
  let last: Sample | null = null;
  const first = series.samples.findIndex((s) => !isIdle(s));
  const end = series.samples.findLastIndex((s) => !isIdle(s));
  for (const s of first < 0 ? [] : series.samples.slice(first, end + 1)) {
    if (last && !isContiguous(last, s)) {
      t.push(last.t + 1);
      at.push(last.at + 1000);
      rows.push(null);
    }
    t.push(s.t);
    at.push(s.at);
    rows.push(s);
    last = s;
  }
  return { t, at, rows, cacheKey: {} };
}

/** names lists the names in a per-name record of any sample: in the given order, then alphabetically. */
export function names(
  series: Series,
  of: (s: Sample) => Record<string, number>,
  order: readonly string[] = [],
): string[] {
  const used = new Set<string>();
  for (const s of series.samples) for (const [k, v] of Object.entries(of(s))) if (v > 0) used.add(k);
  const known = order.filter((k) => used.has(k));
  return [...known, ...[...used].filter((k) => !order.includes(k)).sort()];
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

/** preparedFor: a longer preparation, in seconds, is left off the chart axis. */
const preparedFor = 5;

/** axisBegins is the first second of a run's charts: 0, or just before the first load after a slow preparation. */
export function axisBegins(run: Parameters<typeof phases>[0], c: Columns): number {
  const warmupTimes = [run.warmup_start_time, run.warmup_end_time].map(
    (t) => (Date.parse(t ?? '') - Date.parse(run.start_time ?? '')) / 1000,
  );
  const firstSecond = c.t.slice(0, 1).map((t) => t - (c.rows[0]?.span ?? 1));
  const first = Math.min(...[...warmupTimes, ...firstSecond].filter(Number.isFinite));
  return Number.isFinite(first) && first > preparedFor ? Math.floor(first) - 1 : 0;
}

/** phases returns the run's phases on the time axis. */
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
