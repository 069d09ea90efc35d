import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import { api } from '../api/client';
import type { Failure, RunDetail } from '../api/types';
import { capitalize, elapsed, exact, humanize, latency, plain } from '../design/format';
import { serverText } from '../design/sentences';
import { Empty, Load, SkeletonRows } from '../design/States';
import { executionsPath } from './executionFilter';
import { incompleteRecordText } from './validity';
import { Parameters } from './Parameters';
import './executions.css';

/** Failures groups failed executions by error and statement, with links to them. */
export function Failures({ run }: { run: RunDetail }) {
  const [mask, setMask] = useState(false);
  const failures = useQuery({
    queryKey: ['failures', run.run_id, mask],
    queryFn: ({ signal }) =>
      api.get('/api/v1/runs/{id}/failures', {
        path: { id: run.run_id },
        query: { mask: mask || undefined },
        signal,
      }),
    placeholderData: (before) => before,
  });
  const start = run.start_time ? Date.parse(run.start_time) : 0;
  return (
    <section className="panel" aria-labelledby="failures-title">
      <header>
        <h2 className="h3" id="failures-title">
          What failed, by statement
        </h2>
        {failures.data && failures.data.total_count > failures.data.failures.length && (
          <span className="muted note">
            the most frequent {exact(failures.data.failures.length)} of {exact(failures.data.total_count)}
          </span>
        )}
        <div className="end">
          <label className="row follow">
            <input type="checkbox" checked={mask} onChange={(e) => setMask(e.target.checked)} /> Mask values in
            statements
          </label>
        </div>
      </header>
      <Load
        from={failures}
        what="The errors could not be read."
        skeleton={<SkeletonRows rows={4} />}
        empty={(d) =>
          d.failures.length === 0 && (
            <Empty tight icon="check" title="No recorded execution failed">
              {d.record.complete
                ? 'No failure in the warm-up or the measurement.'
                : `${capitalize(incompleteRecordText(run))}.`}
            </Empty>
          )
        }
      >
        {(d) => (
          <ul className="failures">
            {d.failures.map((f) => (
              <Row
                key={`${f.error_class}/${f.error_code}/${f.kind}/${f.statement_id}/${f.inside_transaction}`}
                f={f}
                run={run}
                start={start}
              />
            ))}
          </ul>
        )}
      </Load>
    </section>
  );
}

function Row({ f, run, start }: { f: Failure; run: RunDetail; start: number }) {
  const [open, setOpen] = useState(false);
  const at = (iso: string | null) => (start && iso ? elapsed((Date.parse(iso) - start) / 1000) : iso);
  const filter = {
    class: f.error_class,
    code: f.error_code,
    kind: f.kind,
    statement: f.statement_id,
    inside: f.inside_transaction ? 'yes' : '',
  };
  return (
    <li>
      <div className="failure-head">
        <strong className="num">{exact(f.count)}</strong>
        <span>
          {capitalize(humanize(f.error_class))} {f.error_code && <code>{f.error_code}</code>} in{' '}
          <code>{f.statement_id || 'unnamed'}</code>
          <span className="muted">
            {' '}
            {humanize(f.kind)}
            {f.inside_transaction && ', inside a transaction'}
          </span>
        </span>
        <span className="muted">
          <time dateTime={f.first_at ?? ''} title={f.first_at ?? ''}>
            {at(f.first_at)}
          </time>{' '}
          to{' '}
          <time dateTime={f.last_at ?? ''} title={f.last_at ?? ''}>
            {at(f.last_at)}
          </time>
          , {f.worker_count} {f.worker_count === 1 ? 'worker' : 'workers'}, at most {plain(latency(f.slowest_ms))}
          {f.warmup_count > 0 && `, ${exact(f.warmup_count)} in the warm-up`}
        </span>
        <button
          type="button"
          className="btn small"
          aria-expanded={open}
          aria-label={`Parameters of ${f.error_code || humanize(f.error_class)} in ${f.statement_id || 'unnamed'}`}
          onClick={() => setOpen(!open)}
        >
          Parameters
        </button>
        <Link className="btn small beside" href={executionsPath(run.run_id, filter)}>
          Show all {exact(f.count)}
        </Link>
      </div>
      {f.examples.map((e) => (
        <p key={e.message} className="message">
          {serverText(e.message)} <span className="muted">{exact(e.count)} times</span>
        </p>
      ))}
      {f.messages_count > f.examples.length && (
        <p className="muted">and {exact(f.messages_count - f.examples.length)} other messages</p>
      )}
      {f.sql && <pre className="sql">{f.sql}</pre>}
      {open && (
        <Parameters
          run={run}
          hideText
          of={{
            why: 'failed',
            statement: f.statement_id,
            error_class: f.error_class,
            error_code: f.error_code,
            inside: f.inside_transaction ? 'yes' : 'no',
          }}
        />
      )}
    </li>
  );
}
