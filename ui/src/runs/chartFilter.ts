// The filter of a run's charts: a kind, a statement or a run worker, for which telemetry has rates and latencies per
// second.
import type { HistogramData } from '../api/types';
import type { SeriesJson } from '../explore/promqlClient';
import type { Sample } from './series';

type FilterKind = 'kind' | 'statement' | 'worker';

export interface ChartFilter {
  of: FilterKind;
  value: string;
}

/** filterFromText parses the address ("kind:INSERT"); null for the whole run. */
export function filterFromText(text: string): ChartFilter | null {
  const i = text.indexOf(':');
  const of = text.slice(0, i);
  const value = text.slice(i + 1);
  return value !== '' && (of === 'kind' || of === 'statement' || of === 'worker') ? { of, value } : null;
}

export const filterText = (o: ChartFilter | null) => (o ? `${o.of}:${o.value}` : '');

/** maxPoints limits a filtered chart. */
const maxPoints = 300;

/** stepOf is the seconds per point. */
export const stepOf = (seconds: number) => Math.max(1, Math.ceil(seconds / maxPoints));

const metrics: Record<FilterKind, string> = {
  kind: 'loadstone',
  statement: 'loadstone_statement',
  worker: 'loadstone_worker',
};

export type SeriesName = 'rates' | 'failed' | 'latency' | 'load';

/** queries are the PromQL queries of a filter; a rate covers one point. */
export function queries(run: string, o: ChartFilter, step: number): Partial<Record<SeriesName, string>> {
  const of = `run=${JSON.stringify(run)},${o.of}=${JSON.stringify(o.value)}`;
  const over = (metric: string) => `rate(${metrics[o.of]}_${metric}{${of}}[${step + 1}s])`;
  const by = o.of === 'worker' ? '' : ' by (kind)';
  const load = ['connections', 'target_connections', 'waiting_operations', 'target_operations_per_second']
    .map((n) => `label_replace(sum(loadstone_${n}{${of}}), "of", "${n}", "", "")`)
    .concat(
      `label_replace(sum(loadstone_dropped_operations_total{${of},phase="measurement"}), "of", "dropped", "", "")`,
    );
  return {
    rates: `sum${by}(${over('operations_total')})`,
    failed: `sum(${over('failed_operations_total')})`,
    latency: `sum(${over('latency_seconds')})`,
    ...(o.of === 'worker' ? { load: load.join(' or ') } : {}),
  };
}

type Bucket = [from: number, to: number, count: number];

const bucketsOf = (s: SeriesJson['histogram']): Bucket[] =>
  (s?.[1].buckets ?? []).map(([, from, to, n]) => [Number(from), Number(to), Number(n)]);

/** quantile is in milliseconds, interpolated on a logarithmic axis inside its bucket. */
export function quantile(buckets: Bucket[], q: number): number | null {
  const all = buckets.reduce((n, b) => n + b[2], 0);
  if (!(all > 0)) return null;
  let rank = q * all;
  for (const [from, to, n] of buckets) {
    if (rank <= n) return 1000 * (from > 0 ? from * (to / from) ** (rank / n) : to * (rank / n));
    rank -= n;
  }
  return 1000 * buckets.at(-1)![1];
}

/** schema is the heat map's resolution: four rows per doubling. */
const schema = 2;

/** coarseHistogram converts buckets in seconds for the heat map. */
export function coarseHistogram(buckets: Bucket[], seconds: number): HistogramData | null {
  const counts = new Map<number, number>();
  for (const [from, to, n] of buckets) {
    const middle = Math.sqrt(Math.max(from, to / 2) * to) * 1e9;
    if (!(middle > 0)) continue;
    const i = Math.ceil(Math.log2(middle) * 2 ** schema - 1e-9);
    counts.set(i, (counts.get(i) ?? 0) + n * seconds);
  }
  if (counts.size === 0) return null;
  const offset = Math.min(...counts.keys());
  const length = Math.max(...counts.keys()) - offset + 1;
  return {
    schema,
    offset,
    counts: Array.from({ length }, (_, k) => Math.round(counts.get(offset + k) ?? 0)),
    sum_ns: 0,
    min_ns: 0,
    max_ns: 0,
  };
}

/** SeriesByName is the result of each query. */
export type SeriesByName = Partial<Record<SeriesName, SeriesJson[]>>;

/**
 * samplesOf converts the series to chart samples. start is the run's, in Unix milliseconds; around returns the whole
 * run's sample at a time, for its phase.
 */
export function samplesOf(
  answers: SeriesByName,
  start: number,
  step: number,
  around: (t: number) => Sample | null,
): Sample[] {
  const out = new Map<number, Sample>();
  const at = (seconds: number): Sample => {
    let s = out.get(seconds);
    if (!s) {
      const t = seconds - start / 1000;
      s = {
        t,
        at: seconds * 1000,
        span: step,
        phase: around(t)?.phase ?? 'MEASUREMENT',
        qps: 0,
        byKind: {},
        p50: null,
        p95: null,
        p99: null,
        errors: 0,
        byClass: {},
        dropped: null,
        active: 0,
        target: 0,
        histogram: null,
        cpu: null,
        memory: null,
        hostCpu: null,
        hostMemory: null,
        rate: null,
        service95: null,
        split: null,
        inFlight: 0,
        waiting: 0,
      };
      out.set(seconds, s);
    }
    return s;
  };
  for (const series of answers.rates ?? [])
    for (const [t, v] of series.values ?? []) {
      const s = at(t);
      s.qps += Number(v);
      if (series.metric.kind) s.byKind[series.metric.kind] = Number(v);
    }
  for (const series of answers.failed ?? []) for (const [t, v] of series.values ?? []) at(t).errors += Number(v);
  for (const series of answers.latency ?? [])
    for (const h of series.histograms ?? []) {
      const buckets = bucketsOf(h);
      const s = at(h[0]);
      s.p50 = quantile(buckets, 0.5);
      s.p95 = quantile(buckets, 0.95);
      s.p99 = quantile(buckets, 0.99);
      s.histogram = coarseHistogram(buckets, step);
    }
  for (const series of answers.load ?? [])
    for (const [t, v] of series.values ?? []) {
      const s = at(t);
      const n = Number(v);
      if (series.metric.of === 'connections') s.active = n;
      else if (series.metric.of === 'target_connections') s.target = n;
      else if (series.metric.of === 'waiting_operations') s.waiting = n;
      else if (series.metric.of === 'target_operations_per_second') s.rate = n;
      else s.dropped = n;
    }
  return [...out.values()].sort((a, b) => a.t - b.t);
}
