import type { Zoom } from './group';

/** How many points a page of the keyboard is. */
const page = 10;

/** The steps that a key makes over points; null for one that makes none. */
export function stepOf(key: string, shift: boolean): number | 'first' | 'last' | null {
  switch (key) {
    case 'ArrowLeft':
      return shift ? -page : -1;
    case 'ArrowRight':
      return shift ? page : 1;
    case 'PageUp':
      return -page;
    case 'PageDown':
      return page;
    case 'Home':
      return 'first';
    case 'End':
      return 'last';
    default:
      return null;
  }
}

/**
 * Where the cursor stands after a step: an index of x between the first and the last point that is seen and holds
 * something; −1 when there is none. A cursor that stood nowhere begins at the end it moves away from.
 */
export function move(
  x: readonly number[],
  holds: (i: number) => boolean,
  [from, to]: readonly [number, number],
  at: number | null,
  step: number | 'first' | 'last',
): number {
  const seen: number[] = [];
  for (let i = 0; i < x.length; i++) if (x[i]! >= from && x[i]! <= to && holds(i)) seen.push(i);
  if (seen.length === 0) return -1;
  if (step === 'first') return seen[0]!;
  if (step === 'last') return seen.at(-1)!;
  if (at === null) return step > 0 ? seen[0]! : seen.at(-1)!;
  // The point under the cursor may have left the view: the nearest that is seen takes its place.
  let k = 0;
  for (let i = 1; i < seen.length; i++) if (Math.abs(x[seen[i]!]! - at) < Math.abs(x[seen[k]!]! - at)) k = i;
  return seen[Math.min(seen.length - 1, Math.max(0, k + step))]!;
}

/**
 * Half of what is seen, or twice as much, around a point, within what there is to see; null where that is everything,
 * and less than 2 s is not.
 */
export function zoomed(
  [from, to]: readonly [number, number],
  at: number,
  [first, last]: readonly [number, number],
  closer: boolean,
): Zoom | null {
  const span = (to - from) * (closer ? 0.5 : 2);
  if (span < 2) return { from, to };
  if (span >= last - first) return null;
  const begin = Math.min(Math.max(first, at - span / 2), last - span);
  return { from: begin, to: begin + span };
}
