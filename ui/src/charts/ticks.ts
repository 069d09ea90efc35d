/** roundStep is 1, 2 or 5 times a power of ten. */
function roundStep(span: number, maxSteps: number): number {
  const minimum = span / Math.max(1, maxSteps);
  const power = 10 ** Math.floor(Math.log10(minimum));
  const lead = [1, 2, 5, 10].find((m) => m * power >= minimum * (1 - 1e-9)) ?? 10;
  return Number((lead * power).toPrecision(1));
}

/** roundTicks run from 0 to the first at or above a value, at most maxSteps steps; 0 and 1 for an empty range. */
export function roundTicks(top: number, maxSteps: number): number[] {
  if (!(top > 0) || !Number.isFinite(top)) return [0, 1];
  const step = roundStep(top, maxSteps);
  const n = Math.max(1, Math.ceil(top / step - 1e-9));
  return Array.from({ length: n + 1 }, (_, i) => Number((i * step).toPrecision(12)));
}

/** labelFilter returns a predicate that drops labels overlapping the one before. */
export function labelFilter(x: (v: number) => number, minimum = 52): (v: number) => boolean {
  let last = Number.NEGATIVE_INFINITY;
  return (v) => {
    if (x(v) - last < minimum) return false;
    last = x(v);
    return true;
  };
}
