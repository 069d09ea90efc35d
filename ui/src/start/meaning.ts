// What the figures of a first run mean, in sentences, and what to ask next.
import type { RunDetail, ValidityCause } from '../api/types';
import { count, duration, errorRate, latency, plain, rate, sentence } from '../design/format';
import { said } from '../design/said';
import { doubt } from '../runs/known';
import { prepareSteps, stepOf } from '../runs/PrepareProgressPanel';

/** What is known of a run that is over, as far as the sentences need it. */
export interface FirstFigures {
  operations: number;
  qps: number;
  p95_ms: number | null;
  error_rate: number;
  connections: number;
  verdict: string;
  /** What degrades the run, as the verdict says it. */
  causes: Pick<ValidityCause, 'cause' | 'detail'>[];
  /** What else there is to know, in the verdict's own sentences. */
  notes: string[];
  /** The database was on the machine that made the load. */
  local: boolean;
  passed: boolean;
  failed: boolean;
}

export interface Meaning {
  sentences: string[];
  /** The question that follows, see the gallery. */
  next: string;
}

/** What a run that has not ended does now, for somebody who waits for it. */
export function going(r: Pick<RunDetail, 'phase' | 'status' | 'waiting' | 'live'>): string {
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

/** Says what a run means to somebody who has never made one. */
export function meaning(f: FirstFigures): Meaning {
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
    f.error_rate > 0
      ? `${plain(errorRate(f.error_rate))} of them failed. ` +
          'Look at their messages first: a fast error makes figures look good.'
      : 'None of them failed.',
  );
  if (f.verdict === 'DEGRADED')
    sentences.push([doubt(f.causes), ...f.causes.slice(0, 3).map((c) => `${sentence(c.detail)}.`)].join(' '));
  else if (f.verdict === 'VALID')
    sentences.push(
      f.local
        ? 'Loadstone had time to spare. Database and load shared a machine, though: on one of its own it may do better.'
        : 'Loadstone had time to spare: the figures are those of the database, and of the way to it.',
    );
  sentences.push(...f.notes.filter((n) => !f.local || !n.includes('same machine')).map(said));
  if (!f.passed) sentences.push('A threshold was not met, or the run did not end as it should: its page says which.');
  return { sentences, next: f.error_rate > 0 || f.failed ? '' : 'limit' };
}
