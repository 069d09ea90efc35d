import { Link } from 'wouter';
import type { StreamAlert } from '../api/types';
import { dateTime } from '../design/format';
import { Empty } from '../design/States';

const initialCount = 20;

/** Alerts lists what rules did: stopped runs, posted rows and failed posts. */
export function Alerts({ alerts }: { alerts: StreamAlert[] }) {
  return (
    <section className="panel" aria-label="Alerts">
      <header>
        <h2>Alerts</h2>
        {alerts.length > initialCount && (
          <span className="note muted">
            the last {initialCount} of {alerts.length}
          </span>
        )}
      </header>
      {alerts.length === 0 ? (
        <Empty tight icon="info" title="No rule has fired">
          Rows that queries sent to a GUARDRAIL or WEBHOOK sink since this server started appear here.
        </Empty>
      ) : (
        <div className="table-wrap" tabIndex={0} role="group" aria-label="Alerts, scrollable">
          <table className="table">
            <thead>
              <tr>
                <th>When</th>
                <th>Rule</th>
                <th>Action</th>
                <th>Row</th>
              </tr>
            </thead>
            <tbody>
              {alerts.slice(0, initialCount).map((a, i) => (
                <tr key={`${a.at} ${a.query_id} ${i}`}>
                  <td className="nowrap">{dateTime(a.at)}</td>
                  <td>{a.query}</td>
                  <td>
                    <AlertOutcome alert={a} />
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

function AlertOutcome({ alert: a }: { alert: StreamAlert }) {
  if (a.failure) return <span className="badge bad">{a.run_id ? 'Could not stop it' : 'Not sent'}</span>;
  if (!a.run_id) return <span className="badge ok">Sent</span>;
  return (
    <span className="row">
      <span className="badge warn">Stopped a run</span> <Link href={`/runs/${a.run_id}`}>to the run</Link>
    </span>
  );
}
