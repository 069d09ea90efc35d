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
  if (r.status === 'PREPARED')
    return r.waiting ? `The run is waiting: ${r.waiting.reason}` : 'The run is about to start.';
  const live = r.live;
  const left = live?.timing.phase_remaining_seconds ?? null;
  const more = !left ? '' : ` About ${duration(Math.ceil(left))} left.`;
  switch (live?.phase ?? r.phase) {
    case 'WARMUP':
      return `Warming up: operations run but do not count yet.${more}`;
    case 'MEASUREMENT':
      return live && live.ops.total > 0
        ? `Measuring: ${plain(rate(live.ops.current_per_sec))} now.${more}`
        : `Measuring: no operation has finished yet.${more}`;
    case 'COOLDOWN':
      return 'The load has ended. The run is waiting for operations in flight.';
    case 'PROCESSING':
      return 'The load has ended. Loadstone is computing the exact figures.';
    default: {
      const p = live?.prepare ?? null;
      const step = prepareSteps[stepOf(p)]?.now ?? 'Preparing the run';
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
          ? 'The run ended before its measurement. Its page shows the cause and the fix.'
          : 'No operation was measured, so there is no result.',
      ],
      next: '',
    };
  const sentences = [
    `The run measured ${plain(count(f.operations))} operations: ${plain(rate(f.qps))} over ${f.connections} ` +
      `${f.connections === 1 ? 'connection' : 'connections'}. Each connection sent its next operation as soon as ` +
      'the last one had ended.',
    'This is the throughput of these connections, not the limit of the table. More connections may bring more ' +
      'throughput, or only longer waits.',
  ];
  if (f.p95_ms !== null)
    sentences.push(
      `95 of 100 operations took ${plain(latency(f.p95_ms))} or less. The page of the run lists the slowest ones.`,
    );
  sentences.push(
    (f.error_rate ?? 0) > 0
      ? `${plain(errorRate(f.error_rate))} of the operations failed. ` +
          'Read their messages first, because fast errors make figures look good.'
      : 'No operation failed.',
  );
  if (f.verdict === 'DEGRADED')
    sentences.push([causesSummary(f.causes), ...f.causes.slice(0, 3).map((c) => `${capitalize(c.detail)}.`)].join(' '));
  else if (f.verdict === 'VALID')
    sentences.push(
      f.local
        ? 'Loadstone was fast enough. The database shared its machine with the load, so it may be faster on its own.'
        : 'Loadstone was fast enough, so the figures describe the database and its network.',
    );
  sentences.push(...f.notes);
  if (!f.passed)
    sentences.push('A threshold failed, or the run did not complete. The page of the run shows the cause.');
  return { sentences, next: (f.error_rate ?? 0) > 0 || f.failed ? '' : 'limit' };
}
