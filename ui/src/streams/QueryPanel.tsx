import { useEffect, useRef } from 'react';
import type { StreamCatalog, StreamQuery } from '../api/types';
import { CopyButton } from '../design/Controls';
import { ago, bytes, count, dateTime, plain, rate } from '../design/format';
import { Icon } from '../design/icons';
import { Empty, Notice } from '../design/States';
import { Flow } from './Flow';
import { hasEnded, lagOf, lossCounts, planDiagram, queryDiagram, splitFailure, states } from './model';
import { StateBadge } from './Queries';

const failures = (n: number) => (n === 1 ? '1 attempt' : `${n} attempts`);

/** QueryPanel shows one query: its flow, totals and last output. */
export function QueryPanel(props: { query: StreamQuery; catalog: StreamCatalog; onClose: () => void }) {
  const { query: q, catalog } = props;
  const l = q.live;
  const lost = lossCounts(q);
  const prints = catalog.sinks.some((s) => s.name === q.sink && s.type === 'PRINT');
  const rateOf = (n: number) => plain(rate(n));
  return (
    <section className="panel query-panel" aria-label={`Query ${q.name}`}>
      <header>
        <h2>{q.name}</h2>
        <StateBadge query={q} />
        <span className="note muted clip">
          {q.created_by && `by ${q.created_by}, `}
          <span title={dateTime(q.created_at)}>{ago(q.created_at)}</span>
          {q.owner && `, run by ${q.owner}`}
        </span>
        <div className="end">
          <button type="button" className="btn quiet icon" aria-label="Close the query" onClick={props.onClose}>
            <Icon name="close" />
          </button>
        </div>
      </header>
      <div className="body stack">
        {q.failure && <Failure query={q} />}
        {q.trouble && (
          <Notice tone="warn">
            The sink accepts no rows. Loadstone retries: {q.trouble.message}. {failures(q.trouble.attempts)} failed, the
            first <span title={dateTime(q.trouble.since)}>{ago(q.trouble.since)}</span>. Its sources wait meanwhile
            {/\bON\s+OVERFLOW\s+DROP\b/i.test(q.statement) && '; rows beyond the buffer are dropped'}.
          </Notice>
        )}
        {q.waiting && <Notice tone="warn">A source of it waits: {q.waiting}.</Notice>}
        <Flow picture={queryDiagram(q, catalog, rateOf, `lag ${lagOf(q)}`)} label={`How rows flow through ${q.name}`} />
        {l ? (
          <p className="note">
            {count(l.in).exact} rows in, {count(l.out).exact} out
            {!hasEnded(q) && `; ${plain(bytes(l.state_bytes))} in windows, joins and LAG`}.{' '}
            {lost.length > 0 && (
              <strong>{lost.map(([word, n]) => `${n.toLocaleString('en-US')} ${word}`).join(', ')}.</strong>
            )}
          </p>
        ) : (
          !hasEnded(q) && (
            <p className="note muted">
              This server has no figures of the query. Another server runs it, or it has not started.
            </p>
          )
        )}
        {prints && (
          <div className="stack tightly">
            <h3 className="h3">Live output</h3>
            {q.output.length === 0 ? (
              <Empty tight icon="clock" title="Nothing printed yet">
                A window is printed when it closes: after a later row, or after 5 s without rows.
              </Empty>
            ) : (
              <Output rows={q.output} />
            )}
          </div>
        )}
        <details>
          <summary>Statement and plan</summary>
          <div className="stack">
            <div className="row top">
              <pre className="code grow">{q.statement}</pre>
              <CopyButton text={q.statement} label="Copy the statement" />
            </div>
            {q.fragments.map((f) => (
              <Flow
                key={f.host_name}
                picture={planDiagram(f.plan.trimEnd().split('\n'))}
                label={`The plan of the fragment on ${f.host_name}`}
              />
            ))}
          </div>
        </details>
      </div>
    </section>
  );
}

/** Failure shows why a query failed and how to fix it. */
function Failure({ query: q }: { query: StreamQuery }) {
  const [what, hint] = splitFailure(q.failure);
  return (
    <Notice tone={q.state === 'FAILED' ? 'bad' : 'warn'}>
      {q.state === 'FAILED' ? what : `${states[q.state].what} ${what[0]!.toUpperCase()}${what.slice(1)}.`}
      {hint && <span className="second">{hint}</span>}
    </Notice>
  );
}

/** Output shows the last printed rows and follows the end unless the user scrolls up. */
function Output({ rows }: { rows: string[] }) {
  const ref = useRef<HTMLPreElement>(null);
  const follow = useRef(true);
  useEffect(() => {
    const el = ref.current;
    if (el && follow.current) el.scrollTop = el.scrollHeight;
  }, [rows]);
  return (
    <pre
      ref={ref}
      className="code output"
      tabIndex={0}
      role="log"
      aria-live="off"
      aria-label="Live output"
      onScroll={(e) => {
        const el = e.currentTarget;
        follow.current = el.scrollTop + el.clientHeight >= el.scrollHeight - 8;
      }}
    >
      {rows.join('\n')}
    </pre>
  );
}
