import type { Payload, PrepareProgress } from '../api/types';
import { count, duration, plain, rate } from '../design/format';

/** prepareSteps are the steps in order, with their texts. */
export const prepareSteps = [
  { name: 'Connect', now: 'Connecting to the target' },
  { name: 'Inspect the table', now: 'Inspecting the table' },
  { name: 'Create it', now: 'Creating the table' },
  { name: 'Load rows', now: 'Loading sample rows' },
  { name: 'Build indexes', now: 'Building indexes' },
  { name: 'Open connections', now: 'Opening connections' },
] as const;

const wire = ['connect', 'inspect', 'create', 'load', 'index'];

/**
 * stepOf is the index of the reported step, −1 for an unknown one. The wire uses connect for the first and the last
 * step: only the last reports a count.
 */
export function stepOf(p: Pick<PrepareProgress, 'step' | 'rows_total'> | null): number {
  if (!p) return -1;
  return p.step === 'connect' && p.rows_total > 0 ? prepareSteps.length - 1 : wire.indexOf(p.step);
}

/** PrepareProgressPanel shows preparation progress. */
export function PrepareProgressPanel({ live }: { live: Payload | null }) {
  const p = live?.prepare ?? null;
  const share = p && p.rows_total > 0 ? Math.min(1, p.rows_done / p.rows_total) : 0;
  const at = stepOf(p);
  const title = prepareSteps[at]?.now ?? 'Preparing the run';
  const connecting = p?.step === 'connect';
  return (
    <section className="panel pad preparing" aria-label="Preparing">
      <div className="row">
        <h2>{p?.message || title}</h2>
      </div>
      <div
        className="progress"
        role="progressbar"
        aria-label={title}
        aria-valuenow={Math.round(share * 100)}
        aria-valuemin={0}
        aria-valuemax={100}
      >
        <i style={{ width: `${(share * 100).toFixed(2)}%` }} />
      </div>
      {p && p.rows_total > 0 && (
        <div className="row figures">
          <span>
            <strong>{plain(count(p.rows_done))}</strong> of {plain(count(p.rows_total))}{' '}
            {connecting ? 'connections are open' : 'rows are loaded'}
          </span>
          {p.rows_per_second > 0 && <span className="muted">{plain(rate(p.rows_per_second, ' rows/s'))}</span>}
          {p.remaining_seconds !== null && (
            <span className="muted">about {duration(Math.ceil(p.remaining_seconds))} left</span>
          )}
        </div>
      )}
      <ol className="steps">
        {prepareSteps.map((s, i) => (
          <li
            key={s.name}
            className={i < at ? 'done' : i === at ? 'now' : ''}
            aria-current={i === at ? 'step' : undefined}
          >
            {s.name}
          </li>
        ))}
      </ol>
      <p className="muted">
        The load begins by itself when this is done. You can leave the page; “Stop and drain” cancels the set-up.
      </p>
    </section>
  );
}
