import { describe, expect, it } from 'vitest';
import type { FindMaxResult, Payload, Summary, ValidityCause } from '../src/api/types';
import { createConnectivity, isServerResponse } from '../src/api/connectivity';
import { basis, outsideWarmup, stats } from '../src/charts/stats';
import { clocks, freshness } from '../src/runs/clocks';
import { answerAdvice, confirmation, levelLabel, partialAnswer, searchHeadline } from '../src/runs/searchAnswer';
import {
  causeInterval,
  causesSummary,
  coverageText,
  hasOperations,
  incompleteRecordText,
  intervalText,
  listedVerdict,
  partialThresholdText,
  suspectIntervals,
  targetText,
} from '../src/runs/validity';

const start = '2026-11-22T21:35:00.000Z';
const at = (s: number) => new Date(Date.parse(start) + s * 1000).toISOString();
const cause = (name: string, from: number, to: number): ValidityCause => ({
  cause: name,
  detail: name,
  from: at(from),
  to: at(to),
});
const summary = (more: object) =>
  ({ operations: 0, accounting: { started: 0, recorded: 0 }, covered_seconds: null, ...more }) as unknown as Summary;

describe('what is known of a run that crashed', () => {
  const run = {
    start_time: start,
    total_ops: 12_000,
    scenario_config: { workload: { duration_seconds: 30, load_mode: 'CONCURRENCY' as const } },
  };

  it('a record that lacks something is on its way, or has lost it', () => {
    expect(incompleteRecordText({ summary: null })).toBe('based on the part of the record that has reached the server');
    expect(incompleteRecordText({ summary: summary({}) })).toBe('a part of the record is lost');
  });

  it('a threshold that holds of a part of a run says so', () => {
    const part = { passed: true, reason: 'met so far, in 12 of 60 s' };
    expect(partialThresholdText({ status: 'FAILED' }, part)).toBe(part.reason);
    expect(partialThresholdText({ status: 'CANCELLED' }, { passed: true })).toBe(
      'passed so far; the run did not complete',
    );
    expect(partialThresholdText({ status: 'COMPLETED' }, { passed: true })).toBeNull();
    expect(partialThresholdText({ status: 'FAILED' }, { passed: false, reason: 'qps is 5, in 12 of 60 s' })).toBeNull();
  });

  it('a target that was not looked at is no empty line', () => {
    const e = { driver: 'postgres', server_version: '17.2', target_is_local: true };
    expect(targetText(e)).toBe('postgres · 17.2 · on the same machine');
    expect(targetText({ ...e, target_is_local: false })).toBe('postgres · 17.2');
    expect(targetText({ driver: 'postgres', server_version: '', target_is_local: false })).toBe('postgres');
    expect(targetText({ driver: '', server_version: '', target_is_local: false })).toMatch(/^unknown: the run ended/);
  });

  it('operations were sent when the record, the counters or the charts say so', () => {
    const nothing = { total_ops: 0 };
    expect(hasOperations(nothing, summary({}))).toBe(false);
    expect(hasOperations(nothing, summary({ accounting: { started: 1, recorded: 0 } }))).toBe(true);
    expect(hasOperations(nothing, summary({ accounting: { started: 0, recorded: 1 } }))).toBe(true);
    expect(hasOperations(nothing, summary({ operations: 1 }))).toBe(true);
    expect(hasOperations(run, summary({}))).toBe(true);
    expect(hasOperations(nothing, summary({}), 3)).toBe(true);
  });

  it('the figures tell what they hold, from when to when, and how far the charts go', () => {
    const s = summary({ operations: 143_215, record_partial: true, covered_seconds: 15.24, measured_from: at(5.03) });
    const causes = [cause('incomplete_record', 5.03, 54), cause('incomplete_record', 21.3, 54)];
    expect(coverageText(run, s, causes, 26.02)).toBe(
      'The figures cover 143,215 operations, from 5 s to 21 s. Rates cover the 15.2 s of 30 s whose record is ' +
        'complete. The charts show the live data up to 26 s.',
    );
    expect(coverageText(run, summary({ operations: 5 }), causes, 26)).toBeNull();
    // One of two workers was lost, and no second has both records.
    expect(coverageText(run, summary({ operations: 5, record_partial: true }), causes, null)).toBe(
      'The figures cover 5 operations of run workers with a complete record. No second is complete, so there are no ' +
        'rates.',
    );
  });

  it('what was seen and is not recorded is called so', () => {
    expect(coverageText(run, summary({ record_partial: true }), [], 9)).toBe(
      '12,000 operations were seen live, but the record contains none of them, so there are no exact figures. ' +
        'The charts show the live data up to 9 s.',
    );
    // Only the warm-up is recorded.
    expect(coverageText(run, summary({ accounting: { started: 0, recorded: 9 } }), [], 9)).toBeNull();
  });

  it('the headline follows from the causes', () => {
    expect(causesSummary([cause('schedule_lag', 0, 1)])).toContain('limit of the generator');
    expect(causesSummary([cause('incomplete_record', 0, 1)])).toBe('Part of this run is missing from its figures.');
    expect(causesSummary([cause('lost_worker', 0, 1), cause('gc_pause', 0, 1)])).toMatch(/limit .* missing/);
    expect(causesSummary([cause('nothing_measured', 0, 1)])).toBe('Nothing was measured.');
    // Snapshots exist only of live figures: the record has what they lack.
    expect(causesSummary([cause('snapshot_gap', 0, 1)])).toBe('These figures may be unreliable.');
    expect(causesSummary([cause('errors', 0, 1)])).toBe('These figures may be unreliable.');
  });

  it('intervals are in seconds of the run, and are marked once', () => {
    expect(intervalText(causeInterval(cause('x', 12, 15), start))).toBe('(12–15 s)');
    expect(causeInterval({ from: null, to: null }, start)).toBeNull();
    expect(causeInterval(cause('x', 1, 2), null)).toBeNull();
    expect(suspectIntervals([cause('b', 8, 9), cause('a', 1, 3), cause('c', 2, 5)], start)).toEqual([
      { from: 1, to: 5 },
      { from: 8, to: 9 },
    ]);
    expect(suspectIntervals([cause('lost', 5, 54), cause('lost', 21, 54)], start)).toEqual([{ from: 21, to: 54 }]);
  });

  it('nobody calls a run without operations valid', () => {
    expect(listedVerdict({ validity: 'VALID', total_ops: 0, p50_ms: null })).toBeNull();
    expect(listedVerdict({ validity: 'VALID', total_ops: 9, p50_ms: 1 })).toBe('VALID');
    expect(listedVerdict({ validity: 'NONE', total_ops: 0, p50_ms: null })).toBe('NONE');
    expect(listedVerdict({ validity: null, total_ops: 9, p50_ms: null })).toBeNull();
  });
});

describe('the answer of a search', () => {
  const step = (level: number, outcome: string) => ({ target_qps: null, total_target_connections: level, outcome });
  const result = (more: object) =>
    ({
      unit: 'connections',
      found: true,
      max_connections: 8,
      max_target_qps: null,
      qps: 1234,
      confirmed: true,
      p95_latency_ms: 2.5,
      history: [
        step(4, 'STABLE'),
        step(8, 'STABLE'),
        step(12, 'DEGRADED'),
        step(8, 'DEGRADED'),
        step(8, 'ERROR_THRESHOLD'),
      ],
      ...more,
    }) as unknown as FindMaxResult;

  it('says how often it held, also when that is one time of three', () => {
    expect(confirmation(result({}))).toMatchObject({
      passes: 1,
      attempts: 3,
      confirmed: false,
      text: 'passed 1 of 3 times',
    });
    expect(confirmation(result({ history: [step(8, 'STABLE'), step(8, 'PLATEAU')] }))).toMatchObject({
      confirmed: true,
      text: 'passed 2 of 2 times',
    });
    expect(confirmation(result({ confirmed: false, history: [step(8, 'STABLE'), step(8, 'STABLE')] }))).toMatchObject({
      confirmed: false,
    });
    const missed = { ...step(0, 'PLATEAU'), target_qps: 8 };
    expect(confirmation(result({ max_target_qps: 8, history: [missed, missed] }))).toMatchObject({
      confirmed: false,
      text: 'passed 0 of 2 times',
    });
    expect(confirmation(result({ history: [step(8, 'STABLE')] }))).toMatchObject({
      confirmed: false,
      text: 'passed once, not confirmed',
    });
    expect(confirmation(result({ found: false }))).toBeNull();
  });

  it('counts the searches that reach it', () => {
    const h = confirmation(
      result({
        history: [step(8, 'STABLE'), step(8, 'STABLE')],
        spread: { asked: 3 },
        repetitions: [{ level: 8 }, { level: null }, { level: 4 }],
      }),
    )!;
    expect(h.text).toBe('passed 2 of 2 times, 1 of 3 searches reached it');
    expect(h.confirmed).toBe(false);
  });

  it('is the headline', () => {
    expect(searchHeadline(result({}))).toBe('sustains 8 connections with 1.23 k/s, P95 2.50 ms (passed 1 of 3 times)');
    expect(searchHeadline(result({ found: false }))).toBe('sustained none of the tested levels');
    expect(searchHeadline(result({ found: false, history: [] }))).toBe('finished no step of the search');
  });

  it('says of a search that was ended how far it came', () => {
    expect(partialAnswer(result({}))).toMatch(/^so far, the target sustains 8 connections/);
    expect(partialAnswer(result({ found: false }))).toBe('so far, the target sustained none of the tested levels');
    expect(partialAnswer(result({ found: false, history: [] }))).toBe('finished no step of the search');
  });
});

describe('clocks and freshness', () => {
  const timing = (more: object) =>
    ({
      start_time: at(0),
      warmup_start_time: at(20),
      measurement_start_time: at(24),
      warmup_seconds: 4,
      duration_seconds: 30,
      expected_seconds_total: 34,
      elapsed_display_seconds: 40,
      phase_elapsed_seconds: 16,
      ...more,
    }) as unknown as Payload['timing'];

  it('the preparation counts in what the run takes', () => {
    expect(clocks(timing({}), 'MEASUREMENT')).toEqual({
      elapsed: '00:00:40',
      total: '00:00:54',
      then: '',
      phase: { at: '00:00:16', of: '00:00:30' },
    });
    const before = { warmup_start_time: null, measurement_start_time: null, elapsed_display_seconds: 7 };
    expect(clocks(timing(before), 'PREPARING')).toMatchObject({ elapsed: '00:00:07', total: '', then: '00:00:34' });
    // Without a warm-up the load begins with the measurement; a search has no fixed length.
    expect(clocks(timing({ warmup_start_time: null }), 'MEASUREMENT').total).toBe('00:00:58');
    expect(clocks(timing({ expected_seconds_total: 0 }), 'MEASUREMENT').total).toBe('');
  });

  it('two seconds without a payload are said, whatever the socket claims', () => {
    expect(freshness('open', 1000, 2999)).toBeNull();
    expect(freshness('open', 1000, 3000)).toBe('no update for 2 s');
    expect(freshness('connecting', 1000, 9000)).toBe('no update for 8 s');
    expect(freshness('lost', 1000, 1000)).toBe('reconnecting, last update 0 s ago');
    expect(freshness('done', 1000, 90_000)).toBeNull();
  });

  it('clocks stop at the last answer of a server that fell silent, and go on with the next', () => {
    let now = 100;
    const r = createConnectivity(() => now);
    let told = 0;
    r.subscribe(() => told++);
    now = 200;
    r.answered();
    expect([r.since(), r.lastContact(), told]).toEqual([null, 200, 0]);
    now = 900;
    r.failed();
    now = 1500;
    r.failed();
    expect([r.since(), r.lastContact(), told]).toEqual([200, 200, 1]);
    r.answered();
    expect([r.since(), r.lastContact(), told]).toEqual([null, 1500, 2]);
    expect([
      isServerResponse(200, null),
      isServerResponse(503, 'application/problem+json'),
      isServerResponse(502, 'text/html'),
    ]).toEqual([true, true, false]);
  });
});

describe('the figures of a legend', () => {
  const x = [1, 2, 3, 4];
  const values = [100, 10, null, 20];

  it('leave out the warm-up, and say of what they are', () => {
    const counted = [false, true, true, true];
    expect(basis(x, counted, 0, 5)).toBe('measurement');
    expect(stats(values, x, 0, 5, counted)).toEqual({ min: 10, mean: 15, max: 20, last: 20 });
    expect(basis(x, counted, 0, 1.5)).toBe('warm-up');
    expect(basis(x, undefined, 0, 5)).toBeNull();
    expect(stats(values, x, 0, 5)).toMatchObject({ max: 100 });
    expect(outsideWarmup(x, [{ from: 0, to: 2 }])).toEqual([false, false, true, true]);
    expect(outsideWarmup(x, [])).toBeUndefined();
  });
});

describe('the word beside the answer of a search', () => {
  const step = (target_qps: number, outcome: 'STABLE' | 'PLATEAU' | 'DEGRADED') => ({
    target_qps,
    outcome,
    total_target_connections: 8,
  });
  it('is a limit only where something above it did not hold', () => {
    const tried = [step(500, 'STABLE'), step(1500, 'STABLE')];
    expect(levelLabel(tried, 1500)).toBe('sustained');
    expect(levelLabel([...tried, step(2500, 'DEGRADED')], 1500)).toBe('limit');
    expect(levelLabel([...tried, step(2500, 'PLATEAU')], 1500)).toBe('limit');
    // Its own level failed once; nothing above it was tried.
    expect(levelLabel([...tried, step(1500, 'DEGRADED')], 1500)).toBe('sustained');
  });
});

describe('the advice of a search', () => {
  const step = (level: number, outcome: 'STABLE' | 'DEGRADED') => ({
    outcome,
    target_qps: null,
    total_target_connections: level,
  });
  const of = (found: number | null, steps: [number, 'STABLE' | 'DEGRADED'][], bound = 60) =>
    answerAdvice({
      found: found !== null,
      max_connections: found,
      max_target_qps: null,
      unit: 'connections',
      upper_bound: bound,
      history: steps.map(([l, o]) => step(l, o)),
    });
  it('says that nothing above the first level held, and what to try', () => {
    expect(
      of(4, [
        [4, 'STABLE'],
        [8, 'DEGRADED'],
        [6, 'DEGRADED'],
      ]),
    ).toMatch(/nothing above 4 connections held. Try a lower/);
    expect(of(null, [[4, 'DEGRADED']])).toMatch(/No level held, not even 4 connections. Try a lower first step/);
  });
  it('says that the search ended at its own maximum', () =>
    expect(
      of(
        8,
        [
          [4, 'STABLE'],
          [8, 'STABLE'],
        ],
        8,
      ),
    ).toMatch(/the maximum of the search. Raise the maximum/));
  it('says nothing of an answer between levels', () =>
    expect(
      of(8, [
        [4, 'STABLE'],
        [8, 'STABLE'],
        [12, 'DEGRADED'],
      ]),
    ).toBe(''));
});
