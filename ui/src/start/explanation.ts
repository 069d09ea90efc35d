// Explains the figures of a first run in sentences, with a next step.
import type { RunDetail, Summary, ValidityCause } from '../api/types';
import { capitalize, count, duration, errorRate, latency, plain, rate } from '../design/format';
import { causesSummary } from '../runs/validity';
import { prepareSteps, stepOf } from '../runs/PrepareProgressPanel';

/** FirstFigures is what the explanation needs of a finished run. */
export interface FirstFigures {
  operations: number;
  qps: number | null;
  p95_ms: number | null;
  error_rate: number | null;
  connections: number;
  verdict: string;
  /** The validity causes that degrade the run. */
  causes: Pick<ValidityCause, 'cause' | 'detail'>[];
  /** Further notes of the verdict. */
  notes: string[];
  /** The database ran on the load generator's machine. */
  local: boolean;
  passed: boolean;
  failed: boolean;
}

interface RunExplanation {
  sentences: string[];
  /** The next question, see the gallery. */
  next: string;
}

/** progressText says what an unfinished run does now. */
export function progressText(r: Pick<RunDetail, 'phase' | 'status' | 'waiting' | 'live'>): string {
  if (r.status === 'PREPARED') return r.waiting ? `It waits: ${r.waiting.reason}` : 'It is about to start.';
  const live = r.live;
  const left = live?.timing.phase_remaining_seconds ?? null;
  const more = !left ? '' : ` About ${duration(Math.ceil(left))} left.`;
  switch (live?.phase ?? r.phase) {
    case 'WARMUP':
      return `It warms up: operations are sent, and none counts yet.${more}`;
    case 'MEASUREMENT':
      return live && live.ops.total > 0
        ? `It is measured: ${plain(rate(live.ops.current_per_sec))} now.${more}`
        : `It is measured, and no operation has ended yet.${more}`;
    case 'COOLDOWN':
      return 'The load has ended; what was in flight is waited for.';
    case 'PROCESSING':
      return 'The load has ended; the exact figures are being computed.';
    default: {
      const p = live?.prepare ?? null;
      const step = prepareSteps[stepOf(p)]?.now ?? 'It is being prepared';
      const far = p && p.rows_total > 0 ? `, ${plain(count(p.rows_done))} of ${plain(count(p.rows_total))}` : '';
      const still = p?.remaining_seconds;
      return `${step}${far}.${still ? ` About ${duration(Math.ceil(still))} left.` : ''}`;
    }
  }
}

/** otherNotes are the notes without that of a local database, which has words of its own here. */
export const otherNotes = (v: Pick<Summary['validity_detail'], 'notes' | 'note_details'> | undefined): string[] =>
  (v?.notes ?? []).filter((_, i) => v?.note_details?.[i]?.code !== 'target_local');

/** explainRun explains a run to a first-time user. */
export function explainRun(f: FirstFigures): RunExplanation {
  if (f.operations === 0)
    return {
      sentences: [
        f.failed
          ? 'The run ended before an operation was measured: its page says why, and what to do.'
          : 'No operation was measured, so there is nothing to read from it.',
      ],
      next: '',
    };
  const sentences = [
    `${plain(count(f.operations))} operations were measured: ${plain(rate(f.qps))}, over ${f.connections} ` +
      `${f.connections === 1 ? 'connection' : 'connections'} that each issued the next as soon as the last had ended.`,
    'That is what these connections got, not the most that the table can take: more connections may get more, ' +
      'or only wait longer.',
  ];
  if (f.p95_ms !== null)
    sentences.push(
      `95 of 100 operations took ${plain(latency(f.p95_ms))} or less; the slowest are on the page of the run.`,
    );
  sentences.push(
    (f.error_rate ?? 0) > 0
      ? `${plain(errorRate(f.error_rate))} of them failed. ` +
          'Look at their messages first: a fast error makes figures look good.'
      : 'None of them failed.',
  );
  if (f.verdict === 'DEGRADED')
    sentences.push([causesSummary(f.causes), ...f.causes.slice(0, 3).map((c) => `${capitalize(c.detail)}.`)].join(' '));
  else if (f.verdict === 'VALID')
    sentences.push(
      f.local
        ? 'Loadstone had time to spare. Database and load shared a machine, though: on one of its own it may do better.'
        : 'Loadstone had time to spare: the figures are those of the database, and of the way to it.',
    );
  sentences.push(...f.notes);
  if (!f.passed) sentences.push('A threshold was not met, or the run did not end as it should: its page says which.');
  return { sentences, next: (f.error_rate ?? 0) > 0 || f.failed ? '' : 'limit' };
}
