import { describe, expect, it } from 'vitest';
import type { HistogramData, Payload, RunDetail } from '../src/api/types';
import { quantile } from '../src/charts/histogram';
import { lastLoadChange, loadFigures } from '../src/runs/loadFigures';
import { columns, type Sample } from '../src/runs/series';

const start = Date.parse('2026-11-01T12:00:00.000Z');
const iso = (t: number) => new Date(start + t * 1000).toISOString();
const timing = { start_time: iso(0), measurement_start_time: iso(5) } as Payload['timing'];
const run = (...changes: number[]) =>
  ({
    load_changes: changes.map((t) => ({
      event_type: 'LOAD_CHANGED',
      created_at: iso(t),
      event_data: { target_qps: t },
    })),
  }) as unknown as RunDetail;

/** bucket is a histogram of n operations at ms. */
const bucket = (ms: number, n: number): HistogramData => ({
  schema: 6,
  offset: Math.ceil(Math.log2(ms * 1e6) * 64),
  counts: [n],
  sum_ns: ms * 1e6 * n,
  min_ns: ms * 1e6,
  max_ns: ms * 1e6,
});
const second = (t: number, qps: number, ms: number, part: Partial<Sample> = {}) =>
  ({
    t,
    at: start + t * 1000,
    span: 1,
    phase: 'MEASUREMENT',
    qps,
    active: 1,
    histogram: bucket(ms, qps),
    ...part,
  }) as Sample;

describe('the load of a run that goes on', () => {
  it('is that of the last change within the measurement', () => {
    expect(lastLoadChange(run(), timing)).toBeNull();
    expect(lastLoadChange(run(3), timing)).toBeNull();
    expect(lastLoadChange(run(3, 12.5, 9), timing)).toBe(12.5);
    expect(lastLoadChange(run(12.5), { ...timing, measurement_start_time: null })).toBeNull();
  });
  it('has figures of whole seconds after the change alone', () => {
    const c = columns({
      samples: [
        second(4, 900, 90, { phase: 'WARMUP' }),
        ...[6, 7, 8].map((t) => second(t, 100, 1)),
        second(9, 200, 5),
        second(10, 300, 10),
        second(12, 310, 10, { span: 2, histogram: bucket(10, 620) }),
        second(13, 20, 50, { phase: 'COOLDOWN' }),
      ],
    });
    const now = loadFigures(c, 8.4)!;
    expect(now.qps).toBeCloseTo((300 + 620) / 3);
    for (const p of [now.p50, now.p95, now.p99]) expect(p).toBeCloseTo(10, 0);
    expect(loadFigures(c, 11.5)).toBeNull();
    expect(loadFigures(c, 5)!.p50).toBeLessThan(10.2);
  });
});

describe('a quantile', () => {
  it('lies between the fastest and the slowest, at its rank', () => {
    const h = { ...bucket(1, 90), max_ns: 9e6, counts: [90, ...Array<number>(63).fill(0), 10] };
    expect(quantile(h, 0)).toBe(1);
    expect(quantile(h, 0.5)).toBeCloseTo(1, 1);
    expect(quantile(h, 0.95)).toBeCloseTo(2, 1);
    expect(quantile(h, 1)).toBe(9);
    expect(quantile({ ...h, counts: [] }, 0.5)).toBeNull();
    expect(quantile(null, 0.5)).toBeNull();
  });
});
