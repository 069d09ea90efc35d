import type { DerivedTable } from '../api/types';
import { duration } from '../design/format';
import { Mark } from '../design/icons';
import { failing, isMade, lagSeconds, type Standing, standing } from './model';

type Shape = Parameters<typeof Mark>[0]['shape'];

export const standings: Record<Standing, { word: string; tone: string; shape: Shape }> = {
  fresh: { word: 'Fresh', tone: 'ok', shape: 'dot' },
  behind: { word: 'Behind', tone: 'ok', shape: 'half' },
  late: { word: 'Late', tone: 'warn', shape: 'triangle' },
  failing: { word: 'Failing', tone: 'warn', shape: 'triangle' },
  new: { word: 'Not made yet', tone: '', shape: 'ring' },
  suspended: { word: 'Suspended', tone: '', shape: 'square' },
  failed: { word: 'Failed', tone: 'bad', shape: 'cross' },
};

export function StandingBadge({ table, now }: { table: DerivedTable; now: number }) {
  const s = standings[standing(table, now)];
  return (
    <span className={`badge ${s.tone}`} title={failing(table)?.said}>
      <Mark shape={s.shape} />
      {s.word}
    </span>
  );
}

/** How far a table is behind, against how far it may be. */
export function Lag({ table, now }: { table: DerivedTable; now: number }) {
  if (!isMade(table))
    return (
      <div className="lag" title="There is nothing yet that could be behind.">
        <div className="progress" />
        <span className="nowrap muted">not made yet / {duration(table.target_lag_seconds)}</span>
      </div>
    );
  const lag = lagSeconds(table, now);
  const share = Math.min(1, lag / table.target_lag_seconds);
  const late = lag > table.target_lag_seconds + 1;
  // Tenths of seconds would only flicker.
  const words = `${lag === 0 ? 'has everything' : duration(Math.round(lag))} of ${duration(table.target_lag_seconds)}`;
  return (
    <div className="lag" title={`Behind by ${duration(lag)}; it may be ${duration(table.target_lag_seconds)}.`}>
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
