import { describe, expect, it } from 'vitest';
import type { HistogramData } from '../src/api/types';
import { logTicks } from '../src/charts/Distribution';
import { bucketBounds, cells, coarsen, firstTick, merge, total } from '../src/charts/histogram';

const h = (offset: number, counts: number[]): HistogramData => ({
  schema: 2,
  offset,
  counts,
  sum_ns: 0,
  min_ns: 1,
  max_ns: 2,
});

describe('exponential buckets', () => {
  it('covers (2^((i-1)/2^s), 2^(i/2^s)] nanoseconds', () => {
    const [from, to] = bucketBounds(2, 80);
    expect(to).toBeCloseTo(2 ** 20 / 1e6, 9);
    expect(to / from).toBeCloseTo(2 ** 0.25, 9);
    expect(bucketBounds(0, 1)).toEqual([1e-6, 2e-6]);
  });
  it('touches its neighbour', () => {
    for (let i = -5; i < 140; i++) expect(bucketBounds(2, i)[1]).toBe(bucketBounds(2, i + 1)[0]);
  });
  it('skips empty buckets and bears an absent histogram', () => {
    expect(cells(h(76, [3, 0, 5])).map((c) => c.count)).toEqual([3, 5]);
    expect(cells(null)).toEqual([]);
    expect(cells({ ...h(0, []), counts: null })).toEqual([]);
  });
});

describe('merging', () => {
  it('adds where both have buckets, and keeps the count', () => {
    const m = merge(h(10, [1, 2]), h(13, [4]));
    expect(m).toMatchObject({ offset: 10, counts: [1, 2, 0, 4] });
    expect(total(m)).toBe(7);
    expect(merge(h(10, [1, 2]), h(9, [5, 5])).counts).toEqual([5, 6, 2]);
  });
  it('refuses different schemas', () => expect(() => merge(h(0, [1]), { ...h(0, [1]), schema: 6 })).toThrow());
});

describe('coarsening', () => {
  const fine = Array.from({ length: 300 }, (_, i) => ({
    from_ms: 2 ** (i / 16),
    to_ms: 2 ** ((i + 1) / 16),
    count: 10,
  }));
  it('loses nothing and respects the limit', () => {
    for (const limit of [1, 7, 24, 90, 500]) {
      const bars = coarsen(fine, limit);
      expect(bars.length).toBeLessThanOrEqual(limit);
      expect(bars.reduce((n, b) => n + b.count, 0)).toBe(3000);
    }
  });
  it('gives a flat distribution flat bars', () => {
    const bars = coarsen(fine, 90).slice(0, -1);
    expect(new Set(bars.map((b) => b.count)).size).toBe(1);
  });
  it('bears gaps, single buckets and none', () => {
    expect(coarsen([], 10)).toEqual([]);
    expect(coarsen([{ from_ms: 0, to_ms: 1, count: 3 }], 10)[0]!.count).toBe(3);
    expect(coarsen([fine[0]!, fine[200]!], 50).reduce((n, b) => n + b.count, 0)).toBe(20);
  });
});

it('puts few ticks on a logarithmic axis', () => {
  expect(logTicks(0.1, 1)).toEqual([0.1, 0.2, 0.5, 1]);
  expect(logTicks(0.001, 100_000).length).toBeLessThanOrEqual(12);
});

describe('firstTick', () => {
  it('is one digit and its power of ten, below the value', () => {
    for (const [v, want] of [
      [0.0097, 0.009],
      [0.0116, 0.01],
      [0.01, 0.01],
      [0.00004, 0.001],
      [3.7, 3],
      [250, 200],
    ] as const)
      expect(firstTick(v)).toBe(want);
  });
});
