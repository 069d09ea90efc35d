import type { Payload } from '../api/types';
import { ago, timeOfDay } from '../design/format';

interface Unresponsive {
  /** "1/5 workers unresponsive" */
  title: string;
  /** The consequences for the figures, for each of the worst. */
  details: string[];
  tone: 'warn' | 'bad';
}

/** workerCounts counts workers that should report, and those that are silent. */
export function workerCounts(live: { workers?: Payload['workers'] }): { expected: number; silent: number } {
  const expected = (live.workers ?? []).filter(
    (w) => w.health !== 'DEAD' && !['COMPLETED', 'FAILED', 'DEAD'].includes(w.status),
  );
  return { expected: expected.length, silent: expected.filter((w) => w.silent_since).length };
}

/** allSilent reports that nothing is known of the last second. */
export function allSilent(live: { workers?: Payload['workers'] }): boolean {
  const { expected, silent } = workerCounts(live);
  return expected > 0 && silent === expected;
}

/** silenceText says how long a worker has been silent, by the server's clock. */
export function silenceText(live: Payload | null, w: { silent_since: string | null }): string | null {
  if (!live || !w.silent_since) return null;
  const s = Math.round((Date.parse(live.timestamp) - Date.parse(w.silent_since)) / 1000);
  return `no report for ${Math.max(0, s)} s`;
}

/** loadEnds says of each node that cannot be reached until when its load goes on at the latest. */
function loadEnds(rows: NonNullable<Payload['workers']>): string[] {
  const by = new Map<string, string>();
  for (const w of rows) {
    const at = w.load_ends_by;
    if (at && at > (by.get(w.node_id) ?? '')) by.set(w.node_id, at);
  }
  const until = (at: string) => timeOfDay(at).slice(0, 8);
  return [...by].map(([node, at]) => `${node} cannot be reached. Its load stops by ${until(at)} at the latest.`);
}

/** unresponsive summarizes workers that cannot be reached, or were silent for 30 s; null without any. */
export function unresponsive(live: Payload | null, now: number): Unresponsive | null {
  const rows = live?.workers ?? [];
  const unhealthy = rows.filter((w) => w.health !== 'HEALTHY' || w.load_ends_by);
  if (!live || unhealthy.length === 0) return null;
  // Workers that were released no longer belong to the run.
  const all = live.status === 'RUNNING' ? rows.filter((w) => w.status !== 'COMPLETED') : rows;
  const dead = unhealthy.filter((w) => w.health === 'DEAD');
  const say = (ids: typeof unhealthy, what: string) =>
    ids.length === 0
      ? []
      : [
          `${ids
            .slice(0, 5)
            .map((w) => `${w.worker_id} (last report ${ago(w.last_heartbeat, now)})`)
            .join(', ')}${ids.length > 5 ? ` and ${ids.length - 5} more` : ''}: ${what}`,
        ];
  return {
    title: `${unhealthy.length}/${all.length} workers unresponsive`,
    tone: dead.length > 0 ? 'bad' : 'warn',
    details: [
      ...loadEnds(rows),
      ...say(
        unhealthy.filter((w) => w.health === 'STALE'),
        'the page shows their last figures. A worker counts as dead after 60 s without a report.',
      ),
      ...say(dead, 'excluded from the live figures. Its earlier executions count in the final figures.'),
    ],
  };
}
