import type { PayloadWorker } from '../api/types';
import { Term } from '../design/Controls';
import { ago, count, latency, percent, rate } from '../design/format';
import { Num } from '../design/Num';
import { Empty } from '../design/States';
import { HealthBadge, phaseName } from '../design/Status';
import { terms } from '../design/terms';

export function Workers({ workers, expected, newsAt }: { workers: PayloadWorker[]; expected: number; newsAt: number }) {
  const rows = workers.toSorted((a, b) => a.worker_group_id - b.worker_group_id);
  return (
    <section className="panel" aria-label="Workers">
      <header>
        <h3>
          <Term tip={terms.runWorker}>Workers</Term>
        </h3>
        <span className="muted note">
          {rows.length} of {Math.max(expected, rows.length)}
        </span>
      </header>
      {rows.length === 0 ? (
        <Empty tight title="No worker has reported yet">
          Each worker reports once a second as soon as its connections are open.
        </Empty>
      ) : (
        <div className="table-wrap">
          <table className="table dense">
            <thead>
              <tr>
                <th>Worker</th>
                <th>
                  <Term tip={terms.node}>Node</Term>
                </th>
                <th>Phase</th>
                <th>Health</th>
                <th className="num">QPS</th>
                <th className="num">P50</th>
                <th className="num">P95</th>
                <th className="num">P99</th>
                <th className="num">Errors</th>
                <th className="num">Connections</th>
                <th className="num">CPU</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((w) => (
                <tr key={w.worker_id}>
                  <td className="mono">{w.worker_id}</td>
                  <td className="mono clip">{w.node_id}</td>
                  <td>
                    {w.status === 'RUNNING' ? phaseName(w.phase) : w.status.charAt(0) + w.status.slice(1).toLowerCase()}
                  </td>
                  <td title={`Last heartbeat ${ago(w.last_heartbeat, newsAt)}`}>
                    <HealthBadge health={w.health} />
                  </td>
                  <td className="num">
                    <Num q={rate(w.metrics.qps)} />
                  </td>
                  <td className="num">
                    <Num q={latency(w.metrics.p50_latency_ms)} />
                  </td>
                  <td className="num">
                    <Num q={latency(w.metrics.p95_latency_ms)} />
                  </td>
                  <td className="num">
                    <Num q={latency(w.metrics.p99_latency_ms)} />
                  </td>
                  <td className="num">
                    <Num q={count(w.metrics.error_count)} />
                  </td>
                  <td className="num">
                    {w.metrics.active_connections} / {w.metrics.target_connections}
                  </td>
                  <td className="num">
                    <Num q={percent(w.metrics.cpu_pct)} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
