import { describe, expect, it } from 'vitest';
import {
  coarseHistogram,
  filterFromText,
  filterText,
  quantile,
  queries,
  samplesOf,
  stepOf,
} from '../src/runs/chartFilter';
import { bucketBounds } from '../src/charts/histogram';

describe('charts of a part of a run', () => {
  it('keeps the part in the address', () => {
    expect(filterFromText('kind:INSERT')).toEqual({ of: 'kind', value: 'INSERT' });
    expect(filterFromText('statement:a:b')).toEqual({ of: 'statement', value: 'a:b' });
    for (const wrong of ['', 'kind:', 'node:x', 'INSERT']) expect(filterFromText(wrong)).toBeNull();
    expect(filterText(filterFromText('worker:worker-1'))).toBe('worker:worker-1');
    expect(filterText(null)).toBe('');
  });

  it('asks for one point at a time, and no value breaks out of its quotes', () => {
    const q = queries('r', { of: 'statement', value: 'a"} or {b="' }, 4);
    expect(q.rates).toBe(
      'sum by (kind)(rate(loadstone_statement_operations_total{run="r",statement="a\\"} or {b=\\""}[5s]))',
    );
    expect(q.load).toBeUndefined();
    expect(queries('r', { of: 'worker', value: 'w' }, 1).load).toContain('loadstone_target_connections');
  });

  it('has 300 points at most', () => {
    expect(stepOf(20)).toBe(1);
    expect(stepOf(300)).toBe(1);
    expect(stepOf(3600)).toBe(12);
  });

  it('reads quantiles between the bounds of a bucket', () => {
    expect(quantile([], 0.5)).toBeNull();
    expect(quantile([[0.001, 0.002, 10]], 0.5)).toBeCloseTo(Math.SQRT2, 6);
    expect(
      quantile(
        [
          [0.001, 0.002, 90],
          [0.1, 0.2, 10],
        ],
        0.95,
      ),
    ).toBeCloseTo(100 * Math.SQRT2, 6);
  });

  it('puts fine buckets into those of the heat map', () => {
    const h = coarseHistogram(
      [
        [0.001, 0.00101, 3],
        [0.00102, 0.00103, 2],
        [0.5, 0.505, 1],
      ],
      2,
    )!;
    expect(h.counts!.reduce((a, b) => a + b, 0)).toBe(12);
    const [from, to] = bucketBounds(h.schema, h.offset);
    expect(from).toBeLessThan(1.005);
    expect(to).toBeGreaterThan(1.005);
    expect(coarseHistogram([], 1)).toBeNull();
  });

  it('joins what the queries came to into seconds of the run', () => {
    const start = 1_700_000_000_000;
    const t = 1_700_000_002;
    const series = (metric: Record<string, string>, v: string) => ({ metric, values: [[t, v]] as [number, string][] });
    const [s, ...more] = samplesOf(
      {
        rates: [series({ kind: 'INSERT' }, '5'), series({ kind: 'UPDATE' }, '7')],
        failed: [series({}, '2')],
        latency: [{ metric: {}, histograms: [[t, { count: '1', sum: '1', buckets: [[0, '0.001', '0.002', '4']] }]] }],
        load: [series({ of: 'connections' }, '3'), series({ of: 'dropped' }, '9')],
      },
      start,
      1,
      () => null,
    );
    expect(more).toEqual([]);
    expect(s).toMatchObject({ t: 2, qps: 12, byKind: { INSERT: 5, UPDATE: 7 }, errors: 2, active: 3, dropped: 9 });
    expect(s!.p50).toBeCloseTo(Math.SQRT2, 6);
    expect(s!.histogram!.counts).toEqual([4]);
  });
});
