import type { Zoom } from './group';

/** pageStep is how many points Page Up and Page Down move. */
const pageStep = 10;

/** keyStep is how many points a key moves; null for other keys. */
export function keyStep(key: string, shift: boolean): number | 'first' | 'last' | null {
  switch (key) {
    case 'ArrowLeft':
      return shift ? -pageStep : -1;
    case 'ArrowRight':
      return shift ? pageStep : 1;
    case 'PageUp':
      return -pageStep;
    case 'PageDown':
      return pageStep;
    case 'Home':
      return 'first';
    case 'End':
      return 'last';
    default:
      return null;
  }
}

/**
 * moveCursor returns the index after a step, among visible points with a value; −1 when there is none. A new cursor
 * starts at the end it moves away from.
 */
export function moveCursor(
  x: readonly number[],
  holds: (i: number) => boolean,
  [from, to]: readonly [number, number],
  at: number | null,
  step: number | 'first' | 'last',
): number {
  const visible: number[] = [];
  for (let i = 0; i < x.length; i++) if (x[i]! >= from && x[i]! <= to && holds(i)) visible.push(i);
  if (visible.length === 0) return -1;
  if (step === 'first') return visible[0]!;
  if (step === 'last') return visible.at(-1)!;
  if (at === null) return step > 0 ? visible[0]! : visible.at(-1)!;
  // The point under the cursor may have scrolled away: start from the nearest visible one.
  let k = 0;
  for (let i = 1; i < visible.length; i++) if (Math.abs(x[visible[i]!]! - at) < Math.abs(x[visible[k]!]! - at)) k = i;
  return visible[Math.min(visible.length - 1, Math.max(0, k + step))]!;
}

/**
 * zoomAround halves or doubles the visible range around a point, within the data; null at full range, and below 2 s.
 */
export function zoomAround(
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
