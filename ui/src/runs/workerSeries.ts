import { useEffect, useMemo, useState } from 'react';
import { useWorkerSeries } from '../api/queries';
import type { Payload, RunDetail, WorkerPoint as Recorded } from '../api/types';

/** WorkerPoint is what a curve needs of a worker's second; the socket has no more. */
export type WorkerPoint = Pick<Recorded, 'timestamp' | 'elapsed_seconds' | 'worker_id' | 'phase' | 'p95_latency_ms'> & {
  qps: number | null;
};

/** WorkerCurve is one worker's data, one element per second. */
export interface WorkerCurve {
  at: number[];
  qps: (number | null)[];
  p95: (number | null)[];
}

/** workerCurves splits points by worker, in time order, up to an instant in Unix milliseconds. */
export function workerCurves(points: readonly WorkerPoint[], end = Number.POSITIVE_INFINITY): Map<string, WorkerCurve> {
  const out = new Map<string, WorkerCurve>();
  for (const p of points.toSorted((a, b) => Date.parse(a.timestamp) - Date.parse(b.timestamp))) {
    if (p.phase !== 'WARMUP' && p.phase !== 'MEASUREMENT') continue;
    const c = out.get(p.worker_id) ?? { at: [], qps: [], p95: [] };
    out.set(p.worker_id, c);
    const at = Date.parse(p.timestamp);
    if (at > end) continue;
    // History and the socket report the same second; the first one stays.
    if (c.at.length > 0 && at - c.at[c.at.length - 1]! < 500) continue;
    c.at.push(at);
    c.qps.push(p.qps);
    c.p95.push(p.p95_latency_ms);
  }
  return out;
}

/** lastMinute cuts the curves; in a long run a point may cover several seconds. */
export function lastMinute(all: Map<string, WorkerCurve>): Map<string, WorkerCurve> {
  const end = Math.max(...[...all.values()].map((c) => c.at.at(-1) ?? 0));
  const cut = (c: WorkerCurve) => {
    const first = c.at.findIndex((at) => at > end - 60_000);
    return first < 0
      ? { at: [], qps: [], p95: [] }
      : { at: c.at.slice(first), qps: c.qps.slice(first), p95: c.p95.slice(first) };
  };
  return new Map([...all].map(([id, c]) => [id, cut(c)]));
}

/** payloadPoints converts a payload's workers to history points. */
export function payloadPoints(p: Payload): WorkerPoint[] {
  return (p.workers ?? []).map((w) => ({
    timestamp: p.timestamp,
    elapsed_seconds: p.elapsed,
    worker_id: w.worker_id,
    phase: w.phase,
    qps: w.metrics.qps,
    p95_latency_ms: w.metrics.p95_latency_ms,
  }));
}

/** useWorkerCurves loads the curves of a finished run. */
export function useWorkerCurves(run: RunDetail): Map<string, WorkerCurve> {
  const history = useWorkerSeries(run.run_id, true);
  const end = run.measurement_end_time ? Date.parse(run.measurement_end_time) + 500 : undefined;
  return useMemo(() => workerCurves(history.data ?? [], end), [history.data, end]);
}

/** useLastMinute merges the stored last minute with live seconds. */
export function useLastMinute(run: RunDetail, live: Payload | null): Map<string, WorkerCurve> {
  const workers = Math.max(run.total_workers_expected, run.scenario_config.scaling.worker_count, 1);
  // Older seconds are not shown.
  const history = useWorkerSeries(run.run_id, live !== null, Math.max(0, Math.floor((live?.elapsed ?? 0) - 120)));
  const [ticks, setTicks] = useState<WorkerPoint[]>([]);
  useEffect(() => {
    if (live) setTicks((t) => [...t, ...payloadPoints(live)].slice(-90 * workers));
  }, [live, workers]);
  const end = run.measurement_end_time ? Date.parse(run.measurement_end_time) + 500 : undefined;
  return useMemo(() => lastMinute(workerCurves([...(history.data ?? []), ...ticks], end)), [history.data, ticks, end]);
}
