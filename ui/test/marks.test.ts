import { describe, expect, it } from 'vitest';
import type { Mark, RunDetail } from '../src/api/types';
import { adjustableLoad, thresholdLines, withMarks } from '../src/runs/marks';

const run = (change: object, workload: object = {}) =>
  ({
    start_time: '2026-11-01T12:00:00.000Z',
    status: 'RUNNING',
    load_changes: [],
    scenario_config: { workload: { load_mode: 'QPS', arrival: 'constant', stages: null, ...workload } },
    ...change,
  }) as unknown as RunDetail;

const mark = (at: string, text: string) => ({ mark_id: text, at, text }) as Mark;

describe('marks', () => {
  it('stand between the phases in the order of time, and long ones are cut', () => {
    const r = run({
      load_changes: [
        { event_type: 'LOAD_CHANGED', created_at: '2026-11-01T12:00:07.500Z', event_data: { target_qps: 200 } },
        { event_type: 'LOAD_CHANGED', created_at: '2026-11-01T12:00:08.000Z', event_data: { target_connections: 1 } },
      ],
    });
    const all = withMarks(
      [{ t: 5, label: 'measurement' }],
      [mark('2026-11-01T12:00:09.000Z', 'x'.repeat(60)), mark('2026-11-01T12:00:02.000Z', 'index created')],
      r,
    );
    expect(all.map((m) => m.t)).toEqual([2, 5, 7.5, 8, 9]);
    expect(all[3]!.label).toBe('1 connection');
    expect(all[2]!.label).toContain('200');
    expect([...all[4]!.label].length).toBe(28);
  });
});

describe('thresholds', () => {
  it('become lines where a chart has their figure', () => {
    expect(thresholdLines(['p95_ms < 50', 'qps >= 1000.5', 'error_rate < 0.001', 'INSERT.p95_ms < 3'])).toEqual([
      { metric: 'p95', value: 50, label: 'P95 < 50 ms' },
      { metric: 'qps', value: 1000.5, label: 'rate >= 1000.5/s' },
    ]);
    expect(thresholdLines(null)).toEqual([]);
  });
});

describe('the load of a run', () => {
  it('can be changed where nobody else decides about it', () => {
    expect(adjustableLoad(run({}))).toBe('target_qps');
    expect(adjustableLoad(run({}, { load_mode: 'CONCURRENCY' }))).toBe('connections');
    expect(adjustableLoad(run({}, { load_mode: 'FIND_MAX_CONCURRENCY' }))).toBeNull();
    expect(adjustableLoad(run({}, { stages: [{}] }))).toBeNull();
    expect(adjustableLoad(run({}, { arrival: 'workload' }))).toBeNull();
    expect(adjustableLoad(run({ status: 'STOPPING' }))).toBeNull();
  });
});
