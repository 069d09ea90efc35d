import type { RunDetail, Summary, ValidityCause, Verdict } from '../api/types';
import { duration, exact } from '../design/format';

/** Causes that tell of parts of a run that its figures do not have. */
const losses = new Set(['incomplete_record', 'lost_worker']);
/** Causes that lie with the machine that generates the load. */
const generators = new Set(['generator_cpu', 'gc_pause', 'recorder_stall', 'schedule_lag', 'clock_step']);

type Begun = Pick<RunDetail, 'total_ops'>;

/**
 * Reports whether operations were sent, as far as anything tells: a run worker that was lost cannot say what it began,
 * but its record can, and so can what was seen of it while it lived.
 */
export function began(run: Begun, s: Pick<Summary, 'accounting' | 'operations'>, seen = 0): boolean {
  return s.accounting.started > 0 || s.accounting.recorded > 0 || s.operations > 0 || run.total_ops > 0 || seen > 0;
}

/** The verdict that a list shows of a run; null for one without operations, which has no figures to call valid. */
export function judged(r: { validity?: Verdict | null; total_ops: number; p50_ms: number | null }): Verdict | null {
  const idle = r.total_ops === 0 && r.p50_ms === null;
  return r.validity && !(idle && r.validity === 'VALID') ? r.validity : null;
}

/** The shortest measurement whose figures can be held against others, as the server judges it, with room for edges. */
const shortest = 19.5;

/** Reports that a run was measured for too short a time to be held against others; a search measures in short steps. */
export function tooShort(r: { measured_seconds?: number | null; scenario_config?: RunDetail['scenario_config'] }) {
  const seconds = r.measured_seconds ?? null;
  return seconds !== null && seconds < shortest && r.scenario_config?.workload?.load_mode !== 'FIND_MAX_CONCURRENCY';
}

/** What the causes mean together for whoever reads the figures. */
export function doubt(causes: Pick<ValidityCause, 'cause'>[]): string {
  const lost = causes.some((c) => losses.has(c.cause));
  const own = causes.some((c) => generators.has(c.cause));
  if (own && lost)
    return "These figures may show the generator's limit rather than the table's, and part of the run is missing.";
  if (own) return "These figures may show the generator's limit rather than the table's.";
  if (lost) return 'Part of this run is missing from its figures.';
  if (causes.some((c) => c.cause === 'nothing_measured')) return 'Nothing was measured.';
  return 'Something speaks against these figures.';
}

export interface Interval {
  from: number;
  to: number;
}

/** When a cause held, in seconds of the run, as the charts count them; null where it has no times. */
export function interval(c: Pick<ValidityCause, 'from' | 'to'>, start: string | null): Interval | null {
  if (!c.from || !c.to || !start) return null;
  const second = (at: string) => Math.max(0, (Date.parse(at) - Date.parse(start)) / 1000);
  const [from, to] = [second(c.from), second(c.to)];
  return to >= from ? { from, to } : null;
}

/** "(12–15 s)" */
export function within(i: Interval | null): string {
  return i ? `(${Math.round(i.from)}–${Math.round(i.to)} s)` : '';
}

/** The intervals to mark on charts: overlapping ones as one, so that no second is shaded twice. */
export function doubtful(causes: Pick<ValidityCause, 'cause' | 'from' | 'to'>[], start: string | null): Interval[] {
  const out: Interval[] = [];
  const known = causes.flatMap((c) => {
    const i = interval(c, start);
    return i ? [{ ...i, cause: c.cause }] : [];
  });
  // What is said of the whole measurement, and of a part of it more exactly, is marked where it is exact.
  const vague = (i: (typeof known)[number]) =>
    known.some((k) => k.cause === i.cause && k.from > i.from + 0.5 && k.to <= i.to);
  const all = known.filter((i) => !vague(i)).map(({ from, to }) => ({ from, to }));
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
 * What the figures of a run with a hole in its record rest on, in a sentence; null when the record is whole.
 * lastSeen is the last second that the charts have.
 */
export function covers(
  run: Covered,
  s: Pick<Summary, 'covered_seconds' | 'measured_from' | 'operations' | 'accounting'>,
  causes: ValidityCause[],
  lastSeen: number | null,
): string | null {
  const seen = lastSeen === null ? '' : ` The charts go to ${Math.round(lastSeen)} s: they show what was seen live.`;
  if (s.operations === 0)
    return run.total_ops > 0 && s.accounting.recorded === 0
      ? `${exact(run.total_ops)} operations were seen live, and the record holds none of them: there are no exact ` +
          `figures.${seen}`
      : null;
  if (s.covered_seconds === null || s.covered_seconds === undefined) return null;
  if (s.covered_seconds === 0)
    return (
      `The figures hold ${exact(s.operations)} operations of run workers whose record is there. There is no second ` +
      `of which all of the record is there, so there are no rates.${seen}`
    );
  const asked = run.scenario_config.workload.duration_seconds;
  const of = asked > 0 && run.scenario_config.workload.load_mode.startsWith('FIND_MAX') === false;
  const begin = interval({ from: s.measured_from, to: s.measured_from }, run.start_time)?.from;
  // What ends the covered part is the first loss after the measurement began.
  const end = causes
    .filter((c) => losses.has(c.cause))
    .map((c) => interval(c, run.start_time)?.from ?? 0)
    .filter((t) => begin !== undefined && t > begin + 0.5)
    .sort((a, b) => a - b)[0];
  const where = begin === undefined || end === undefined ? '' : `, from ${Math.round(begin)} s to ${Math.round(end)} s`;
  return (
    `The figures hold ${exact(s.operations)} operations${where}; rates are taken over ` +
    `${duration(s.covered_seconds)}${of ? ` of the ${duration(asked)} that were to be measured` : ''}, of which all ` +
    `of the record is there.${seen}`
  );
}

/** What a record that is not whole lacks: after the figures were made nothing comes any more. */
export function incomplete(run: Pick<RunDetail, 'summary'>): string {
  return run.summary ? 'a part of the record is lost' : 'as far as the record has come to the server';
}

/** What a threshold that passed covers, in a run that did not complete: it was judged on a part. Null of any other. */
export const metSoFar = (run: Pick<RunDetail, 'status'>, t: { passed: boolean; reason?: string }): string | null =>
  t.passed && run.status !== 'COMPLETED' ? (t.reason ?? 'met so far; the run did not complete') : null;

/** The target as it told of itself: nothing where the run ended before it was asked. */
export const targetOf = (e: Pick<Summary['environment'], 'driver' | 'server_version' | 'target_is_local'>): string =>
  [e.driver, e.server_version, e.target_is_local && 'on the same machine'].filter(Boolean).join(' · ') ||
  'not known: the run ended before it was looked at';
