import { Icon } from '../design/icons';
import { Empty, Notice, SkeletonRows } from '../design/States';
import { Flow } from './Flow';
import { planDiagram } from './model';
import type { Outcome } from './StreamsPage';

/** StatementOutcome shows the result of statements: messages, rows, or a plan diagram. */
export function StatementOutcome(props: { outcome: Outcome | null; busy: 'run' | 'explain' | null; stale: boolean }) {
  const { outcome } = props;
  if (props.busy && !outcome)
    return (
      <section className="panel" aria-label="Answer" aria-busy="true">
        <SkeletonRows rows={3} />
      </section>
    );
  if (!outcome)
    return (
      <section className="panel" aria-label="Answer">
        <Empty tight icon="play" title="No query yet">
          A <code>SELECT … INTO</code> a sink runs until you drop it. Start with an example, or run{' '}
          <code>SHOW QUERIES</code>.
        </Empty>
      </section>
    );
  if (outcome.problem) return <Notice tone="bad">{outcome.problem}</Notice>;
  if (outcome.errors) return <Notice tone="bad">No statement was executed. See the error below the statements.</Notice>;
  return (
    <section className="panel" aria-label="Answer" aria-busy={props.busy !== null}>
      <header>
        <h2>Answer</h2>
        {props.stale && <span className="note muted">result of the statements before your changes</span>}
      </header>
      <div className="body stack">
        {outcome.results!.map((r, i) =>
          r.done ? (
            <p key={i} className="row done" role="status">
              <Icon name="check" /> {r.done[0]!.toUpperCase() + r.done.slice(1)}.
            </p>
          ) : r.columns[0] === 'plan' && r.columns.length === 1 ? (
            <Plan key={i} lines={r.rows.map((row) => row?.[0] ?? '')} />
          ) : r.rows.length === 0 ? (
            <p key={i} className="muted">
              No rows.
            </p>
          ) : (
            <div key={i} className="table-wrap" tabIndex={0} role="group" aria-label="Rows, scrollable">
              <table className="table dense">
                <thead>
                  <tr>
                    {r.columns.map((c) => (
                      <th key={c}>{c}</th>
                    ))}
                  </tr>
                </thead>
                <tbody>
                  {r.rows.map((row, k) => (
                    <tr key={k}>
                      {(row ?? []).map((v, n) => (
                        <td key={n} className="cell">
                          {v}
                        </td>
                      ))}
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          ),
        )}
      </div>
    </section>
  );
}

function Plan({ lines }: { lines: string[] }) {
  const fragments = lines.filter((l) => l.startsWith('Fragment'));
  // The steps of each fragment follow it.
  const first = lines.findIndex((l) => l.startsWith('Fragment'));
  const whole = first < 0 ? lines : lines.slice(0, first);
  return (
    <div className="stack">
      <Flow picture={planDiagram(whole)} label="The plan, from the sources to the last step" />
      {fragments.map((f) => (
        <p key={f} className="note">
          {f}
        </p>
      ))}
      <details>
        <summary>In words</summary>
        <pre className="code">{lines.join('\n')}</pre>
      </details>
    </div>
  );
}
