export interface Stats {
  min: number;
  mean: number;
  max: number;
  last: number;
}

/** stats computes a line's figures between two times, of the counted points only when given. */
export function stats(
  values: (number | null)[],
  x: number[],
  from: number,
  to: number,
  counted?: boolean[],
): Stats | null {
  let n = 0;
  let sum = 0;
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  let last = 0;
  for (let i = 0; i < x.length; i++) {
    const v = values[i];
    if (v === null || v === undefined || x[i]! < from || x[i]! > to || (counted && !counted[i])) continue;
    n++;
    sum += v;
    if (v < min) min = v;
    if (v > max) max = v;
    last = v;
  }
  return n ? { min, mean: sum / n, max, last } : null;
}

/** Basis is what a legend's figures cover; null when the chart has no phases. */
export type Basis = 'measurement' | 'warm-up' | null;

/** basis is the measurement when any of its points is visible: the warm-up is in no figure of a run. */
export function basis(x: number[], counted: boolean[] | undefined, from: number, to: number): Basis {
  if (!counted) return null;
  return x.some((t, i) => t >= from && t <= to && counted[i]) ? 'measurement' : 'warm-up';
}

/** outsideWarmup flags points outside the warm-up band; undefined without one. */
export function outsideWarmup(x: number[], bands: { from: number; to: number }[]): boolean[] | undefined {
  return bands.length === 0 ? undefined : x.map((t) => !bands.some((b) => t >= b.from && t <= b.to));
}
