import type { Payload } from '../api/types';
import { ago } from '../design/format';

export interface Unresponsive {
  /** "1/5 workers unresponsive" */
  title: string;
  /** What that means for the figures, for each of the worst. */
  details: string[];
  tone: 'warn' | 'bad';
}

/** How many run workers should report, and of how many of them nothing is heard. */
export function unheard(live: { workers?: Payload['workers'] }): { going: number; silent: number } {
  const going = (live.workers ?? []).filter(
    (w) => w.health !== 'DEAD' && !['COMPLETED', 'FAILED', 'DEAD'].includes(w.status),
  );
  return { going: going.length, silent: going.filter((w) => w.silent_since).length };
}

/** Whether nothing is known of the last second: every run worker that should report has fallen silent. */
export function nothingHeard(live: { workers?: Payload['workers'] }): boolean {
  const { going, silent } = unheard(live);
  return going > 0 && silent === going;
}

/** For how long nothing was heard of a run worker that should report each second, by the server's clock. */
export function silence(live: Payload | null, w: { silent_since: string | null }): string | null {
  if (!live || !w.silent_since) return null;
  const s = Math.round((Date.parse(live.timestamp) - Date.parse(w.silent_since)) / 1000);
  return `nothing heard for ${Math.max(0, s)} s`;
}

/** How many run workers have not been heard of for 30 s, and what counts of them; null when all are. */
export function unresponsive(live: Payload | null, now: number): Unresponsive | null {
  const rows = live?.workers ?? [];
  const gone = rows.filter((w) => w.health !== 'HEALTHY');
  if (!live || gone.length === 0) return null;
  // Those that were not needed any more and left are none of the run's workers now.
  const all = live.status === 'RUNNING' ? rows.filter((w) => w.status !== 'COMPLETED') : rows;
  const dead = gone.filter((w) => w.health === 'DEAD');
  const say = (ids: typeof gone, what: string) =>
    ids.length === 0
      ? []
      : [
          `${ids
            .slice(0, 5)
            .map((w) => `${w.worker_id} (last heard of ${ago(w.last_heartbeat, now)})`)
            .join(', ')}${ids.length > 5 ? ` and ${ids.length - 5} more` : ''}: ${what}`,
        ];
  return {
    title: `${gone.length}/${all.length} workers unresponsive`,
    tone: dead.length > 0 ? 'bad' : 'warn',
    details: [
      ...say(
        gone.filter((w) => w.health === 'STALE'),
        'the last figures are still shown; after 60 s of silence a worker counts as dead.',
      ),
      ...say(dead, 'left out of the live figures. What was recorded before counts in the final ones.'),
    ],
  };
}
