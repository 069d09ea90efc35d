import { Link } from 'wouter';
import type { Needs } from '../api/types';
import { ago } from '../design/format';

/** WaitingRuns lists runs that wait for capacity, in start order; nothing without any. */
export function WaitingRuns({ needs, now }: { needs: Needs | undefined; now: number }) {
  const runs = needs?.waiting ?? [];
  if (!needs || runs.length === 0) return null;
  const wanted = `${needs.wanted_nodes} ${needs.wanted_nodes === 1 ? 'node' : 'nodes'}`;
  return (
    <section className="panel" aria-label="Waiting runs">
      <header>
        <h2>Waiting runs</h2>
        <span className="muted note">All that runs and waits needs {wanted}.</span>
      </header>
      <ol className="queue">
        {runs.map((w) => (
          <li key={w.run_id}>
            <Link href={`/runs/${w.run_id}`}>{w.test_name}</Link> {w.reason}
            <span className="muted">
              {' '}
              · {w.asked_by}, {ago(w.since, now)}
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}
