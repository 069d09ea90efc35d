import type { HistogramData } from '../api/types';

/** bucketBounds are the lower and upper bound of bucket i, in milliseconds. */
export function bucketBounds(schema: number, i: number): [number, number] {
  const base = 2 ** schema;
  return [2 ** ((i - 1) / base) / 1e6, 2 ** (i / base) / 1e6];
}

export interface Cell {
  from: number;
  to: number;
  count: number;
}

/** cells are the filled buckets of a histogram, in milliseconds. */
export function cells(h: HistogramData | null | undefined): Cell[] {
  if (!h?.counts) return [];
  const out: Cell[] = [];
  h.counts.forEach((count, k) => {
    if (count > 0) {
      const [from, to] = bucketBounds(h.schema, h.offset + k);
      out.push({ from, to, count });
    }
  });
  return out;
}

export function total(h: HistogramData | null | undefined): number {
  return h?.counts?.reduce((a, b) => a + b, 0) ?? 0;
}

/** merge adds two histograms of the same schema. */
export function merge(a: HistogramData, b: HistogramData): HistogramData {
  if (a.schema !== b.schema) throw new Error('histograms of different schemas cannot be added');
  if (!a.counts?.length) return b;
  if (!b.counts?.length) return a;
  const offset = Math.min(a.offset, b.offset);
  const end = Math.max(a.offset + a.counts.length, b.offset + b.counts.length);
  const counts = new Array<number>(end - offset).fill(0);
  a.counts.forEach((c, i) => {
    counts[a.offset - offset + i]! += c;
  });
  b.counts.forEach((c, i) => {
    counts[b.offset - offset + i]! += c;
  });
  return {
    schema: a.schema,
    offset,
    counts,
    sum_ns: a.sum_ns + b.sum_ns,
    min_ns: Math.min(a.min_ns, b.min_ns),
    max_ns: Math.max(a.max_ns, b.max_ns),
  };
}

/**
 * quantile is the latency in milliseconds below which a share of the operations lies, computed as the server does; null
 * when empty.
 */
export function quantile(h: HistogramData | null, share: number): number | null {
  const all = total(h);
  if (!h || all === 0) return null;
  const valueAt = (rank: number): number => {
    if (rank <= 0) return h.min_ns / 1e6;
    if (rank >= all - 1) return h.max_ns / 1e6;
    let cumulative = 0;
    for (const c of cells(h)) {
      cumulative += c.count;
      if (cumulative > rank) return Math.min(Math.max(Math.sqrt(c.from * c.to), h.min_ns / 1e6), h.max_ns / 1e6);
    }
    return h.max_ns / 1e6;
  };
  const rank = share * (all - 1);
  const lower = Math.floor(rank);
  const below = valueAt(lower);
  return rank === lower ? below : below + (valueAt(lower + 1) - below) * (rank - lower);
}

/**
 * coarsen merges neighbouring buckets until at most limit are left. Every bar spans the same whole number of buckets:
 * unequal bars would distort the shape.
 */
export function coarsen<T extends { from_ms: number; to_ms: number; count: number }>(
  buckets: T[],
  limit: number,
): Cell[] {
  const filled = buckets.filter((b) => b.to_ms > 0);
  if (filled.length === 0) return [];
  const from = (b: T) => Math.log(b.from_ms > 0 ? b.from_ms : b.to_ms / 2);
  const lo = Math.min(...filled.map(from));
  const hi = Math.max(...filled.map((b) => Math.log(b.to_ms)));
  const finest = Math.max(1e-4, Math.min(...filled.map((b) => Math.log(b.to_ms) - from(b))));
  const width = finest * Math.max(1, Math.ceil((hi - lo) / finest / limit - 1e-6));
  const n = Math.max(1, Math.ceil((hi - lo) / width - 1e-6));
  const out: Cell[] = Array.from({ length: n }, (_, i) => ({
    from: Math.exp(lo + i * width),
    to: Math.exp(lo + (i + 1) * width),
    count: 0,
  }));
  for (const b of filled) {
    const middle = (from(b) + Math.log(b.to_ms)) / 2;
    out[Math.min(n - 1, Math.max(0, Math.floor((middle - lo) / width)))]!.count += b.count;
  }
  return out;
}

/**
 * firstTick is where a logarithmic axis begins: one digit and its power of ten, at least 0.001. uPlot finds no last
 * tick from 0.0097 or 0.0001 on.
 */
export function firstTick(v: number): number {
  const power = 10 ** Math.floor(Math.log10(v));
  return Math.max(1e-3, Number((Math.floor(v / power + 1e-9) * power).toPrecision(1)));
}
