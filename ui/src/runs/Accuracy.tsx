import type { Calibration, LivePercentile } from '../api/types';
import { dateTime, latency, plain, rate } from '../design/format';

const signed = (n: number, digits: number) => `${n > 0 ? '+' : n < 0 ? '−' : '±'}${Math.abs(n).toFixed(digits)}`;

/** worst is the percentile error furthest from zero, in milliseconds. */
export function worst(c: Calibration): number | null {
  const errors = (c.percentiles ?? []).map((p) => p.error_ms);
  return errors.length ? errors.reduce((a, b) => (Math.abs(b) > Math.abs(a) ? b : a)) : null;
}

/** liveErrors describes the error of the live percentiles; '' without any. */
export function liveErrors(list: LivePercentile[] | null | undefined): string {
  return (list ?? [])
    .flatMap((p) => (p.error_pct === null ? [] : [`P${p.percentile} ${signed(p.error_pct, 2)} %`]))
    .join(', ');
}

/** Accuracy shows the generator's calibration and the error of the live percentiles. */
export function Accuracy({
  certificate,
  live,
  starved = false,
}: {
  certificate?: Calibration | null;
  live?: LivePercentile[] | null;
  /** The run's own witnesses say that the generator's machine was busier than when it was measured. */
  starved?: boolean;
}) {
  const c = starved ? null : certificate;
  const error = c ? worst(c) : null;
  const errorText = liveErrors(live);
  return (
    <section className="panel">
      <header>
        <h2 className="h3">Accuracy</h2>
      </header>
      <dl className="body defs">
        <dt>Live percentiles</dt>
        <dd>
          {errorText ? `${errorText} at the end of the measurement, against all recorded executions` : 'none shown'}
        </dd>
        {c ? (
          <>
            <dt>Generator</dt>
            <dd>
              {(c.cost_ns_per_operation / 1000).toFixed(1)} µs of CPU for an operation · {plain(rate(c.max_qps))} at
              most
            </dd>
            <dt>Schedule</dt>
            <dd>
              P99 {plain(latency(c.schedule_lag_p99_ms))} late at {plain(rate(c.schedule_rate))} · rate off by{' '}
              {signed(c.rate_error_pct, 2)} %
            </dd>
            <dt>Percentiles</dt>
            <dd>
              {error === null
                ? '–'
                : `off by ${plain(latency(Math.abs(error)))} at most, on a target whose latencies are known`}
            </dd>
            <dt>Measured</dt>
            <dd>
              {dateTime(c.at)}
              {c.machine_busy_pct ? ` with ${c.machine_busy_pct.toFixed(0)} % of the processors busy` : ''} ·{' '}
              {c.connections} connections · I/O {c.io_engine} ·{' '}
              {c.automatic ? 'by itself, once for this machine and version' : 'with loadstone calibrate'}
            </dd>
          </>
        ) : (
          <>
            <dt>Generator</dt>
            <dd>
              {starved
                ? 'the accuracy certificate does not apply: the machine was busier than during calibration'
                : 'not measured on this machine with this version'}
            </dd>
          </>
        )}
      </dl>
    </section>
  );
}
