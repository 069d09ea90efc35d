import { describe, expect, it } from 'vitest';
import { move, stepOf, zoomed } from '../src/charts/keys';

const x = [1, 2, 3, 4, 5, 6];
const all = () => true;

describe('the keyboard on a chart', () => {
  it('steps by points, pages and ends', () => {
    expect(stepOf('ArrowRight', false)).toBe(1);
    expect(stepOf('ArrowLeft', true)).toBe(-10);
    expect(stepOf('PageDown', false)).toBe(10);
    expect(stepOf('Home', false)).toBe('first');
    expect(stepOf('x', false)).toBeNull();
  });

  it('moves within what is seen', () => {
    expect(move(x, all, [0, 10], null, 1)).toBe(0);
    expect(move(x, all, [0, 10], null, -1)).toBe(5);
    expect(move(x, all, [0, 10], 3, 1)).toBe(3);
    expect(move(x, all, [0, 10], 6, 1)).toBe(5);
    expect(move(x, all, [2, 4], 3, 'last')).toBe(3);
    expect(move(x, all, [2, 4], 9, 'first')).toBe(1);
    expect(move(x, all, [0, 10], 5, -10)).toBe(0);
  });

  it('passes over gaps, and stands nowhere where nothing is', () => {
    expect(move(x, (i) => i !== 2, [0, 10], 2, 1)).toBe(3);
    expect(move(x, () => false, [0, 10], 2, 1)).toBe(-1);
    expect(move([], all, [0, 10], null, 'first')).toBe(-1);
  });

  it('zooms around the cursor, and back to everything', () => {
    expect(zoomed([0, 40], 10, [0, 40], true)).toEqual({ from: 0, to: 20 });
    expect(zoomed([0, 40], 39, [0, 40], true)).toEqual({ from: 20, to: 40 });
    expect(zoomed([10, 20], 15, [0, 40], false)).toEqual({ from: 5, to: 25 });
    expect(zoomed([0, 20], 15, [0, 40], false)).toBeNull();
    expect(zoomed([10, 12], 11, [0, 40], true)).toEqual({ from: 10, to: 12 });
  });

  it('knows nothing before the axis begins', () => {
    expect(zoomed([60, 100], 65, [60, 100], true)).toEqual({ from: 60, to: 80 });
    expect(zoomed([60, 70], 65, [60, 100], false)).toEqual({ from: 60, to: 80 });
    expect(zoomed([60, 80], 65, [60, 100], false)).toBeNull();
  });
});
