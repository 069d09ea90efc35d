import type { HistogramBucket, LatencyMs } from '../api/types';

/** CurvePoint is a share of all operations and the latency below which they lie. */
export interface CurvePoint {
  /** 0 to 1. */
  share: number;
  ms: number;
}

/** nines is a share's position on the axis: 0 at 0, 1 at 90 %, 2 at 99 %. */
export const nines = (share: number) => -Math.log10(1 - share);

/** ExactLatency are the percentiles that are computed from every operation. */
export type ExactLatency = Partial<Pick<LatencyMs, 'p50' | 'p90' | 'p95' | 'p99' | 'p999'>> &
  Pick<LatencyMs, 'min' | 'max'>;

/** exactPoints are the exact percentiles as points of a curve that ends at a share. */
function exactPoints(of: ExactLatency, last: number): CurvePoint[] {
  const all: [number, number | undefined][] = [
    [0.5, of.p50],
    [0.9, of.p90],
    [0.95, of.p95],
    [0.99, of.p99],
    [0.999, of.p999],
  ];
  return all.flatMap(([share, ms]) => (ms !== undefined && share < last ? [{ share, ms }] : []));
}

/**
 * percentileCurve has a point for every percentile the operations can distinguish: exact ones where there are some, and
 * between them the upper bounds of buckets that are 10 % wide. The last is the slowest operation: of a thousand,
 * nothing is known beyond 99.9 %.
 */
export function percentileCurve(buckets: HistogramBucket[], of: ExactLatency): CurvePoint[] {
  const { min, max } = of;
  const filled = buckets.filter((b) => b.count > 0).sort((a, b) => a.to_ms - b.to_ms);
  const total = filled.reduce((n, b) => n + b.count, 0);
  if (total === 0) return [];
  const last = total > 1 ? 1 - 1 / total : 0;
  const out: CurvePoint[] = [{ share: 0, ms: Math.min(min, max) }];
  let below = 0;
  for (const b of filled) {
    below += b.count;
    const share = below / total;
    if (share < last) out.push({ share, ms: Math.min(b.to_ms, max) });
  }
  for (const exact of exactPoints(of, last)) {
    const at = out.findIndex((p) => p.share >= exact.share);
    const from = at < 0 ? out.length : at;
    // A bucket's bound is at most 10 % above what is in it: it gives way where the exact value is known.
    for (let i = 0; i < out.length; i++)
      out[i]!.ms = i < from ? Math.min(out[i]!.ms, exact.ms) : Math.max(out[i]!.ms, exact.ms);
    out.splice(from, out[from]?.share === exact.share ? 1 : 0, exact);
  }
  if (last > 0) out.push({ share: last, ms: max });
  return out;
}

/** shareTicks are the labelled shares up to the curve's end: 0, 50, 90, 99, 99.9 … %. */
export function shareTicks(last: number): number[] {
  const out = [0, 0.5];
  for (let n = 1; n <= 12 && n <= nines(last) + 1e-9; n++) out.push(1 - 10 ** -n);
  return out.filter((s) => s === 0 || s <= last + 1e-12);
}

/** shareAt is the inverse of nines. */
export const shareAt = (place: number) => 1 - 10 ** -place;

/** shareText writes a share in percent with all its nines, and more digits on request. */
export function shareText(share: number, more = 0): string {
  const digits = Math.max(0, Math.ceil(nines(share) - 1e-9) - 2 + more);
  return `${(share * 100).toFixed(digits)} %`;
}

/** latencyAt interpolates the latency at a share. */
export function latencyAt(curve: CurvePoint[], share: number): number {
  const i = curve.findIndex((m) => m.share >= share);
  if (i < 0) return curve.at(-1)!.ms;
  if (i === 0) return curve[0]!.ms;
  const a = curve[i - 1]!;
  const b = curve[i]!;
  const from = nines(a.share);
  return a.ms + ((nines(share) - from) / (nines(b.share) - from || 1)) * (b.ms - a.ms);
}
