import { describe, expect, it } from 'vitest';
import { keyStep, moveCursor, zoomAround } from '../src/charts/keys';

const x = [1, 2, 3, 4, 5, 6];
const all = () => true;

describe('the keyboard on a chart', () => {
  it('steps by points, pages and ends', () => {
    expect(keyStep('ArrowRight', false)).toBe(1);
    expect(keyStep('ArrowLeft', true)).toBe(-10);
    expect(keyStep('PageDown', false)).toBe(10);
    expect(keyStep('Home', false)).toBe('first');
    expect(keyStep('x', false)).toBeNull();
  });

  it('moves within what is seen', () => {
    expect(moveCursor(x, all, [0, 10], null, 1)).toBe(0);
    expect(moveCursor(x, all, [0, 10], null, -1)).toBe(5);
    expect(moveCursor(x, all, [0, 10], 3, 1)).toBe(3);
    expect(moveCursor(x, all, [0, 10], 6, 1)).toBe(5);
    expect(moveCursor(x, all, [2, 4], 3, 'last')).toBe(3);
    expect(moveCursor(x, all, [2, 4], 9, 'first')).toBe(1);
    expect(moveCursor(x, all, [0, 10], 5, -10)).toBe(0);
  });

  it('passes over gaps, and stands nowhere where nothing is', () => {
    expect(moveCursor(x, (i) => i !== 2, [0, 10], 2, 1)).toBe(3);
    expect(moveCursor(x, () => false, [0, 10], 2, 1)).toBe(-1);
    expect(moveCursor([], all, [0, 10], null, 'first')).toBe(-1);
  });

  it('zooms around the cursor, and back to everything', () => {
    expect(zoomAround([0, 40], 10, [0, 40], true)).toEqual({ from: 0, to: 20 });
    expect(zoomAround([0, 40], 39, [0, 40], true)).toEqual({ from: 20, to: 40 });
    expect(zoomAround([10, 20], 15, [0, 40], false)).toEqual({ from: 5, to: 25 });
    expect(zoomAround([0, 20], 15, [0, 40], false)).toBeNull();
    expect(zoomAround([10, 12], 11, [0, 40], true)).toEqual({ from: 10, to: 12 });
  });

  it('knows nothing before the axis begins', () => {
    expect(zoomAround([60, 100], 65, [60, 100], true)).toEqual({ from: 60, to: 80 });
    expect(zoomAround([60, 70], 65, [60, 100], false)).toEqual({ from: 60, to: 80 });
    expect(zoomAround([60, 80], 65, [60, 100], false)).toBeNull();
  });
});
