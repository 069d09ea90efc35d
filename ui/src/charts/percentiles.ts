import type { HistogramBucket } from '../api/types';

/** A point of the curve: so much of all operations took at most so long. */
export interface Mark {
  /** 0 to 1. */
  share: number;
  ms: number;
}

/** Where a share stands on the axis: each nine more is as far again; 0 at 0, 1 at 90 %, 2 at 99 %. */
export const nines = (share: number) => -Math.log10(1 - share);

/**
 * The latency at every percentile that the operations can tell apart. The last one is the slowest operation, at the
 * share that all the others make up: of a thousand, nothing is known beyond 99.9 %.
 */
export function percentileCurve(buckets: HistogramBucket[], min: number, max: number): Mark[] {
  const filled = buckets.filter((b) => b.count > 0).sort((a, b) => a.to_ms - b.to_ms);
  const total = filled.reduce((n, b) => n + b.count, 0);
  if (total === 0) return [];
  const last = total > 1 ? 1 - 1 / total : 0;
  const out: Mark[] = [{ share: 0, ms: Math.min(min, max) }];
  let below = 0;
  for (const b of filled) {
    below += b.count;
    const share = below / total;
    if (share < last) out.push({ share, ms: Math.min(b.to_ms, max) });
  }
  if (last > 0) out.push({ share: last, ms: max });
  return out;
}

/** The shares that the axis names, as far as the curve goes: 0, 50, 90, 99, 99.9 … %. */
export function shareTicks(last: number): number[] {
  const out = [0, 0.5];
  for (let n = 1; n <= 12 && n <= nines(last) + 1e-9; n++) out.push(1 - 10 ** -n);
  return out.filter((s) => s === 0 || s <= last + 1e-12);
}

/** The share at a place on the axis. */
export const shareAt = (place: number) => 1 - 10 ** -place;

/** A share in percent, with all of its nines, and more digits where they are asked for. */
export function shareText(share: number, more = 0): string {
  const digits = Math.max(0, Math.ceil(nines(share) - 1e-9) - 2 + more);
  return `${(share * 100).toFixed(digits)} %`;
}

/** The latency at a share, on the curve between its neighbours. */
export function at(curve: Mark[], share: number): number {
  const i = curve.findIndex((m) => m.share >= share);
  if (i < 0) return curve.at(-1)!.ms;
  if (i === 0) return curve[0]!.ms;
  const a = curve[i - 1]!;
  const b = curve[i]!;
  const from = nines(a.share);
  return a.ms + ((nines(share) - from) / (nines(b.share) - from || 1)) * (b.ms - a.ms);
}
