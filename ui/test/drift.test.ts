import { expect, it } from 'vitest';
import type { Comparison, Metric } from '../src/api/types';
import { roundTicks } from '../src/charts/ticks';
import { type ChartedRun, chartedRuns, dots, driftHeadline, relabelBaselineNote } from '../src/drift/model';

const run = (
  id: string,
  minute: number,
  p95: number | null,
  status: ChartedRun['status'] = 'COMPLETED',
): ChartedRun => ({
  run_id: id,
  test_name: id,
  start_time: new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString(),
  status,
  total_ops: 1000,
  qps: 100,
  p95_ms: p95,
  p99_ms: 2,
  error_rate: 0,
});
const metric = (name: string, verdict: Metric['verdict']): Metric => ({
  name,
  verdict,
  a: 1,
  b: 2,
  difference: 100,
  low: 90,
  high: 110,
  detectable: 10,
  more_runs: 0,
  unit: 'ms',
  reason: '',
});
const compared = (...metrics: Metric[]): Comparison => ({
  metrics,
  notes: [],
  same_run: false,
  simulated: false,
  unlike: [],
  slower_probability: 0.5,
  stand_in: 'none' as unknown as Comparison['stand_in'],
  verdict: 'same',
});

it('draws the newest runs that have figures, oldest first, and the baseline however old', () => {
  const many = Array.from({ length: 30 }, (_, i) => run(`r${30 - i}`, 30 - i, 1));
  const base = run('old', 0, 1);
  const shown = chartedRuns([run('gone', 40, 1, 'FAILED'), ...many], base).map((r) => r.run_id);
  expect(shown).toHaveLength(21);
  expect(shown.slice(0, 2)).toEqual(['old', 'r11']);
  expect(shown.at(-1)).toBe('r30');
  expect(chartedRuns(many, many[0]!)).toHaveLength(20);
});

it('says how each run stands beside the baseline, in the figure that is looked at', () => {
  const runs = [run('a', 1, 1), run('b', 2, 2), run('c', 3, 1.01), run('d', 4, null), run('e', 5, 3)];
  const against = {
    b: compared(metric('p95_ms', 'worse'), metric('qps', 'same')),
    c: compared(metric('p95_ms', 'same'), metric('qps', 'better')),
    e: null,
  };
  const p95 = dots(runs, 'a', against, 'p95_ms');
  expect(p95.map((d) => [d.run.run_id, d.state])).toEqual([
    ['a', 'baseline'],
    ['b', 'worse'],
    ['c', 'same'],
    ['e', 'unknown'],
  ]);
  expect(driftHeadline(p95, 'P95')).toBe('P95: 1 of 2 compared runs is worse than the baseline.');
  const qps = dots(runs, 'a', against, 'qps');
  expect(qps.map((d) => d.state)).toEqual(['baseline', 'same', 'better', 'unknown', 'unknown']);
  expect(driftHeadline(qps, 'Throughput')).toBe('Throughput: none of 2 compared runs is worse than the baseline.');
  const unclear = (ids: string[]) => Object.fromEntries(ids.map((id) => [id, compared(metric('qps', 'unclear'))]));
  expect(driftHeadline(dots(runs, 'a', unclear(['b', 'c']), 'qps'), 'P95')).toBe(
    'P95: of 2 compared runs it is unclear whether they are worse than the baseline.',
  );
  expect(driftHeadline(dots(runs, 'a', { ...unclear(['b']), c: against.c }, 'qps'), 'P95')).toBe(
    'P95: none of 2 compared runs is worse than the baseline; of 1 it is unclear.',
  );
  expect(driftHeadline(dots(runs, null, {}, 'qps'), 'P95')).toMatch(/^The template has no baseline/);
  expect(driftHeadline(dots([runs[0]!], 'a', {}, 'qps'), 'P95')).toBe('The baseline is the only run so far.');
  expect(driftHeadline(dots(runs, 'a', {}, 'qps'), 'P95')).toBe('No run could be compared with the baseline.');
});

it('ticks of an axis are round numbers that hold the largest value', () => {
  expect(roundTicks(1234, 5)).toEqual([0, 500, 1000, 1500]);
  expect(roundTicks(0.83, 5)).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]);
  expect(roundTicks(100, 5)).toEqual([0, 20, 40, 60, 80, 100]);
  expect(roundTicks(7, 4)).toEqual([0, 2, 4, 6, 8]);
  expect(roundTicks(0, 4)).toEqual([0, 1]);
});

it('calls the two runs of a note what a reader calls them', () => {
  expect(relabelBaselineNote('The load of run b-2 was changed while it ran, once.', 'a-1', 'b-2')).toBe(
    'The load of this run was changed while it ran, once.',
  );
  expect(relabelBaselineNote('Run a-1 is DEGRADED: b-2', 'a-1', 'b-2')).toBe('The baseline is DEGRADED: this run');
});
