import type { StatementFigures, Summary } from '../api/types';
import { Term } from '../design/Controls';
import { capitalize, count, exact, humanize, latency, plain } from '../design/format';
import { Num } from '../design/Num';
import { rateOf } from './rates';

/** ByStatement shows figures per statement; inside a transaction, the transaction is what counts. */
export function ByStatement({ s }: { s: Summary }) {
  const rows = s.by_statement ?? [];
  if (rows.length === 0) return null;
  const t = s.transactions;
  return (
    <section className="panel table-wrap" tabIndex={0} aria-label="By statement, scrollable">
      <header>
        <h2 className="h3">By statement</h2>
        <span className="muted note">
          {t &&
            `${exact(t.count)} transactions: ${exact(t.committed)} committed, ${exact(t.rolled_back)} ` +
              `rolled back as asked, ${exact(t.failed)} failed. `}
          {!!s.retries && `${exact(s.retries)} repetitions of failed operations.`}
        </span>
      </header>
      <table className="table">
        <thead>
          <tr>
            <th>Statement</th>
            <th>Kind</th>
            <th>
              <Term
                tip={
                  'Statements inside a transaction are part of it. The transaction is the operation that ' +
                  'counts in rates, percentiles and errors.'
                }
              >
                Where
              </Term>
            </th>
            <th className="num">Count</th>
            <th className="num">Rate</th>
            <th className="num">Rows</th>
            <th className="num">Errors</th>
            <th className="num">Retries</th>
            <th className="num">mean</th>
            <th className="num">P50</th>
            <th className="num">P95</th>
            <th className="num">P99</th>
            <th className="num">max</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((f) => (
            <tr key={`${f.statement_id}/${f.kind}/${f.in_transaction}`}>
              <td>{f.statement_id || 'unnamed'}</td>
              <td>{capitalize(humanize(f.kind))}</td>
              <td className="muted">{where(f)}</td>
              <td className="num">{exact(f.count)}</td>
              <td className="num">
                <Num q={rateOf(s, f.qps)} />
              </td>
              <td className="num">
                <Num q={count(f.rows)} />
                {!!f.no_rows && <div className="muted note">{plain(count(f.no_rows))} without</div>}
              </td>
              <td className="num">{plain(count(f.errors))}</td>
              <td className="num">{f.in_transaction ? '' : plain(count(f.retries))}</td>
              {(['avg', 'p50', 'p95', 'p99', 'max'] as const).map((k) => (
                <td key={k} className="num">
                  <Num q={latency(f.latency_ms?.[k])} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function where(f: StatementFigures): string {
  if (f.in_transaction) return 'in transactions';
  return f.kind === 'TRANSACTION' ? 'whole' : 'alone';
}
