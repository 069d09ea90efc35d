import { describe, expect, it } from 'vitest';
import type { LogEntry, Payload, Point } from '../src/api/types';
import { filterByLevel, mergeLogs } from '../src/runs/logs';
import {
  axisBegins,
  columns,
  fromPayload,
  fromPoint,
  insertSample,
  joinHistory,
  nearest,
  phases,
  type Sample,
  type Series,
} from '../src/runs/series';
import { perSecond } from '../src/runs/track';

const start = Date.parse('2026-11-20T12:00:00.000Z');
const at = (t: number) => new Date(start + t * 1000).toISOString();

function sample(t: number, more: Partial<Sample> = {}): Sample {
  return {
    t,
    at: start + t * 1000,
    span: 1,
    phase: 'MEASUREMENT',
    qps: t,
    byKind: {},
    p50: 1,
    p95: 2,
    p99: 3,
    errors: 0,
    byClass: {},
    dropped: null,
    active: 1,
    target: 1,
    histogram: null,
    cpu: 1,
    memory: 1,
    hostCpu: 1,
    hostMemory: 1,
    rate: null,
    service95: null,
    split: null,
    inFlight: 0,
    waiting: 0,
    ...more,
  };
}
const series = (...s: Sample[]): Series => ({ samples: s });

function payload(t: number, phase: Payload['phase'], qps = 100): Payload {
  return {
    timestamp: at(t),
    elapsed: t,
    phase,
    timing: { warmup_seconds: 0, phase_elapsed_seconds: t },
    ops: { total: 0, current_per_sec: qps },
    ops_by_kind: { INSERT: { total: 1, errors: 0, per_sec: qps } },
    latency: { p50: 1, p95: 2, p99: 3, avg: 1, min: 1, max: 1 },
    errors: { count: 0, rate: 0, per_sec: 0, by_class: null, recent: null, dropped: 2 },
    connections: { active: 3, target: 4 },
    latency_histogram: null,
  } as unknown as Payload;
}

const point = (t: number): Point =>
  ({
    timestamp: at(t),
    elapsed_seconds: t,
    phase: 'MEASUREMENT',
    qps: 7,
    qps_by_kind: null,
    errors_by_class: null,
    histogram: null,
  }) as unknown as Point;

describe('a tick', () => {
  it('is measured from the start of the run, by its timestamp', () => {
    expect(fromPoint(point(12), start).t).toBe(12);
    expect(fromPayload(payload(12, 'MEASUREMENT'), start)!.t).toBe(12);
    expect(fromPayload(payload(12, 'MEASUREMENT'), 0)!.t).toBe(12);
  });
  it('is one of the warm-up that it began in', () => {
    const phase = (warmup_seconds: number, phase_elapsed_seconds: number) => {
      const told = payload(12, 'MEASUREMENT');
      return fromPayload({ ...told, timing: { ...told.timing, warmup_seconds, phase_elapsed_seconds } }, start)!.phase;
    };
    expect([phase(3, 0.4), phase(3, 1.4), phase(0, 0.4)]).toEqual(['WARMUP', 'MEASUREMENT', 'MEASUREMENT']);
  });
  it('is no sample while no run worker is heard of', () => {
    const of = (...silent: (string | null)[]) => ({
      ...payload(1, 'MEASUREMENT'),
      workers: silent.map((silent_since) => ({ status: 'RUNNING', health: 'HEALTHY', silent_since })),
    });
    const read = (p: unknown) => fromPayload(p as Payload, start);
    expect(read(of(at(0), at(0)))).toBeNull();
    expect(read(of(at(0), null))).not.toBeNull();
  });
  it('is no sample before the first reports, which say what the process uses', () => {
    const read = (goroutines: number) => {
      const told = { ...payload(1, 'WARMUP', 0), custom_metrics: { resources: { goroutines } } };
      return fromPayload(told as unknown as Payload, start);
    };
    expect(read(0)).toBeNull();
    expect(read(40)!.qps).toBe(0);
  });
  it('is no sample while nothing is executed', () => {
    for (const p of ['PREPARING', 'PROCESSING', null] as const) expect(fromPayload(payload(1, p), start)).toBeNull();
  });
});

describe('adding', () => {
  it('replaces the same second, appends a later one, and sorts in an earlier one', () => {
    const s: Sample[] = [];
    for (const x of [sample(1), sample(2), sample(2.2, { qps: 99 })]) insertSample(s, x);
    expect(s.map((x) => [x.t, x.qps])).toEqual([
      [1, 1],
      [2.2, 99],
    ]);
    insertSample(s, sample(5));
    insertSample(s, sample(3.5));
    expect(s.map((x) => x.t)).toEqual([1, 2.2, 3.5, 5]);
  });
});

describe('joining history and socket', () => {
  it('holds each second once and lets history win', () => {
    const j = joinHistory(
      [sample(1, { qps: 10 }), sample(2, { qps: 20 })],
      series(sample(2.1, { qps: 21, dropped: 5 }), sample(3)),
    );
    expect(j.samples.map((x) => x.qps)).toEqual([10, 20, 3]);
    expect(j.samples[1]!.dropped).toBe(5);
  });
  it('works without history', () => expect(joinHistory([], series(sample(1))).samples).toHaveLength(1));
  it('gives the same curve whatever came first (reload in the middle of a run)', () => {
    const all = Array.from({ length: 60 }, (_, i) => sample(i + 1));
    for (const cut of [0, 1, 17, 59, 60]) {
      const live = series(...all.slice(Math.max(0, cut - 3)).map((x) => ({ ...x, t: x.t + 0.05 })));
      expect(joinHistory(all.slice(0, cut), live).samples.map((s) => Math.floor(s.t))).toEqual(all.map((s) => s.t));
    }
  });
});

describe('columns', () => {
  it('puts an empty row into a gap, so that no line is drawn across it', () => {
    const c = columns(series(sample(1), sample(2), sample(9)));
    expect(c.t).toEqual([1, 2, 3, 9]);
    expect(c.rows.map((r) => r === null)).toEqual([false, false, true, false]);
  });
  it('leaves idle seconds out at the ends, and draws them in the middle', () => {
    const none = { active: 0, qps: 0 };
    const c = columns(series(sample(1, none), sample(2), sample(3, none), sample(4), sample(5, none)));
    expect(c.t).toEqual([2, 3, 4]);
    expect(c.rows[1]!.qps).toBe(0);
    expect(columns(series(sample(1, none))).t).toEqual([]);
  });
  it('bears a late tick', () => expect(columns(series(sample(1), sample(3))).rows).toHaveLength(2));
  it('turns a counter into a rate, anew with each phase and after a gap', () => {
    const c = columns(
      series(
        sample(1, { phase: 'WARMUP', byClass: { timeout: 4 } }),
        sample(2, { phase: 'WARMUP', byClass: { timeout: 6 } }),
        sample(3, { byClass: { timeout: 1 } }),
        sample(4, { byClass: { timeout: 3 } }),
        sample(9, { byClass: { timeout: 13 } }),
        sample(10, { phase: 'COOLDOWN', byClass: { timeout: 14 } }),
      ),
    );
    expect(perSecond(c, 'timeout', (s) => s.byClass.timeout ?? 0)).toEqual([4, 2, 1, 2, null, 2, 1]);
  });
});

it('finds the nearest sample', () => {
  const s = [sample(1), sample(2), sample(10)];
  expect([0, 1.4, 1.6, 5, 99].map((t) => nearest(s, t))).toEqual([0, 0, 1, 1, 2]);
  expect(nearest([], 1)).toBe(-1);
});

it('shades the warm-up and marks the phases', () => {
  const p = phases({
    start_time: at(0),
    warmup_start_time: at(2),
    warmup_end_time: at(5),
    measurement_end_time: at(25),
  });
  expect(p.bands).toEqual([{ from: 2, to: 5, phase: 'WARMUP' }]);
  expect(p.markers.map((m) => [m.t, m.label])).toEqual([
    [2, 'warm-up'],
    [5, 'measurement'],
    [25, 'end'],
  ]);
  expect(
    phases({ start_time: at(0), warmup_start_time: at(2), warmup_end_time: null, measurement_end_time: null }).bands[0]!
      .to,
  ).toBe(Number.POSITIVE_INFINITY);
  expect(
    phases({ start_time: null, warmup_start_time: null, warmup_end_time: null, measurement_end_time: null }),
  ).toEqual({ bands: [], markers: [] });
});

it('begins the axis where the load does, after a slow preparation', () => {
  const none = { start_time: at(0), warmup_start_time: null, warmup_end_time: null, measurement_end_time: null };
  const of = (...s: Sample[]) => columns(series(...s));
  const slow = { ...none, warmup_start_time: at(60.4), warmup_end_time: at(65.4) };
  expect(axisBegins(slow, of(sample(61.6)))).toBe(59);
  // Samples of one chart, or none, move no axis: all charts of a run begin alike.
  expect(axisBegins(slow, of(sample(80)))).toBe(59);
  expect(axisBegins(slow, of())).toBe(59);
  expect(axisBegins({ ...none, warmup_end_time: at(60) }, of())).toBe(59);
  // A run without phase times; a history point may cover several seconds.
  expect(axisBegins(none, of(sample(60)))).toBe(58);
  expect(axisBegins({ ...none, start_time: null }, of(sample(60, { span: 10 })))).toBe(49);
  expect(axisBegins({ ...none, warmup_start_time: at(3), warmup_end_time: at(30) }, of(sample(31)))).toBe(0);
  expect(axisBegins(none, of())).toBe(0);
});

describe('log', () => {
  const line = (seq: number, level: LogEntry['level'] = 'INFO'): LogEntry => ({
    seq,
    run_id: 'r',
    level,
    message: `m${seq}`,
    timestamp: at(seq),
  });
  it('keeps each line once and in order, whichever way it came', () => {
    expect(mergeLogs([line(1), line(2)], [line(2), line(3)]).map((l) => l.seq)).toEqual([1, 2, 3]);
    expect(mergeLogs([line(5)], [line(2), line(4)]).map((l) => l.seq)).toEqual([2, 4, 5]);
    const same = [line(1)];
    expect(mergeLogs(same, [line(1)])).toBe(same);
    expect(mergeLogs(same, null)).toBe(same);
  });
  it('keeps the newest when there are too many', () => {
    const many = mergeLogs(
      [],
      Array.from({ length: 30 }, (_, i) => line(i + 1)),
      10,
    );
    expect(many.map((l) => l.seq)).toEqual([21, 22, 23, 24, 25, 26, 27, 28, 29, 30]);
  });
  it('filters by level and above', () => {
    const all = [line(1), line(2, 'WARNING'), line(3, 'ERROR'), line(4, 'CRITICAL')];
    expect(filterByLevel('WARNING', all).map((l) => l.seq)).toEqual([2, 3, 4]);
    expect(filterByLevel('ERROR', all).map((l) => l.seq)).toEqual([3, 4]);
  });
});
