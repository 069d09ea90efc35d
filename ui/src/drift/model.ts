import type { Comparison, Metric, RunDetail, RunRow } from '../api/types';
import { errorRate, latency, type Quantity, rate } from '../design/format';

/** maxDots is how many of the newest runs are drawn; each is compared with the baseline. */
export const maxDots = 20;

export const figures = [
  { value: 'p95_ms', label: 'P95', format: latency },
  { value: 'p99_ms', label: 'P99', format: latency },
  { value: 'qps', label: 'Throughput', format: rate },
  { value: 'error_rate', label: 'Errors', format: errorRate },
] as const satisfies { value: string; label: string; format: (n: number | null | undefined) => Quantity }[];

export type Figure = (typeof figures)[number]['value'];

export const figureOf = (name: string) => figures.find((f) => f.value === name) ?? figures[0];

/** ChartedRun is what the chart needs of a run. */
export type ChartedRun = Pick<RunRow, 'run_id' | 'test_name' | 'start_time' | 'status' | 'total_ops' | Figure>;

/** toChartedRun converts a run to its list form. */
export const toChartedRun = ({
  run_id,
  test_name,
  start_time,
  status,
  total_ops,
  summary: s,
}: RunDetail): ChartedRun => ({
  run_id,
  test_name,
  start_time,
  status,
  total_ops,
  qps: s?.qps ?? null,
  p95_ms: s?.latency_ms?.p95 ?? null,
  p99_ms: s?.latency_ms?.p99 ?? null,
  error_rate: s?.errors.rate ?? null,
});

/** DriftState is the verdict against the baseline; unknown until compared, or when that failed. */
export type DriftState = Comparison['verdict'] | 'baseline' | 'unknown';

export interface Dot {
  run: ChartedRun;
  value: number;
  state: DriftState;
  /** The difference from the baseline and its confidence. */
  metric: Metric | null;
}

/** relabelBaselineNote replaces the run ids of a note by readable names. */
export const relabelBaselineNote = (note: string, base: string, own: string) =>
  [
    [base, 'the baseline'],
    [own, 'this run'],
  ].reduce(
    (text, [id, word]) =>
      text.replaceAll(`Run ${id}`, word!.replace(/^t/, 'T')).replaceAll(`run ${id}`, word!).replaceAll(id!, word!),
    note,
  );

/** hasFigures reports that a run can be compared. */
export const hasFigures = (r: ChartedRun) => r.status === 'COMPLETED' && r.total_ops > 0;

/** chartedRuns are the newest runs and the baseline, oldest first. */
export function chartedRuns(newest: ChartedRun[], baseline: ChartedRun | null): ChartedRun[] {
  const runs = newest.filter(hasFigures).slice(0, maxDots);
  if (baseline && hasFigures(baseline) && !runs.some((r) => r.run_id === baseline.run_id)) runs.push(baseline);
  return runs.sort((a, b) => Date.parse(a.start_time ?? '') - Date.parse(b.start_time ?? ''));
}

/** dots are the runs that have the figure. */
export function dots(
  runs: ChartedRun[],
  baselineId: string | null,
  against: Record<string, Comparison | null>,
  figure: Figure,
): Dot[] {
  return runs.flatMap((run) => {
    const value = run[figure];
    if (value === null) return [];
    const metric = against[run.run_id]?.metrics?.find((m) => m.name === figure) ?? null;
    const state: DriftState = run.run_id === baselineId ? 'baseline' : (metric?.verdict ?? 'unknown');
    return [{ run, value, state, metric }];
  });
}

/** driftHeadline summarizes the chart in a sentence. */
export function driftHeadline(list: Dot[], label: string): string {
  const others = list.filter((d) => d.state !== 'baseline');
  if (others.length === list.length)
    return 'The template has no baseline. Open a run and press “Make this the baseline” to compare the others with it.';
  if (others.length === 0) return 'The baseline is the only run so far.';
  const worse = others.filter((d) => d.state === 'worse').length;
  const compared = others.filter((d) => d.state !== 'unknown').length;
  if (compared === 0) return 'No run could be compared with the baseline.';
  const of = `${compared} compared ${compared === 1 ? 'run' : 'runs'}`;
  // An unclear difference is no reassurance: short runs are never judged.
  const unclear = others.filter((d) => d.state === 'unclear').length;
  if (unclear === compared)
    return `${label}: of ${of} it is unclear whether ${compared === 1 ? 'it is' : 'they are'} worse than the baseline.`;
  const rest = unclear > 0 ? `; of ${unclear} it is unclear` : '';
  if (worse === 0) return `${label}: none of ${of} is worse than the baseline${rest}.`;
  return `${label}: ${worse} of ${of} ${worse === 1 ? 'is' : 'are'} worse than the baseline${rest}.`;
}
