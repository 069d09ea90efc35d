import { Link } from 'wouter';
import type { Payload, RunDetail } from '../api/types';
import { capitalize, elapsed, exact, humanize } from '../design/format';
import { serverText } from '../design/sentences';
import { executionsPath } from './executionFilter';
import './executions.css';

/** LiveErrors lists recent errors of a live run, latest first; nothing without errors. */
export function LiveErrors({ run, live }: { run: RunDetail; live: Payload | null }) {
  const met = (live?.errors.recent ?? []).toReversed();
  if (met.length === 0) return null;
  const start = Date.parse(live?.timing.start_time ?? run.start_time ?? '');
  const at = (iso: string | null) => (
    <time dateTime={iso ?? ''} title={iso ?? ''}>
      {iso && start ? elapsed(Math.max(0, (Date.parse(iso) - start) / 1000)) : '–'}
    </time>
  );
  return (
    <section className="panel" aria-labelledby="live-errors">
      <header>
        <h2 id="live-errors">Latest errors</h2>
        <span className="muted note">including the warm-up</span>
      </header>
      <ul className="failures">
        {met.map((e) => (
          <li key={`${e.error_class}/${e.error_code}/${e.error_message}`}>
            <div className="failure-head">
              <strong className="num">{e.count > 0 ? exact(e.count) : '–'}</strong>
              <span>
                {capitalize(humanize(e.error_class))} {e.error_code && <code>{e.error_code}</code>}
              </span>
              {e.count > 0 && (
                <span className="muted">
                  first at {at(e.first_at)}, last at {at(e.last_at)}
                </span>
              )}
              <Link
                className="btn small"
                href={executionsPath(run.run_id, {
                  class: e.error_class,
                  code: e.error_code,
                  message: e.error_message,
                })}
              >
                Show executions
              </Link>
            </div>
            <p className="message">{serverText(e.error_message)}</p>
          </li>
        ))}
      </ul>
    </section>
  );
}
