import { expect, it } from 'vitest';
import type { Point } from '../src/api/types';
import { heatOf, sharedScale } from '../src/compare/HeatMaps';

const point = (second: number, phase: Point['phase'], counts: number[]) =>
  ({
    timestamp: new Date(1_000_000 + second * 1000).toISOString(),
    phase,
    histogram: { schema: 0, offset: 20, counts, sum_ns: 1, min_ns: 1, max_ns: 1 },
  }) as unknown as Point;

it('heat maps begin with the measurement, and the warm-up is not in them', () => {
  const points = [point(1, 'WARMUP', [9]), point(3, 'MEASUREMENT', [1, 5]), point(4, 'MEASUREMENT', [2])];
  const h = heatOf({ points, span: 1, start: 1_002_000 });
  expect(h.x).toEqual([1, 2]);
  expect(h.columns.map((c) => c.map((x) => x.count))).toEqual([[1, 5], [2]]);
  expect(heatOf({ points, span: 1, start: null }).x).toEqual([]);
});

it('several heat maps have one scale: the most of all cells, and the bounds of all', () => {
  const a = [[{ from: 0.2, to: 0.4, count: 7 }]];
  const b = [[{ from: 2, to: 4, count: 90 }], [{ from: 0.05, to: 0.06, count: 1 }]];
  expect(sharedScale([a, b])).toEqual({ maxCount: 90, bounds: [0.05, 4] });
  expect(sharedScale([[], [[]]])).toBeNull();
});
