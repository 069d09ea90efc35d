import type { HistogramData, Payload, RunDetail } from '../api/types';
import { merge, quantile } from '../charts/histogram';
import { loadChanges } from './marks';
import type { Columns } from './series';
import { fold } from './track';

/** LoadFigures are the figures of a live run under its current load. */
interface LoadFigures {
  /** Operations per second, over whole seconds. */
  qps: number;
  p50: number | null;
  p95: number | null;
  p99: number | null;
}

/** lastLoadChange is the second of the last load change in the measurement; null without one. */
export function lastLoadChange(run: RunDetail, timing: Payload['timing']): number | null {
  const start = Date.parse(timing.start_time ?? '');
  const measured = Date.parse(timing.measurement_start_time ?? '');
  const last = Math.max(...loadChanges(run).map((e) => Date.parse(e.created_at ?? '')));
  return last > measured && Number.isFinite(start) ? (last - start) / 1000 : null;
}

/**
 * loadFigures computes the figures since a load change from whole seconds: totals would mix several loads. Null before
 * the first such second.
 */
export function loadFigures(c: Columns, changed: number): LoadFigures | null {
  const of = fold(
    c,
    `at the load since ${changed}`,
    () => ({ seconds: 0, operations: 0, histogram: null as HistogramData | null }),
    (f, s) => {
      // A sample is stamped at its end; node clocks are not exact to the millisecond.
      if (!s || s.phase !== 'MEASUREMENT' || s.t - s.span < changed - 0.05) return;
      f.seconds += s.span;
      f.operations += s.qps * s.span;
      if (s.histogram)
        f.histogram = f.histogram?.schema === s.histogram.schema ? merge(f.histogram, s.histogram) : s.histogram;
    },
  );
  if (of.seconds === 0) return null;
  const [p50, p95, p99] = [0.5, 0.95, 0.99].map((share) => quantile(of.histogram, share));
  return { qps: of.operations / of.seconds, p50: p50!, p95: p95!, p99: p99! };
}
