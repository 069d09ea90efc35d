import { type Comparison, isRated, type Metric, type RunDetail, type RunRow } from '../api/types';
import { errorRate, latency, type Quantity, rate } from '../design/format';

/** So many runs are drawn, the newest of the template; each is compared with the baseline. */
export const drawn = 20;

export const figures = [
  { value: 'p95_ms', label: 'P95', format: latency },
  { value: 'p99_ms', label: 'P99', format: latency },
  { value: 'qps', label: 'Throughput', format: rate },
  { value: 'error_rate', label: 'Errors', format: errorRate },
] as const satisfies { value: string; label: string; format: (n: number | null | undefined) => Quantity }[];

export type Figure = (typeof figures)[number]['value'];

export const figureOf = (name: string) => figures.find((f) => f.value === name) ?? figures[0];

/** What is drawn of a run. */
export type Drawn = Pick<RunRow, 'run_id' | 'test_name' | 'start_time' | 'status' | 'total_ops' | Figure>;

/** A run as lists of runs have it. */
export const asDrawn = ({ run_id, test_name, start_time, status, total_ops, summary: s }: RunDetail): Drawn => ({
  run_id,
  test_name,
  start_time,
  status,
  total_ops,
  qps: s && isRated(s) ? s.qps : null,
  p95_ms: s?.latency_ms?.p95 ?? null,
  p99_ms: s?.latency_ms?.p99 ?? null,
  error_rate: s && s.operations > 0 ? s.errors.rate : null,
});

/** What is known of a run beside its baseline; unknown until it is compared, or when that was refused. */
export type Standing = Comparison['verdict'] | 'baseline' | 'unknown';

export interface Dot {
  run: Drawn;
  value: number;
  standing: Standing;
  /** How far it is from the baseline, and how sure that is. */
  metric: Metric | null;
}

/** A note of a comparison, with what a reader calls the two runs in the place of their ids. */
export const noteAgainst = (note: string, base: string, own: string) =>
  [
    [base, 'the baseline'],
    [own, 'this run'],
  ].reduce(
    (text, [id, word]) =>
      text.replaceAll(`Run ${id}`, word!.replace(/^t/, 'T')).replaceAll(`run ${id}`, word!).replaceAll(id!, word!),
    note,
  );

/** Runs that have figures to hold against others. */
export const measured = (r: Drawn) => r.status === 'COMPLETED' && r.total_ops > 0;

/** The runs that a picture shows, oldest first: the newest ones, and the baseline however old it is. */
export function shownRuns(newest: Drawn[], baseline: Drawn | null): Drawn[] {
  const runs = newest.filter(measured).slice(0, drawn);
  if (baseline && measured(baseline) && !runs.some((r) => r.run_id === baseline.run_id)) runs.push(baseline);
  return runs.sort((a, b) => Date.parse(a.start_time ?? '') - Date.parse(b.start_time ?? ''));
}

/** One figure of the runs; those that have none are left out. */
export function dots(
  runs: Drawn[],
  baselineId: string | null,
  against: Record<string, Comparison | null>,
  figure: Figure,
): Dot[] {
  return runs.flatMap((run) => {
    const value = run[figure];
    if (value === null) return [];
    const metric = against[run.run_id]?.metrics?.find((m) => m.name === figure) ?? null;
    const standing: Standing = run.run_id === baselineId ? 'baseline' : (metric?.verdict ?? 'unknown');
    return [{ run, value, standing, metric }];
  });
}

/** What the picture says, as a sentence. */
export function headline(list: Dot[], label: string): string {
  const others = list.filter((d) => d.standing !== 'baseline');
  if (others.length === list.length)
    return 'No run is the baseline: choose one on its page, and the others are held against it.';
  if (others.length === 0) return 'The baseline is the only run so far.';
  const worse = others.filter((d) => d.standing === 'worse').length;
  const compared = others.filter((d) => d.standing !== 'unknown').length;
  if (compared === 0) return 'No run could be compared with the baseline.';
  const of = `${compared} compared ${compared === 1 ? 'run' : 'runs'}`;
  // What can be neither shown nor excluded is no comfort: short runs are never judged.
  const unclear = others.filter((d) => d.standing === 'unclear').length;
  if (unclear === compared)
    return `${label}: of ${of} it is unclear whether ${compared === 1 ? 'it is' : 'they are'} worse than the baseline.`;
  const rest = unclear > 0 ? `; of ${unclear} it is unclear` : '';
  if (worse === 0) return `${label}: none of ${of} is worse than the baseline${rest}.`;
  return `${label}: ${worse} of ${of} ${worse === 1 ? 'is' : 'are'} worse than the baseline${rest}.`;
}
