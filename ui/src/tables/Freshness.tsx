import type { DerivedTable } from '../api/types';
import { duration } from '../design/format';
import { Mark } from '../design/icons';
import { failureText, type Freshness, freshness, isBuilt, lagSeconds } from './model';

type Shape = Parameters<typeof Mark>[0]['shape'];

export const freshnessLabels: Record<Freshness, { label: string; tone: string; shape: Shape }> = {
  fresh: { label: 'Fresh', tone: 'ok', shape: 'dot' },
  behind: { label: 'Behind', tone: 'ok', shape: 'half' },
  late: { label: 'Late', tone: 'warn', shape: 'triangle' },
  failing: { label: 'Failing', tone: 'warn', shape: 'triangle' },
  new: { label: 'Not built yet', tone: '', shape: 'ring' },
  suspended: { label: 'Suspended', tone: '', shape: 'square' },
  failed: { label: 'Failed', tone: 'bad', shape: 'cross' },
};

export function FreshnessBadge({ table, now }: { table: DerivedTable; now: number }) {
  const s = freshnessLabels[freshness(table, now)];
  return (
    <span className={`badge ${s.tone}`} title={failureText(table)?.text}>
      <Mark shape={s.shape} />
      {s.label}
    </span>
  );
}

/** Lag shows a table's lag against its target. */
export function Lag({ table, now }: { table: DerivedTable; now: number }) {
  if (!isBuilt(table))
    return (
      <div className="lag" title="The table has no rows yet, so it has no lag.">
        <div className="progress" />
        <span className="nowrap muted">not made yet / {duration(table.target_lag_seconds)}</span>
      </div>
    );
  const lag = lagSeconds(table, now);
  const share = Math.min(1, lag / table.target_lag_seconds);
  const late = lag > table.target_lag_seconds + 1;
  // Tenths of seconds would flicker.
  const words = `${lag === 0 ? 'up to date' : duration(Math.round(lag))} of ${duration(table.target_lag_seconds)}`;
  return (
    <div className="lag" title={`Behind by ${duration(lag)}; the target is ${duration(table.target_lag_seconds)}.`}>
      <div
        className={`progress${late ? ' high' : ''}`}
        role="meter"
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(share * 100)}
        aria-label={words}
      >
        <i style={{ width: `${share * 100}%` }} />
      </div>
      <span className="nowrap">
        {lag === 0 ? <span className="muted">none</span> : <strong>{duration(Math.round(lag))}</strong>}
        <span className="muted"> / {duration(table.target_lag_seconds)}</span>
      </span>
    </div>
  );
}
