import { describe, expect, it } from 'vitest';
import { growingAxisEnd } from '../src/charts/plot';
import { type Columns, columns, maxSamples, mergePair, type Sample, samplesPerJoin, thin } from '../src/runs/series';
import { anyRow, fold, lineValues, perSecond, presentNames, Track } from '../src/runs/track';

/** dice is a seeded random generator in 0…1. */
function dice(seed: number): () => number {
  let n = seed;
  return () => (n = (n * 16807) % 2147483647) / 2147483647;
}

const sample = (t: number, more: Partial<Sample> = {}): Sample =>
  ({
    t,
    at: 1000 * t,
    span: 1,
    phase: 'MEASUREMENT',
    qps: 100 + t,
    byKind: {},
    byClass: {},
    p99: t / 7,
    dropped: null,
    active: 1,
    ...more,
  }) as Sample;

/** naive computes a track's columns from scratch. */
function naive(stored: Sample[], liveSamples: Sample[]): Columns {
  const near = (list: Sample[], s: Sample) =>
    list.reduce((n, x, i) => (n < 0 || Math.abs(x.t - s.t) < Math.abs(list[n]!.t - s.t) ? i : n), -1);
  const same = (list: Sample[], i: number, s: Sample) => i >= 0 && Math.abs(list[i]!.t - s.t) < 0.5;
  const live: Sample[] = [];
  for (const s of liveSamples) {
    const i = near(live, s);
    if (same(live, i, s)) live[i] = s;
    else live.push(s);
  }
  const all = [...stored];
  for (const s of live.sort((a, b) => a.t - b.t)) {
    const i = near(all, s);
    if (!same(all, i, s)) all.push(s);
    else if (all[i]!.dropped === null && s.dropped !== null) all[i] = { ...all[i]!, dropped: s.dropped };
  }
  return columns({ samples: all.sort((a, b) => a.t - b.t) });
}

const lines = (c: Columns) => ({
  p99: lineValues(c, 'p99', (s) => s.p99),
  errors: perSecond(c, 'timeout', (s) => s.byClass.timeout ?? 0),
  dropped: perSecond(c, 'dropped', (s) => s.dropped),
  kinds: presentNames(c, 'kinds', (s) => s.byKind, ['INSERT', 'UPDATE']),
  fast: anyRow(c, 'fast', (s) => s.qps > 300),
});

/** play simulates a run: late, duplicate, missing and out-of-order seconds, idle ones, and history read again. */
function play(seed: number, check: (track: Track, want: Columns, added: boolean) => void): void {
  const rnd = dice(seed);
  const track = new Track();
  let stored: Sample[] = [];
  const liveSamples: Sample[] = [];
  let failed = 0;
  for (let t = 1; t <= 220; t++) {
    if (rnd() < 0.04) t += 1 + Math.floor(6 * rnd());
    const idle = rnd() < 0.15 || t < 4;
    failed += Math.floor(3 * rnd());
    const s = sample(t + 0.2 * rnd(), {
      phase: t < 30 ? 'WARMUP' : t < 200 ? 'MEASUREMENT' : 'COOLDOWN',
      byClass: { timeout: failed },
      byKind: rnd() < 0.02 ? { UPDATE: 1, SCAN: 2 } : { INSERT: 3 },
      dropped: Math.floor(failed / 2),
      ...(idle && { active: 0, qps: 0 }),
    });
    const late = rnd();
    const before = track.columns().cacheKey;
    for (const x of late < 0.03 ? [s, s] : late < 0.06 ? [sample(t - 3 * rnd())] : [s]) {
      liveSamples.push(x);
      track.add(x);
    }
    check(track, naive(stored, liveSamples), late >= 0.06 && before === track.columns().cacheKey);
    if (rnd() < 0.02) {
      stored = Array.from({ length: t }, (_, i) => sample(i + 1.05, { byClass: { timeout: i } }));
      track.history(stored);
      check(track, naive(stored, liveSamples), false);
    }
  }
}

describe('a track', () => {
  // One test per seed: the time limit is for a hang, not for the total.
  it.each(Array.from({ length: 40 }, (_, i) => i + 1))(
    'shows what all seconds read anew would show, whatever comes: seed %i',
    (seed) => {
      play(seed, (track, want) => {
        const have = track.columns();
        expect({ t: have.t, at: have.at, rows: have.rows }).toEqual({ t: want.t, at: want.at, rows: want.rows });
        expect(lines(have)).toEqual(lines(want));
      });
    },
  );
  it('keeps what was read of the seconds before when one is added', () => {
    let added = 0;
    play(7, (_, __, only) => (added += only ? 1 : 0));
    expect(added).toBeGreaterThan(150);
    const track = new Track();
    track.history([1, 2, 3].map((t) => sample(t)));
    const reads: number[] = [];
    const read = () =>
      fold(
        track.columns(),
        'reads',
        () => reads,
        (all, _, i) => all.push(i),
      );
    read();
    track.add(sample(4));
    read();
    read();
    expect(reads).toEqual([0, 1, 2, 3]);
  });
  it('leaves columns that were handed out as they were', () => {
    const track = new Track();
    track.history([sample(1)]);
    const before = track.columns();
    track.add(sample(2));
    expect([before.t.length, track.columns().t.length]).toEqual([1, 2]);
    expect(track.columns().t).not.toBe(before.t);
  });
});

/** hist is a histogram with one count. */
const hist = (bucket: number) => ({
  schema: 2,
  offset: bucket,
  counts: [1],
  sum_ns: bucket,
  min_ns: bucket,
  max_ns: bucket,
});

describe('a page that is left open', () => {
  const second = (t: number) =>
    sample(t, {
      p50: 1,
      p95: 2,
      byKind: { INSERT: 50 + (t % 2), ...(t % 7 === 0 && { SCAN: 7 }) },
      byClass: { timeout: Math.floor(t / 3) },
      histogram: hist(t % 5),
      dropped: t,
    });
  /** Six hours; the first ones are history. */
  const open = (check: (track: Track, t: number) => void = () => {}) => {
    const track = new Track();
    track.history(Array.from({ length: maxSamples }, (_, i) => second(i + 1)));
    for (let t = maxSamples + 1; t <= 6 * 3600; t++) {
      track.add(second(t));
      const stored = track.thin();
      if (stored) track.history(stored);
      check(track, t);
    }
    return track;
  };

  it('holds no more samples as the run goes on, and the newest as they came', () => {
    open((track, t) => {
      const { rows } = track.columns();
      expect(rows.length).toBeLessThan(maxSamples + samplesPerJoin);
      if (t % 500 === 0) for (const s of rows.slice(-500)) expect(s!.span).toBe(1);
    });
  });
  it('keeps every second: spans, operations, histograms and counters add up to the same', () => {
    const { rows, t } = open().columns();
    const all = rows.map((s) => s!);
    expect(all.reduce((n, s) => n + s.span, 0)).toBe(6 * 3600);
    // Each sample ends where the next one begins, coarsest first.
    all.forEach((s, i) => expect(s.t - s.span).toBe(i ? t[i - 1] : 0));
    all.forEach((s, i) => expect(s.span).toBeLessThanOrEqual(i ? all[i - 1]!.span : Infinity));
    const sum = (of: (s: Sample) => number) => all.reduce((n, s) => n + s.span * of(s), 0);
    const each = (of: (s: Sample) => number) =>
      Array.from({ length: 6 * 3600 }, (_, i) => of(second(i + 1))).reduce((a, b) => a + b);
    expect(sum((s) => s.qps)).toBeCloseTo(
      each((s) => s.qps),
      3,
    );
    for (const k of ['INSERT', 'SCAN'])
      expect(sum((s) => s.byKind[k] ?? 0)).toBeCloseTo(
        each((s) => s.byKind[k] ?? 0),
        3,
      );
    const counted = all.flatMap((s) => s.histogram!.counts!).reduce((a, b) => a + b);
    expect(counted).toBe(6 * 3600);
    expect(Math.max(...all.map((s) => s.p99!))).toBe((6 * 3600) / 7);
    const c = columns({ samples: all });
    const errors = perSecond(c, 'timeout', (s) => s.byClass.timeout!);
    expect(errors.reduce<number>((n, v, i) => n + v! * all[i]!.span, 0)).toBeCloseTo(7200, 0);
  });
  it('joins neither phases, nor what has a gap between, nor what is idle', () => {
    const list = Array.from({ length: maxSamples + samplesPerJoin }, (_, i) =>
      sample(i < 100 ? i : i + 10, {
        phase: i < 51 ? 'WARMUP' : 'MEASUREMENT',
        ...(i === 21 && { active: 0, qps: 0 }),
      }),
    );
    const fewer = thin(list);
    expect(fewer.length).toBeLessThan(list.length - samplesPerJoin / 2 + 5);
    const ends = fewer.filter((s) => s.span === 2);
    for (const s of ends) expect(s.t - 1 === 50 || s.t === 51 || s.t === 110).toBe(s.t === 50);
    expect(fewer.find((s) => s.active === 0)!.span).toBe(1);
    const apart = list.map((s, i) => ({ ...s, t: 10 * i }));
    expect(thin(apart)).toBe(apart);
  });
  it('takes what is known where one of two seconds knows nothing', () => {
    const none = sample(1, { p50: null, p95: null, p99: null, histogram: null });
    const some = sample(2, { p50: 3, p95: 4, p99: 5, histogram: hist(1) });
    for (const s of [mergePair(none, some), mergePair({ ...some, t: 1 }, { ...none, t: 2 })])
      expect([s.p50, s.p95, s.p99, s.histogram]).toEqual([3, 4, 5, hist(1)]);
    expect(mergePair(none, none).p50).toBeNull();
  });
});

it('gives a growing axis room to the next step, a fiftieth at most', () => {
  expect([1, 59.2, 3600, 3601, 3659].map(growingAxisEnd)).toEqual([1, 60, 3600, 3660, 3660]);
  for (let t = 60; t < 1e5; t = 1.1 * t + 1) {
    expect(growingAxisEnd(t)).toBeGreaterThanOrEqual(t);
    expect(growingAxisEnd(t) - t).toBeLessThan(Math.max(1, t / 50));
  }
});
