import { expect, it } from 'vitest';
import type { Point, RunDetail } from '../src/api/types';
import { aligned, columnsOf, figure, markdown } from '../src/compare/model';
import { rateOf } from '../src/runs/rates';
import { columns, fromPoint, joinHistory, refine, resolution } from '../src/runs/series';
import { lastMinute, workerCurves } from '../src/runs/workerSeries';

const start = Date.parse('2026-11-20T12:00:00.000Z');
const point = (t: number, qps = t) =>
  ({
    timestamp: new Date(start + t * 1000).toISOString(),
    elapsed_seconds: t,
    phase: 'MEASUREMENT',
    qps,
    active_connections: 1,
  }) as Point;
const range = (from: number, to: number, step: number) =>
  Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, i) => from + i * step);

it('draws points of several seconds as one line, and a gap among them as a gap', () => {
  const coarse = [...range(4, 40, 4), ...range(80, 100, 4)].map((t) => fromPoint(point(t), start, 4));
  const c = columns(joinHistory(coarse, { samples: [] }));
  expect(c.rows.filter((r) => r === null)).toHaveLength(1);
  expect(c.t[c.rows.indexOf(null)]).toBe(41);
  expect(resolution(c)).toBe(4);
});

it('puts the finer points of a part in the place of the coarse ones', () => {
  const coarse = range(4, 100, 4).map((t) => fromPoint(point(t), start, 4));
  const fine = range(39, 61, 1).map((t) => fromPoint(point(t), start));
  const all = refine(coarse, fine);
  expect(all.filter((s) => s.t >= 39 && s.t <= 61)).toHaveLength(23);
  expect(all.filter((s) => s.t < 39).every((s) => s.span === 4)).toBe(true);
  expect(all.map((s) => s.t)).toEqual([...all.map((s) => s.t)].sort((a, b) => a - b));
  const c = columns(joinHistory(all, { samples: [] }));
  expect(c.rows).not.toContain(null);
  expect(resolution(c, 40, 60)).toBe(1);
  expect(resolution(c, 30, 60)).toBe(4);
  expect(refine(coarse, [])).toBe(coarse);
});

it('lays runs of different resolutions beside each other without holes', () => {
  const a = { points: range(1, 12, 1).map((t) => point(t)), start };
  const b = { points: range(3, 12, 3).map((t) => point(t)), start, span: 3 };
  const { x, values } = aligned([a, b], (p) => p.qps);
  expect(x).toHaveLength(13);
  expect(values[1]!.slice(1)).toEqual([3, 3, 3, 6, 6, 6, 9, 9, 9, 12, 12, 12]);
});

it('shows the last minute of a worker, however coarse its history is', () => {
  const at = (t: number) => ({ ...point(t), worker_id: 'w', p95_latency_ms: 1 });
  const all = workerCurves([...range(30, 600, 30), ...range(601, 610, 1)].map(at));
  expect(
    lastMinute(all)
      .get('w')!
      .at.map((ms) => (ms - start) / 1000),
  ).toEqual([570, 600, ...range(601, 610, 1)]);
  expect(lastMinute(new Map()).size).toBe(0);
});

it('shows no rate where the record is lost, and says why', () => {
  expect(rateOf({ record_partial: true }, null)).toMatchObject({
    value: '–',
    exact: expect.stringContaining('lost') as string,
  });
  expect(rateOf({}, 0).value).toBe('0');
  expect(rateOf({ record_partial: true }, 12)).toMatchObject({ value: '12.0', unit: '/s' });
  expect(rateOf(null, undefined).value).toBe('–');
  const run = {
    run_id: 'r',
    test_name: 'lost',
    summary: { qps: null, record_partial: true, operations: 9, errors: { rate: 0 } },
  } as RunDetail;
  const [qps] = columnsOf([run]);
  expect(figure(qps!, run).exact).toContain('lost');
  expect(markdown([{ label: 'lost', run, against: null }], 5)).toContain('| A lost | – |');
});
