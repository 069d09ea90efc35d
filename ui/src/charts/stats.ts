export interface Stats {
  min: number;
  mean: number;
  max: number;
  last: number;
}

/** The figures of a line between two times, of the counted points alone where these are given. */
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

/** What the figures of a legend are of; null where the chart does not tell phases apart. */
export type Basis = 'measurement' | 'warm-up' | null;

/** The measurement, as soon as a point of it is to be seen: the warm-up has no part in any figure of a run. */
export function basis(x: number[], counted: boolean[] | undefined, from: number, to: number): Basis {
  if (!counted) return null;
  return x.some((t, i) => t >= from && t <= to && counted[i]) ? 'measurement' : 'warm-up';
}

/** The points outside the warm-up, of a chart that knows no more of the phases than where it lay; none without one. */
export function beside(x: number[], bands: { from: number; to: number }[]): boolean[] | undefined {
  return bands.length === 0 ? undefined : x.map((t) => !bands.some((b) => t >= b.from && t <= b.to));
}
