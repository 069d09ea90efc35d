import { isTerminal, type RunDetail, type RunRow } from '../api/types';
import { type ChartedRun, type Dot, toChartedRun } from '../drift/model';
import { count, duration, errorRate, latency, missing, plain, type Quantity, rate } from '../design/format';

/** Tracked is what the trend needs of a run. */
export type Tracked = ChartedRun & Pick<RunRow, 'p50_ms' | 'end_time'> & { connections: number | null };

export interface Figure {
  value: string;
  label: string;
  of: (r: Tracked) => number | null;
  format: (n: number | null | undefined) => Quantity;
}

const seconds = (r: Tracked) =>
  r.start_time && r.end_time ? (Date.parse(r.end_time) - Date.parse(r.start_time)) / 1000 : null;
const length = (n: number | null | undefined): Quantity =>
  n === null || n === undefined ? missing : { value: duration(n), unit: '', exact: `${n.toFixed(1)} s` };

export const figures: Figure[] = [
  { value: 'p95_ms', label: 'P95', of: (r) => r.p95_ms, format: latency },
  { value: 'p50_ms', label: 'P50', of: (r) => r.p50_ms, format: latency },
  { value: 'p99_ms', label: 'P99', of: (r) => r.p99_ms, format: latency },
  { value: 'qps', label: 'Throughput', of: (r) => r.qps, format: rate },
  { value: 'error_rate', label: 'Errors', of: (r) => r.error_rate, format: errorRate },
  { value: 'total_ops', label: 'Operations', of: (r) => r.total_ops, format: count },
  { value: 'connections', label: 'Connections', of: (r) => r.connections, format: count },
  { value: 'length', label: 'Length', of: seconds, format: length },
];

export const figureOf = (name: string): Figure | undefined => figures.find((f) => f.value === name);

export const trackedRow = (r: RunRow): Tracked => ({
  ...r,
  connections: r.scenario_config?.workload?.concurrent_connections ?? null,
});

export const trackedDetail = (r: RunDetail): Tracked => ({
  ...toChartedRun(r),
  p50_ms: r.summary?.latency_ms?.p50 ?? null,
  end_time: r.end_time,
  connections: r.scenario_config?.workload?.concurrent_connections ?? null,
});

/** trend returns a figure of the finished runs that have it, oldest first. */
export function trend(runs: Tracked[], figure: Figure): Dot[] {
  return runs
    .filter((r) => isTerminal(r.status) && r.start_time !== null && r.total_ops > 0)
    .flatMap((run): Dot[] => {
      const value = figure.of(run);
      return value === null || value === undefined ? [] : [{ run, value, state: 'same', metric: null }];
    })
    .sort((a, b) => Date.parse(a.run.start_time ?? '') - Date.parse(b.run.start_time ?? ''));
}

/** trendHeadline summarizes the trend in a sentence. */
export function trendHeadline(dots: Dot[], figure: Figure): string {
  const last = dots.at(-1);
  if (!last) return '';
  const text = (n: number) => plain(figure.format(n));
  if (dots.length === 1) return `${figure.label}: ${text(last.value)}, in the only run that has it.`;
  const all = dots.map((d) => d.value);
  const range = `${text(Math.min(...all))} to ${text(Math.max(...all))}`;
  return `${figure.label} of ${dots.length} runs: ${range}, the newest ${text(last.value)}.`;
}
