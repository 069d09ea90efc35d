/** Steps of an axis that people count in: 1, 2 and 5 of a power of ten. */
export function roundStep(span: number, most: number): number {
  const least = span / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(least));
  const lead = [1, 2, 5, 10].find((m) => m * power >= least * (1 - 1e-9)) ?? 10;
  return Number((lead * power).toPrecision(1));
}

/** Round numbers from 0 to the first at or above a value, at most so many beside 0; of nothing, 0 and 1. */
export function roundTicks(top: number, most: number): number[] {
  if (!(top > 0) || !Number.isFinite(top)) return [0, 1];
  const step = roundStep(top, most);
  const n = Math.max(1, Math.ceil(top / step - 1e-9));
  return Array.from({ length: n + 1 }, (_, i) => Number((i * step).toPrecision(12)));
}

/** Says of labels in their order which have room: a label that would be written into the one before it has none. */
export function apart(x: (v: number) => number, least = 52): (v: number) => boolean {
  let last = Number.NEGATIVE_INFINITY;
  return (v) => {
    if (x(v) - last < least) return false;
    last = x(v);
    return true;
  };
}
