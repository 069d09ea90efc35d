import type { RunDetail, Summary, ValidityCause, Verdict } from '../api/types';
import { duration, exact } from '../design/format';

/** lossCauses say that figures lack part of the run. */
const lossCauses = new Set(['incomplete_record', 'lost_worker']);
/** generatorCauses lie with the load generator's machine. */
const generatorCauses = new Set([
  'generator_cpu',
  'generator_starved',
  'gc_pause',
  'recorder_stall',
  'schedule_lag',
  'clock_step',
]);

/** isStarved reports that the generator had less of its machine than when its accuracy certificate was made. */
export const isStarved = (causes: Pick<ValidityCause, 'cause'>[] | null | undefined): boolean =>
  (causes ?? []).some((c) => c.cause === 'generator_starved' || c.cause === 'generator_cpu');

type StartedRun = Pick<RunDetail, 'total_ops'>;

/**
 * hasOperations reports whether operations were sent, from any evidence: a lost worker has no counts, but its record or
 * the live figures show them.
 */
export function hasOperations(
  run: StartedRun,
  s: Pick<Summary, 'accounting' | 'operations'>,
  liveSeconds = 0,
): boolean {
  return (
    s.accounting.started > 0 || s.accounting.recorded > 0 || s.operations > 0 || run.total_ops > 0 || liveSeconds > 0
  );
}

/** listedVerdict is the verdict in a list; null without operations. */
export function listedVerdict(r: {
  validity?: Verdict | null;
  total_ops: number;
  p50_ms: number | null;
}): Verdict | null {
  const idle = r.total_ops === 0 && r.p50_ms === null;
  return r.validity && !(idle && r.validity === 'VALID') ? r.validity : null;
}

/** minMeasuredSeconds is the shortest comparable measurement, as on the server, with tolerance. */
const minMeasuredSeconds = 19.5;

/** isTooShort reports that a measurement is too short to compare; a search measures in short steps. */
export function isTooShort(r: { measured_seconds?: number | null; scenario_config?: RunDetail['scenario_config'] }) {
  const seconds = r.measured_seconds ?? null;
  return (
    seconds !== null &&
    seconds < minMeasuredSeconds &&
    r.scenario_config?.workload?.load_mode !== 'FIND_MAX_CONCURRENCY'
  );
}

/** causesSummary explains the causes to a reader of the figures. */
export function causesSummary(causes: Pick<ValidityCause, 'cause'>[]): string {
  const lost = causes.some((c) => lossCauses.has(c.cause));
  const isGeneratorFault = causes.some((c) => generatorCauses.has(c.cause));
  if (isGeneratorFault && lost)
    return 'These figures may show the limit of the generator, not of the table, and part of the run is missing.';
  if (isGeneratorFault) return 'These figures may show the limit of the generator, not of the table.';
  if (lost) return 'Part of this run is missing from its figures.';
  if (causes.some((c) => c.cause === 'nothing_measured')) return 'Nothing was measured.';
  return 'These figures may be unreliable.';
}

export interface Interval {
  from: number;
  to: number;
}

/** causeInterval is when a cause held, in run seconds; null without times. */
export function causeInterval(c: Pick<ValidityCause, 'from' | 'to'>, start: string | null): Interval | null {
  if (!c.from || !c.to || !start) return null;
  const second = (at: string) => Math.max(0, (Date.parse(at) - Date.parse(start)) / 1000);
  const [from, to] = [second(c.from), second(c.to)];
  return to >= from ? { from, to } : null;
}

/** "(12–15 s)" */
export function intervalText(i: Interval | null): string {
  return i ? `(${Math.round(i.from)}–${Math.round(i.to)} s)` : '';
}

/** suspectIntervals merges overlapping intervals, so that no second is shaded twice. */
export function suspectIntervals(
  causes: Pick<ValidityCause, 'cause' | 'from' | 'to'>[],
  start: string | null,
): Interval[] {
  const out: Interval[] = [];
  const known = causes.flatMap((c) => {
    const i = causeInterval(c, start);
    return i ? [{ ...i, cause: c.cause }] : [];
  });
  // A cause of the whole measurement and of a part is marked where it is exact.
  const isVague = (i: (typeof known)[number]) =>
    known.some((k) => k.cause === i.cause && k.from > i.from + 0.5 && k.to <= i.to);
  const all = known.filter((i) => !isVague(i)).map(({ from, to }) => ({ from, to }));
  for (const i of all.sort((a, b) => a.from - b.from)) {
    const last = out.at(-1);
    if (last && i.from <= last.to) last.to = Math.max(last.to, i.to);
    else out.push({ ...i });
  }
  return out;
}

type Covered = Pick<RunDetail, 'start_time' | 'total_ops'> & {
  scenario_config: { workload: Pick<RunDetail['scenario_config']['workload'], 'duration_seconds' | 'load_mode'> };
};

/**
 * coverageText says what the figures of an incomplete record cover; null when it is complete. lastSeen is the last
 * second in the charts.
 */
export function coverageText(
  run: Covered,
  s: Pick<Summary, 'record_partial' | 'covered_seconds' | 'measured_from' | 'operations' | 'accounting'>,
  causes: ValidityCause[],
  lastSeen: number | null,
): string | null {
  const chartNote = lastSeen === null ? '' : ` The charts show the live data up to ${Math.round(lastSeen)} s.`;
  if (s.operations === 0)
    return run.total_ops > 0 && s.accounting.recorded === 0
      ? `${exact(run.total_ops)} operations were seen live, but the record contains none of them, so there are no ` +
          `exact figures.${chartNote}`
      : null;
  if (!s.record_partial) return null;
  if (s.covered_seconds === null)
    return (
      `The figures cover ${exact(s.operations)} operations of run workers with a complete record. No second is ` +
      `complete, so there are no rates.${chartNote}`
    );
  const planned = run.scenario_config.workload.duration_seconds;
  const of = planned > 0 && run.scenario_config.workload.load_mode.startsWith('FIND_MAX') === false;
  const begin = causeInterval({ from: s.measured_from, to: s.measured_from }, run.start_time)?.from;
  // The covered part ends at the first loss after the measurement began.
  const end = causes
    .filter((c) => lossCauses.has(c.cause))
    .map((c) => causeInterval(c, run.start_time)?.from ?? 0)
    .filter((t) => begin !== undefined && t > begin + 0.5)
    .sort((a, b) => a - b)[0];
  const where = begin === undefined || end === undefined ? '' : `, from ${Math.round(begin)} s to ${Math.round(end)} s`;
  return (
    `The figures cover ${exact(s.operations)} operations${where}. Rates cover the ` +
    `${duration(s.covered_seconds)}${of ? ` of ${duration(planned)}` : ''} whose ` +
    `record is complete.${chartNote}`
  );
}

/** incompleteRecordText says what an incomplete record lacks; nothing is added after the figures were computed. */
export function incompleteRecordText(run: Pick<RunDetail, 'summary'>): string {
  return run.summary ? 'a part of the record is lost' : 'based on the part of the record that has reached the server';
}

/** partialThresholdText says what a passed threshold covers in a run that did not complete; null otherwise. */
export const partialThresholdText = (
  run: Pick<RunDetail, 'status'>,
  t: { passed: boolean; reason?: string },
): string | null =>
  t.passed && run.status !== 'COMPLETED' ? (t.reason ?? 'passed so far; the run did not complete') : null;

/** targetText describes the target; '' when the run ended before it was read. */
export const targetText = (e: Pick<Summary['environment'], 'driver' | 'server_version' | 'target_is_local'>): string =>
  [e.driver, e.server_version, e.target_is_local && 'on the same machine'].filter(Boolean).join(' · ') ||
  'unknown: the run ended before it read the target';
