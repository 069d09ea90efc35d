import type { Beginning, Payload, RunDetail } from '../api/types';
import { Sparkline } from '../charts/Sparkline';
import { Term } from '../design/Controls';
import { ago, count, errorRate, latency, percent, plain, rate } from '../design/format';
import { Num } from '../design/Num';
import { serverText } from '../design/sentences';
import { Empty } from '../design/States';
import { HealthBadge, phaseName, StatusBadge } from '../design/Status';
import { terms } from '../design/terms';
import { startTimingText } from './startTiming';
import { throughput } from './rates';
import { silenceText } from './unresponsive';
import { useLastMinute, useWorkerCurves, type WorkerCurve } from './workerSeries';

const spark = { width: 132, height: 24 };

/** axisTops is one scale for all workers, so that a slow one stands out. */
function axisTops(curves: Map<string, WorkerCurve>, last: number): { qps: number; p95: number } {
  let qps = 1e-9;
  let p95 = 1e-9;
  for (const c of curves.values()) {
    for (const v of c.qps.slice(-last)) if (v !== null && v > qps) qps = v;
    for (const v of c.p95.slice(-last)) if (v !== null && v > p95) p95 = v;
  }
  return { qps, p95 };
}

function Curve(props: {
  values: (number | null)[] | undefined;
  last: number;
  max: number;
  color: string;
  label: string;
}) {
  if (!props.values || props.values.length < 2) return <span className="muted">–</span>;
  return <Sparkline {...spark} {...props} values={props.values} fill />;
}

/** StartTiming shows how late a worker's load started, and its clock error. */
function StartTiming({ beginning: b }: { beginning: Beginning | null | undefined }) {
  if (!b) return <span className="muted">–</span>;
  return (
    <span title={startTimingText(b)}>
      <Num q={latency(b.start_late_ms)} />
      <span className="second">
        {b.clock_error_ms === null ? 'clock unknown' : `± ${plain(latency(b.clock_error_ms))}`}
      </span>
    </span>
  );
}

/** Workers lists the workers of a live run with their last minute. */
export function Workers({ run, live, lastMessageAt }: { run: RunDetail; live: Payload | null; lastMessageAt: number }) {
  const rows = (live?.workers ?? []).toSorted((a, b) => a.worker_group_id - b.worker_group_id);
  const curves = useLastMinute(run, live);
  const top = axisTops(curves, 60);
  return (
    <section className="panel" aria-label="Workers">
      <header>
        <h2 className="h3">
          <Term tip={terms.runWorker}>Workers</Term>
        </h2>
        <span className="muted note">
          {rows.length} of {Math.max(run.total_workers_expected, rows.length)}
        </span>
      </header>
      {rows.length === 0 ? (
        <Empty tight title="No worker has reported yet">
          Each worker reports once per second after its connections are open.
        </Empty>
      ) : (
        <div className="table-wrap" tabIndex={0} role="group" aria-label="Workers, scrollable">
          <table className="table dense">
            <thead>
              <tr>
                <th>Worker</th>
                <th>Health</th>
                <th>
                  <Term tip={terms.workerCurve}>Last minute</Term>
                </th>
                <th className="num">Throughput</th>
                <th className="num">P50</th>
                <th className="num">P95</th>
                <th className="num">P99</th>
                <th className="num">Errors</th>
                <th className="num">Connections</th>
                <th className="num">CPU</th>
                <th className="num">
                  <Term tip={terms.startLate}>Start</Term>
                </th>
                <th>Phase</th>
                <th>
                  <Term tip={terms.node}>Node</Term>
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map((w) => (
                <tr key={w.worker_id}>
                  <td className="mono">{w.worker_id}</td>
                  <td title={`Last heartbeat ${ago(w.last_heartbeat, lastMessageAt)}`}>
                    <HealthBadge health={w.health} />
                    {silenceText(live, w) && <span className="second">{silenceText(live, w)}</span>}
                  </td>
                  <td>
                    <Curve
                      values={curves.get(w.worker_id)?.qps}
                      last={60}
                      max={top.qps}
                      color="--accent"
                      label={
                        `Throughput of ${w.worker_id} over the last minute; the axis ends at ` +
                        `${plain(rate(top.qps))}`
                      }
                    />
                  </td>
                  <td className={w.silent_since ? 'num muted' : 'num'}>
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
                  <td className="num">
                    <StartTiming beginning={w.beginning} />
                  </td>
                  <td>
                    {w.status === 'RUNNING' ? phaseName(w.phase) : w.status.charAt(0) + w.status.slice(1).toLowerCase()}
                  </td>
                  <td className="mono clip">{w.node_id}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

/** FinishedWorkers lists the workers of a finished run with their whole curves. */
export function FinishedWorkers({ run }: { run: RunDetail }) {
  const rows = (run.workers ?? []).toSorted((a, b) => (a.worker_group_id ?? 0) - (b.worker_group_id ?? 0));
  const curves = useWorkerCurves(run);
  const top = axisTops(curves, Number.POSITIVE_INFINITY);
  const all = Number.POSITIVE_INFINITY;
  return (
    <section className="panel" aria-label="Workers">
      <header>
        <h2 className="h3">
          <Term tip={terms.runWorker}>Workers</Term>
        </h2>
        <span className="muted note">{rows.length}</span>
      </header>
      {rows.length === 0 ? (
        <Empty tight title="No figures of workers">
          The run ended before a worker measured anything.
        </Empty>
      ) : (
        <div className="table-wrap" tabIndex={0} role="group" aria-label="Workers, scrollable">
          <table className="table dense">
            <thead>
              <tr>
                <th>Worker</th>
                <th>Status</th>
                <th>
                  <Term tip={terms.workerCurve}>Throughput over time</Term>
                </th>
                <th className="num">Throughput</th>
                <th>
                  <Term tip={terms.workerCurve}>P95 over time</Term>
                </th>
                <th className="num">P50</th>
                <th className="num">P95</th>
                <th className="num">P99</th>
                <th className="num">Operations</th>
                <th className="num">Errors</th>
                <th className="num">
                  <Term tip={terms.startLate}>Start</Term>
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map((w) => {
                const f = w.figures;
                const id = w.worker_id ?? '';
                return (
                  <tr key={id}>
                    <td className="mono">{id}</td>
                    <td>
                      <StatusBadge status={w.status} />
                      {w.failure_reason && <span className="second">{serverText(w.failure_reason)}</span>}
                    </td>
                    <td>
                      <Curve
                        values={curves.get(id)?.qps}
                        last={all}
                        max={top.qps}
                        color="--accent"
                        label={`Throughput of ${id} over the run; the axis ends at ${plain(rate(top.qps))}`}
                      />
                    </td>
                    <td className="num">
                      <Num q={throughput(f)} />
                    </td>
                    <td>
                      <Curve
                        values={curves.get(id)?.p95}
                        last={all}
                        max={top.p95}
                        color="--p95"
                        label={`P95 of ${id} over the run; the axis ends at ${plain(latency(top.p95))}`}
                      />
                    </td>
                    <td className="num">
                      <Num q={latency(f?.latency_ms?.p50)} />
                    </td>
                    <td className="num">
                      <Num q={latency(f?.latency_ms?.p95)} />
                    </td>
                    <td className="num">
                      <Num q={latency(f?.latency_ms?.p99)} />
                    </td>
                    <td className="num">
                      <Num q={count(f?.operations)} />
                    </td>
                    <td className="num">
                      <Num q={count(f?.errors.count)} />
                      {!!f?.errors.count && <span className="second">{plain(errorRate(f.errors.rate))}</span>}
                    </td>
                    <td className="num">
                      <StartTiming beginning={f?.beginning} />
                    </td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
