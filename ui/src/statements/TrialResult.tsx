import type { StatementTrial } from '../api/types';
import { latency, plain } from '../design/format';
import { Notice } from '../design/States';
import { asSentence, problemText } from '../design/sentences';

/** TrialResult shows a trial: the error, the plan and the first rows. */
export function TrialResult({ trial: t, stale }: { trial: StatementTrial; stale: boolean }) {
  return (
    <div className="tried stack tightly" role="status">
      {stale && <span className="muted note">This result is of the earlier text. Try it again.</span>}
      {(t.problems ?? []).map((p) => (
        <Notice key={p.message} tone="bad">
          <pre className="said">{p.message}</pre> {asSentence(p.hint)}
        </Notice>
      ))}
      {(t.notes ?? []).map((n) => (
        <Notice key={n}>{n}</Notice>
      ))}
      {t.failed && (
        <Notice tone="bad">
          <strong>The statement failed.</strong> {(t.faults ?? []).length === 0 && problemText(t.failed)}
          {(t.faults ?? []).map((f) => (
            <div key={f.parameter}>
              <code>:{f.parameter}</code>
              {f.type ? ` takes ${f.type}, and got ` : ' got '}
              <code>{f.value}</code>: {f.message}. Cure: {f.hint}.
            </div>
          ))}
        </Notice>
      )}
      {t.executed && (
        <>
          <div className="row">
            <strong>
              {t.row_count} {t.row_count === 1 ? 'row' : 'rows'}
            </strong>
            <span className="muted">in {plain(latency(t.elapsed_ms))}, undone</span>
          </div>
          {(t.columns ?? []).length > 0 && (
            <div className="table-wrap" tabIndex={0} role="group" aria-label="Rows, scrollable">
              <table className="table rows">
                <thead>
                  <tr>
                    {(t.columns ?? []).map((c, i) => (
                      <th key={i}>{c}</th>
                    ))}
                  </tr>
                </thead>
                <tbody>
                  {(t.rows ?? []).map((r, i) => (
                    <tr key={i}>
                      {(r ?? []).map((v, k) => (
                        <td key={k} className="mono">
                          {v ?? <span className="muted">NULL</span>}
                        </td>
                      ))}
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
        </>
      )}
      {t.not_executed && <span className="muted">{t.not_executed}</span>}
      {(t.explain ?? []).length > 0 && (
        <pre className="explained" tabIndex={0} aria-label="The database's plan">
          {(t.explain ?? []).join('\n')}
        </pre>
      )}
      {t.explain_problem && <span className="muted">There is no plan: {problemText(t.explain_problem)}</span>}
    </div>
  );
}
