import { Link } from 'wouter';
import type { RunDetail } from '../api/types';
import { CopyButton } from '../design/Controls';
import { dateTime, exact } from '../design/format';
import { Notice } from '../design/States';
import { ingestOutcome, tablePath } from '../tables/model';
import { useTable } from '../tables/queries';
import { useExportStatus, viewQuery } from './exportStatus';

/** SnowflakeExport shows where the run is in Snowflake, with a query per view; nothing without an export connection. */
export function SnowflakeExport({ run }: { run: RunDetail }) {
  const a = useExportStatus(run);
  if (!a) return null;
  const failed = a.status === 'FAILED';
  return (
    <section className="panel" aria-labelledby="in-account">
      <header>
        <h2 className="h3" id="in-account">
          In Snowflake
        </h2>
      </header>
      <div className="body stack">
        <p className="muted">
          Connection {a.connection}, {dateTime(a.noted_at)}
        </p>
        {failed && (
          <Notice tone="bad">
            <strong>The last export of this run failed.</strong> {a.problem} <ExportFailure run={run} />
          </Notice>
        )}
        {!failed && a.problem && (
          <Notice tone="warn">
            <strong>Executions exported; other data is missing.</strong> {a.problem}
          </Notice>
        )}
        {a.place && (
          <>
            <p>
              {exact(a.executions)} executions of this run are in <code>{a.place}.QUERY_EXECUTIONS</code>
              {a.views.length > 0 ? '; these views show them:' : '.'}
            </p>
            <div className="table-wrap" tabIndex={0} role="group" aria-label="Views, scrollable">
              <table className="table dense">
                <tbody>
                  {[...a.views, 'QUERY_EXECUTIONS'].map((view) => {
                    const sql = viewQuery(a.place, view, run.run_id);
                    return (
                      <tr key={view}>
                        <td>
                          <code>{sql}</code>
                        </td>
                        <td className="num">
                          <CopyButton text={sql} label={`Copy the query of ${view}`} />
                        </td>
                      </tr>
                    );
                  })}
                </tbody>
              </table>
            </div>
          </>
        )}
      </div>
    </section>
  );
}

const exported = 'exported_executions';

/** ExportFailure says what happens to a run that failed to export. */
function ExportFailure({ run }: { run: RunDetail }) {
  const table = useTable(exported);
  const of = table.data && ingestOutcome(table.data.table, run.run_id);
  const page = <Link href={tablePath(exported)}>{exported}</Link>;
  if (!of) return <>The page of the table {page} shows whether Loadstone retries the export.</>;
  return of.then === 'again' ? (
    <>
      Loadstone retries the export ({of.tries}). The page of the table {page} shows when.
    </>
  ) : (
    <>
      Loadstone no longer retries the export ({of.tries}). Remove the cause, then press “Try again” on the page of the
      table {page}.
    </>
  );
}
