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

/** The curves of a run's workers: its history, and what the socket has told since. */
export function useWorkerCurves(run: RunDetail, live: Payload | null, shown: boolean): Map<string, WorkerCurve> {
  const workers = Math.max(run.total_workers_expected, run.scenario_config.scaling.worker_count, 1);
  const history = useWorkerSeries(run.run_id, shown);
  const [ticks, setTicks] = useState<WorkerPoint[]>([]);
  useEffect(() => {
    if (live) setTicks((t) => [...t, ...pointsOf(live)].slice(-90 * workers));
  }, [live, workers]);
  const end = run.measurement_end_time ? Date.parse(run.measurement_end_time) + 500 : undefined;
  // Of a run that goes on the last minute is shown: an hour before it is not read again with each second.
  const going = live !== null;
  const stored = useMemo(() => (going ? lately(history.data ?? []) : (history.data ?? [])), [history.data, going]);
  return useMemo(() => curves([...stored, ...ticks], end), [stored, ticks, end]);
}

/** The points of the last minutes, by the latest one. */
export function lately(points: readonly WorkerPoint[]): readonly WorkerPoint[] {
  const since = points.reduce((latest, p) => Math.max(latest, Date.parse(p.timestamp)), 0) - 120_000;
  return points.filter((p) => Date.parse(p.timestamp) > since);
}
