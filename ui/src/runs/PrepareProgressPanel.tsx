import type { Payload } from '../api/types';
import { count, duration, plain, rate } from '../design/format';

const steps: Record<string, string> = {
  inspect: 'Inspecting the table',
  create: 'Creating the table',
  load: 'Loading sample rows',
  index: 'Building indexes',
  connect: 'Opening connections',
};

const order = ['inspect', 'create', 'load', 'index', 'connect'];

/** How far the set-up is. It goes on when the page is left; the header's stop button cancels it. */
export function PrepareProgressPanel({ live }: { live: Payload | null }) {
  const p = live?.prepare ?? null;
  const share = p && p.rows_total > 0 ? Math.min(1, p.rows_done / p.rows_total) : 0;
  const at = p ? order.indexOf(p.step) : -1;
  const unit = p?.step === 'connect' ? 'connections' : 'rows';
  return (
    <section className="panel pad preparing" aria-label="Preparing">
      <div className="row">
        <h2>{p ? (steps[p.step] ?? p.message) : 'Preparing the run'}</h2>
        <span className="muted">{p?.message ?? 'Resolving plugins and inspecting the target'}</span>
      </div>
      <div
        className="progress"
        role="progressbar"
        aria-label={p ? (steps[p.step] ?? p.step) : 'Preparing'}
        aria-valuenow={Math.round(share * 100)}
        aria-valuemin={0}
        aria-valuemax={100}
      >
        <i style={{ width: `${(share * 100).toFixed(2)}%` }} />
      </div>
      {p && p.rows_total > 0 && (
        <div className="row figures">
          <span>
            <strong>{plain(count(p.rows_done))}</strong> of {plain(count(p.rows_total))} {unit}
          </span>
          {p.rows_per_second > 0 && <span className="muted">{plain(rate(p.rows_per_second))}</span>}
          {p.remaining_seconds !== null && (
            <span className="muted">about {duration(Math.ceil(p.remaining_seconds))} left</span>
          )}
        </div>
      )}
      <ol className="steps">
        {order.map((s, i) => (
          <li key={s} className={i < at ? 'done' : i === at ? 'now' : ''} aria-current={i === at ? 'step' : undefined}>
            {s}
          </li>
        ))}
      </ol>
      <p className="muted">
        The load begins by itself when this is done. You can leave the page; “Stop and drain” cancels the set-up.
      </p>
    </section>
  );
}
