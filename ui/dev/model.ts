// A simple queueing model with plausible figures for the mock. It is not part of the built page.
import type { Figures, HistogramData, KindFigures, Latency, LatencyMs, Phase, Summary } from '../src/api/types';

export const kinds = ['POINT_LOOKUP', 'RANGE_SCAN', 'INSERT', 'UPDATE'] as const;
type ModelKind = (typeof kinds)[number];
type ByKind<T> = Record<ModelKind, T>;
export type Random = () => number;
const service = { POINT_LOOKUP: 0.26, RANGE_SCAN: 0.95, INSERT: 0.62, UPDATE: 0.71 };
const spread = { POINT_LOOKUP: 0.42, RANGE_SCAN: 0.38, INSERT: 0.55, UPDATE: 0.6 };
const weights = { POINT_LOOKUP: 0.7, RANGE_SCAN: 0.1, INSERT: 0.1, UPDATE: 0.1 };

/** random is a seeded generator in 0…1 (mulberry32). */
export function random(seed: number): Random {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

function normal(rnd: Random) {
  return Math.sqrt(-2 * Math.log(1 - rnd())) * Math.cos(2 * Math.PI * rnd());
}

/** latencyOf is one latency in milliseconds at a utilisation of 0…1; one in a thousand waits for a checkpoint. */
function latencyOf(rnd: Random, kind: ModelKind, load: number) {
  const wait = 1 + (load * load) / Math.max(0.08, 1 - load) / 3;
  let ms = service[kind] * wait * Math.exp(spread[kind] * normal(rnd));
  if (rnd() < 0.0012) ms += 6 + 30 * rnd();
  return ms;
}

/** histogram counts latencies as the live payload does: base 2^(1/4), nanoseconds. */
export function histogram(latencies: number[], scale: number): HistogramData {
  const counts = new Map<number, number>();
  for (const ms of latencies) {
    const i = Math.ceil(Math.log2(ms * 1e6) * 4);
    counts.set(i, (counts.get(i) ?? 0) + scale);
  }
  const keys = [...counts.keys()].sort((a, b) => a - b);
  if (keys.length === 0) return { schema: 2, offset: 0, counts: [], sum_ns: 0, min_ns: 0, max_ns: 0 };
  const offset = keys[0]!;
  const out = new Array<number>(keys.at(-1)! - offset + 1).fill(0);
  for (const [i, n] of counts) out[i - offset] = Math.round(n);
  return {
    schema: 2,
    offset,
    counts: out,
    sum_ns: Math.round(latencies.reduce((n, x) => n + x, 0) * 1e6 * scale),
    min_ns: Math.round(Math.min(...latencies) * 1e6),
    max_ns: Math.round(Math.max(...latencies) * 1e6),
  };
}

export function quantile(sorted: number[], q: number): number {
  const at = (sorted.length - 1) * q;
  const lo = Math.floor(at);
  const hi = Math.ceil(at);
  return sorted[lo]! + (sorted[hi]! - sorted[lo]!) * (at - lo);
}

export function summarise(latencies: number[]): Latency {
  const s = latencies.toSorted((a, b) => a - b);
  if (s.length === 0) return { p50: null, p95: null, p99: null, avg: null, min: null, max: null };
  return {
    p50: quantile(s, 0.5),
    p95: quantile(s, 0.95),
    p99: quantile(s, 0.99),
    avg: s.reduce((n, x) => n + x, 0) / s.length,
    min: s[0]!,
    max: s.at(-1)!,
  };
}

function exactly(latencies: number[]): LatencyMs {
  const s = latencies.toSorted((a, b) => a - b);
  const avg = s.reduce((n, x) => n + x, 0) / s.length;
  return {
    p50: quantile(s, 0.5),
    p95: quantile(s, 0.95),
    p99: quantile(s, 0.99),
    avg,
    min: s[0]!,
    max: s.at(-1)!,
    p90: quantile(s, 0.9),
    p999: quantile(s, 0.999),
    stddev: Math.sqrt(s.reduce((n, x) => n + (x - avg) ** 2, 0) / s.length),
  };
}

/** Second is a second of load. */
export interface Second {
  qps: number;
  byKind: ByKind<number>;
  latencies: number[];
  perKind: ByKind<number[]>;
  scale: number;
  errorsPerSec: number;
}

/** second generates one second of load; t counts from the start of the warm-up. */
export function second(
  rnd: Random,
  { t, connections, errors = 0, stall = false }: { t: number; connections: number; errors?: number; stall?: boolean },
): Second {
  const ramp = Math.min(1, 0.35 + t / 4);
  const noise = 1 + 0.03 * normal(rnd) + 0.05 * Math.sin(t / 7);
  const load = Math.min(0.93, (connections / 24) * 0.8) * ramp;
  const checkpoint = stall || t % 37 === 29;
  const byKind = {} as ByKind<number>;
  const all: number[] = [];
  const perKind = {} as ByKind<number[]>;
  for (const k of kinds) {
    const n = Math.round(340 * weights[k]);
    const list = Array.from({ length: n }, () => latencyOf(rnd, k, load) * (checkpoint ? 1.9 : 1));
    all.push(...list);
    perKind[k] = list;
  }
  const mean = all.reduce((n, x) => n + x, 0) / all.length;
  const qps = Math.max(1, (connections / (mean + 0.05)) * 1000 * ramp * noise * 0.9);
  for (const k of kinds) byKind[k] = qps * weights[k] * (1 + 0.02 * normal(rnd));
  const total = Object.values(byKind).reduce((n, x) => n + x, 0);
  return {
    qps: total,
    byKind,
    latencies: all,
    perKind,
    scale: total / all.length,
    errorsPerSec: errors ? total * errors * (0.5 + rnd()) : 0,
  };
}

/** figures computes a run's figures from a sample of latencies. */
export function figures(
  rnd: Random,
  {
    seconds,
    errors,
    dropped = 0,
    lost = 0,
  }: { seconds: (Second & { phase: Phase })[]; errors: number; dropped?: number; lost?: number },
): Pick<Summary, Extract<keyof Figures, keyof Summary>> {
  const measured = seconds.filter((s) => s.phase === 'MEASUREMENT');
  const operations = Math.round(measured.reduce((n, s) => n + s.qps, 0));
  const all = measured.flatMap((s) => s.latencies);
  const per = (k: ModelKind) => measured.flatMap((s) => s.perKind[k]);
  const errorCount = Math.round(operations * errors);
  const warmupCount = Math.round(seconds.filter((s) => s.phase === 'WARMUP').reduce((n, s) => n + s.qps, 0));
  const started = operations + warmupCount;
  const scale = operations / Math.max(1, all.length);
  const buckets = new Map<number, number>();
  for (const ms of all) {
    const i = Math.ceil(Math.log2(ms) * 8);
    buckets.set(i, (buckets.get(i) ?? 0) + scale);
  }
  const slow: { k: ModelKind; ms: number }[] = [];
  for (const k of kinds)
    for (const ms of per(k)
      .toSorted((a, b) => b - a)
      .slice(0, 12))
      slow.push({ k, ms });
  const byKind = {} as ByKind<KindFigures & { latency_ms: LatencyMs }>;
  for (const k of kinds) {
    const n = Math.round(measured.reduce((m, s) => m + s.byKind[k], 0));
    const rows = k === 'RANGE_SCAN' ? n * 100 : n;
    byKind[k] = {
      count: n,
      errors: k === 'UPDATE' ? errorCount : 0,
      qps: n / Math.max(1, measured.length),
      rows,
      no_rows: k === 'UPDATE' ? Math.round(n * 0.071) : 0,
      latency_ms: exactly(per(k)),
    };
  }
  return {
    operations,
    reads: byKind.POINT_LOOKUP.count + byKind.RANGE_SCAN.count,
    writes: byKind.INSERT.count + byKind.UPDATE.count,
    duration_seconds: measured.length + 0.004,
    qps: operations / Math.max(1, measured.length),
    finished_late: 7,
    carried_over: 0,
    drain_seconds: 0.0041,
    covered_seconds: null,
    keys_replaced: 0,
    latency_split: null,
    live_percentiles: null,
    measured_from: null,
    measured_to: null,
    coordinated_omission: null,
    service_ms: null,
    schedule_lag_ms: null,
    target_qps: null,
    retries: 0,
    transactions: null,
    by_statement: (all.length ? kinds : []).map((k) => {
      const { avg, p50, p95, p99, max } = byKind[k].latency_ms;
      return {
        statement_id: k.toLowerCase(),
        kind: k,
        in_transaction: false,
        count: byKind[k].count,
        errors: byKind[k].errors,
        retries: 0,
        no_rows: 0,
        rows: byKind[k].rows,
        qps: byKind[k].qps,
        latency_ms: { avg, p50, p95, p99, max },
      };
    }),
    connections: { lost: 0, refused: 0, reopened: 0, most_missing: 0 },
    latency_ms: all.length ? exactly(all) : null,
    by_kind: byKind,
    errors: {
      count: errorCount,
      rate: operations ? errorCount / operations : 0,
      by_class: errorCount
        ? { serialization: Math.round(errorCount * 0.8), timeout: errorCount - Math.round(errorCount * 0.8) }
        : {},
      top: errorCount
        ? [
            {
              error_class: 'serialization',
              error_code: '40001',
              error_message: 'could not serialize access due to concurrent update',
              count: Math.round(errorCount * 0.8),
            },
            {
              error_class: 'timeout',
              error_code: '57014',
              error_message: 'canceling statement due to statement timeout',
              count: errorCount - Math.round(errorCount * 0.8),
            },
          ]
        : [],
    },
    accounting: {
      scheduled: started + dropped,
      dropped,
      dropped_by_reason: { max_in_flight: dropped, stopped: 0, not_dispatched: 0 },
      started,
      succeeded: started - errorCount,
      failed: errorCount,
      recorded: started - lost,
      warmup: warmupCount,
      warmup_scheduled: warmupCount,
      warmup_dropped: 0,
      statements: 0,
      balanced: lost === 0,
      problems: lost ? ['the number of records is not the number started'] : undefined,
    },
    histogram: [...buckets.entries()]
      .sort((a, b) => a[0] - b[0])
      .map(([i, n]) => ({ from_ms: 2 ** ((i - 1) / 8), to_ms: 2 ** (i / 8), count: Math.round(n) })),
    slowest: slow
      .toSorted((a, b) => b.ms - a.ms)
      .slice(0, 20)
      .map(({ k, ms }, i) => ({
        worker_id: `worker-${i % 2}`,
        connection_id: Math.floor(rnd() * 8),
        seq: Math.floor(rnd() * 40000),
        kind: k,
        statement_id: { POINT_LOOKUP: 'lookup', RANGE_SCAN: 'scan', INSERT: 'insert', UPDATE: 'update_amount' }[k],
        started_at: new Date(Date.now() - Math.floor(rnd() * 20000)).toISOString(),
        app_elapsed_ms: ms,
        rows: k === 'RANGE_SCAN' ? 100 : 1,
        success: true,
        server_query_id: '',
      })),
  };
}
