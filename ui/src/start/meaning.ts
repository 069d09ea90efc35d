// What the figures of a first run mean, in sentences, and what to ask next.
import type { ValidityCause } from '../api/types';
import { count, errorRate, latency, plain, rate, sentence } from '../design/format';
import { doubt } from '../runs/known';

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
  passed: boolean;
  failed: boolean;
}

export interface Meaning {
  sentences: string[];
  /** The question that follows, see the gallery. */
  next: string;
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
  else if (f.verdict === 'VALID') sentences.push('Loadstone had time to spare: the figures are those of the database.');
  if (!f.passed) sentences.push('A threshold was not met, or the run did not end as it should: its page says which.');
  return { sentences, next: f.error_rate > 0 || f.failed ? '' : 'limit' };
}
