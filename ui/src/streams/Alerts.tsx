import { Link } from 'wouter';
import type { StreamAlert } from '../api/types';
import { dateTime } from '../design/format';
import { Empty } from '../design/States';

const shownFirst = 20;

/** What rules have told: runs that were stopped, rows that were posted or could not be. */
export function Alerts({ alerts }: { alerts: StreamAlert[] }) {
  return (
    <section className="panel" aria-label="Alerts">
      <header>
        <h2>Alerts</h2>
        {alerts.length > shownFirst && (
          <span className="note muted">
            the last {shownFirst} of {alerts.length}
          </span>
        )}
      </header>
      {alerts.length === 0 ? (
        <Empty tight icon="info" title="No rule has fired">
          What a query gives to a sink of the type GUARDRAIL or WEBHOOK is listed here, as long as this server runs.
        </Empty>
      ) : (
        <div className="table-wrap" tabIndex={0} role="group" aria-label="Alerts, a table that scrolls">
          <table className="table">
            <thead>
              <tr>
                <th>When</th>
                <th>Rule</th>
                <th>What it did</th>
                <th>Row</th>
              </tr>
            </thead>
            <tbody>
              {alerts.slice(0, shownFirst).map((a, i) => (
                <tr key={`${a.at} ${a.query_id} ${i}`}>
                  <td className="nowrap">{dateTime(a.at)}</td>
                  <td>{a.query}</td>
                  <td>
                    <Did alert={a} />
                  </td>
                  <td className="alert-row">
                    <code>{a.row}</code>
                    {a.rows > 1 && <span className="second muted">and {a.rows - 1} more</span>}
                    {a.failure && <span className="second problem">{a.failure}</span>}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function Did({ alert: a }: { alert: StreamAlert }) {
  if (a.failure) return <span className="badge bad">{a.run_id ? 'Could not stop it' : 'Not posted'}</span>;
  if (!a.run_id) return <span className="badge ok">Posted</span>;
  return (
    <span className="row">
      <span className="badge warn">Stopped a run</span> <Link href={`/runs/${a.run_id}`}>to the run</Link>
    </span>
  );
}
