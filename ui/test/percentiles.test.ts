import { expect, it } from 'vitest';
import { latencyAt, nines, percentileCurve, shareText, shareTicks } from '../src/charts/percentiles';

const bucket = (from_ms: number, to_ms: number, count: number) => ({ from_ms, to_ms, count });

it('the curve of percentiles rises to the slowest operation, and ends where nothing more is known', () => {
  const curve = percentileCurve([bucket(1, 2, 900), bucket(4, 8, 9), bucket(2, 4, 90), bucket(8, 16, 1)], {
    min: 1.5,
    max: 12,
  });
  expect(curve).toEqual([
    { share: 0, ms: 1.5 },
    { share: 0.9, ms: 2 },
    { share: 0.99, ms: 4 },
    { share: 0.999, ms: 12 },
  ]);
  expect(latencyAt(curve, 0.99)).toBe(4);
  expect(latencyAt(curve, 0.9999)).toBe(12);
  expect(latencyAt(curve, 1 - 10 ** -1.5)).toBeCloseTo(3);
  expect(percentileCurve([], { min: 0, max: 0 })).toEqual([]);
  expect(percentileCurve([bucket(1, 2, 1)], { min: 1.5, max: 1.5 })).toEqual([{ share: 0, ms: 1.5 }]);
});

it('is exact where percentiles are, and rises between them', () => {
  const of = { min: 1.2, p50: 1.9, p90: 1.95, p95: 2.6, p99: 3.7, p999: 7.5, max: 12 };
  const curve = percentileCurve([bucket(1, 2, 9000), bucket(2, 4, 900), bucket(4, 8, 90), bucket(8, 16, 10)], of);
  for (const [share, ms] of [
    [0.5, 1.9],
    [0.9, 1.95],
    [0.95, 2.6],
    [0.99, 3.7],
    [0.999, 7.5],
  ] as const)
    expect(latencyAt(curve, share)).toBe(ms);
  expect(curve.every((p, i) => i === 0 || (p.share > curve[i - 1]!.share && p.ms >= curve[i - 1]!.ms))).toBe(true);
});

it('its axis names the nines that the operations can tell apart', () => {
  expect(nines(0.99)).toBeCloseTo(2);
  expect(shareTicks(0.999).map((x) => shareText(x))).toEqual(['0 %', '50 %', '90 %', '99 %', '99.9 %']);
  expect(shareTicks(0.8).map((x) => shareText(x))).toEqual(['0 %', '50 %']);
  expect(shareTicks(0.4).map((x) => shareText(x))).toEqual(['0 %']);
  expect(
    shareTicks(0.99999)
      .map((x) => shareText(x))
      .at(-1),
  ).toBe('99.999 %');
});
