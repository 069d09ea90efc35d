import { useEffect, useMemo, useState } from 'react';
import { useWorkerSeries } from '../api/queries';
import type { Payload, RunDetail, WorkerPoint as Recorded } from '../api/types';

/** What a curve needs to know of a second of a run worker; the socket tells no more. */
export type WorkerPoint = Pick<
  Recorded,
  'timestamp' | 'elapsed_seconds' | 'worker_id' | 'phase' | 'qps' | 'p95_latency_ms'
>;

/** What the curves of one run worker are drawn from, one element a second. */
export interface WorkerCurve {
  at: number[];
  qps: number[];
  p95: (number | null)[];
}

/** Sorts the points of all run workers into one curve each, by time, up to an instant in Unix milliseconds. */
export function curves(points: readonly WorkerPoint[], end = Number.POSITIVE_INFINITY): Map<string, WorkerCurve> {
  const out = new Map<string, WorkerCurve>();
  for (const p of points.toSorted((a, b) => Date.parse(a.timestamp) - Date.parse(b.timestamp))) {
    if (p.phase !== 'WARMUP' && p.phase !== 'MEASUREMENT') continue;
    const c = out.get(p.worker_id) ?? { at: [], qps: [], p95: [] };
    out.set(p.worker_id, c);
    const at = Date.parse(p.timestamp);
    if (at > end) continue;
    // History and the socket tell of the same second; whichever came first stays.
    if (c.at.length > 0 && at - c.at[c.at.length - 1]! < 500) continue;
    c.at.push(at);
    c.qps.push(p.qps);
    c.p95.push(p.p95_latency_ms);
  }
  return out;
}

/** The last minute of each curve; in the history of a long run a point may stand for more than a second. */
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

/** The run workers of a payload, in the form in which history tells of them. */
export function pointsOf(p: Payload): WorkerPoint[] {
  return (p.workers ?? []).map((w) => ({
    timestamp: p.timestamp,
    elapsed_seconds: p.elapsed,
    worker_id: w.worker_id,
    phase: w.phase,
    qps: w.metrics.qps,
    p95_latency_ms: w.metrics.p95_latency_ms,
  }));
}

/** The curves of the workers of a finished run. */
export function useWorkerCurves(run: RunDetail): Map<string, WorkerCurve> {
  const history = useWorkerSeries(run.run_id, true);
  const end = run.measurement_end_time ? Date.parse(run.measurement_end_time) + 500 : undefined;
  return useMemo(() => curves(history.data ?? [], end), [history.data, end]);
}

/** The last minute of a run's workers: what is stored when the page is opened, and what the socket has told since. */
export function useLastMinute(run: RunDetail, live: Payload | null): Map<string, WorkerCurve> {
  const workers = Math.max(run.total_workers_expected, run.scenario_config.scaling.worker_count, 1);
  // Of an hour before nothing is shown.
  const history = useWorkerSeries(run.run_id, live !== null, Math.max(0, Math.floor((live?.elapsed ?? 0) - 120)));
  const [ticks, setTicks] = useState<WorkerPoint[]>([]);
  useEffect(() => {
    if (live) setTicks((t) => [...t, ...pointsOf(live)].slice(-90 * workers));
  }, [live, workers]);
  const end = run.measurement_end_time ? Date.parse(run.measurement_end_time) + 500 : undefined;
  return useMemo(() => lastMinute(curves([...(history.data ?? []), ...ticks], end)), [history.data, ticks, end]);
}
