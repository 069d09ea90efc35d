import type { Statement, Table } from '../api/types';
import { capitalize, count, humanize, plain } from '../design/format';

/** StatementList shows every statement the run may execute. */
export function StatementList({ statements }: { statements: Statement[] }) {
  return (
    <div className="stack tightly">
      <h2 className="h3">
        Statements{' '}
        <span className="muted statement-count">the run executes these {statements.length} and no other</span>
      </h2>
      {statements.map((s) => (
        <figure key={s.id} className="statement">
          <figcaption className="row">
            <span className="chip">
              <i className="swatch" style={{ background: `var(--k-${s.kind.toLowerCase()})` }} />
              {capitalize(humanize(s.kind))}
            </span>
            <code>{s.id}</code>
            <span className="muted">
              {s.binds?.length ? s.binds.map((b) => `${b.name}: ${b.type}`).join(', ') : 'no parameters'}
            </span>
          </figcaption>
          <pre className="code">{s.sql}</pre>
        </figure>
      ))}
    </div>
  );
}

/** known says how many of the table's keys operations choose among, where they are sampled. */
function known(t: Table): string {
  return t.known_keys ? `, ${plain(count(t.known_keys))} keys known` : '';
}

export function TableList({ tables }: { tables: Table[] }) {
  return (
    <div className="stack tightly">
      <h2 className="h3">Tables</h2>
      {tables.map((t) => (
        <div key={t.name} className="row">
          <code>{t.physical_name || t.name}</code>
          <span className="muted">
            {t.rows_exact ? '' : 'about '}
            {plain(count(t.rows))} rows{known(t)} · {t.columns?.length ?? 0} columns · key {t.key?.join(', ') || 'none'}
          </span>
        </div>
      ))}
    </div>
  );
}
