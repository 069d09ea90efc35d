import { useMutation, useQuery } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { api } from '../api/client';
import { useHasRole } from '../api/queries';
import type { KeptBinds, KeptCall, KeptExecution, RunDetail } from '../api/types';
import { dateTime, elapsed, exact, humanize, latency, plain } from '../design/format';
import { serverText } from '../design/sentences';
import { Load, ProblemNotice, SkeletonRows } from '../design/States';
import { hiddenValuesNote, omittedNote, type ParameterQuery, truncationNote, valueText } from './parameters';
import './parameters.css';

/**
 * Parameters shows captured parameters of executions, and their values on request. hideText omits the statement's text,
 * which is shown next to it.
 */
export function Parameters({ run, of, hideText }: { run: RunDetail; of: ParameterQuery; hideText?: boolean }) {
  const path = { id: run.run_id };
  const binds = useQuery({
    queryKey: ['binds', run.run_id, of],
    queryFn: ({ signal }) => api.get('/api/v1/runs/{id}/binds', { path, query: of, signal }),
  });
  // Values live in this component: closing it discards them, and showing them again is audited again.
  const reveal = useMutation({
    mutationFn: () => api.post('/api/v1/runs/{id}/binds', { path, query: of }),
    gcTime: 0,
  });
  // Scroll the opened details into view as far as they fit.
  const box = useRef<HTMLDivElement>(null);
  const isLoaded = binds.isSuccess;
  useEffect(() => {
    if (isLoaded) box.current?.scrollIntoView({ block: 'nearest' });
  }, [isLoaded]);
  const may = useHasRole('operator');
  const start = run.start_time ? Date.parse(run.start_time) : 0;
  return (
    <div className="parameters" ref={box}>
      <Load from={binds} what="The parameters could not be read." skeleton={<SkeletonRows rows={2} />}>
        {(masked) => {
          const d = reveal.data ?? masked;
          const once = commonText(d.executions);
          return (
            <>
              <div className="row parameters-said">
                <span className="muted" role="status">
                  {count(d)} {hiddenValuesNote(d)} {omittedNote(d)}
                </span>
                {d.mode === 'plain' && may && d.executions.length > 0 && (
                  <button
                    type="button"
                    className="btn small"
                    disabled={reveal.isPending}
                    title={d.values_shown ? undefined : 'The audit log records who views the values.'}
                    onClick={() => (d.values_shown ? reveal.reset() : reveal.mutate())}
                  >
                    {d.values_shown ? 'Hide values' : 'Show values'}
                  </button>
                )}
              </div>
              {reveal.error && <ProblemNotice error={reveal.error} />}
              {once && !hideText && <pre className="sql">{once}</pre>}
              <ul>
                {d.executions.map((e) => (
                  <KeptParameters
                    texts={!once}
                    key={`${e.why}/${e.worker_id}/${e.connection_id}/${e.seq}/${e.position}/${e.retries}`}
                    e={e}
                    start={start}
                  />
                ))}
              </ul>
            </>
          );
        }}
      </Load>
    </div>
  );
}

/** commonText is the statement's text when all executions share it, else ''. */
function commonText(all: KeptExecution[]): string {
  const text = all[0]?.calls[0]?.sql ?? '';
  return all.every((e) => e.calls.length === 1 && e.calls[0]?.sql === text) ? text : '';
}

function count(d: KeptBinds): string {
  const n = d.executions.length;
  if (d.mode === 'none') return '';
  if (n === 0)
    return (
      'No parameters stored. Loadstone stores those of the first failures of each kind and of the slowest ' +
      'executions.'
    );
  const all = d.total_count > n ? `The first ${exact(n)} of ${exact(d.total_count)}` : exact(n);
  return `${all} ${n === 1 ? 'execution' : 'executions'} with parameters.`;
}

function KeptParameters({ e, start, texts }: { e: KeptExecution; start: number; texts: boolean }) {
  return (
    <li>
      <p className="parameters-head">
        <strong className="num">{plain(latency(e.service_ms))}</strong>
        <time dateTime={e.ended_at ?? ''} title={dateTime(e.ended_at)}>
          {start ? elapsed((Date.parse(e.ended_at ?? '') - start) / 1000) : dateTime(e.ended_at)}
        </time>
        <span className="muted">
          {e.phase === 'WARMUP' && 'in the warm-up, '}
          {e.worker_id}, connection {e.connection_id}, number {exact(e.seq)}
          {e.retries > 0 && `, ${exact(e.retries)} ${e.retries === 1 ? 'retry' : 'retries'}`}
        </span>
        {e.why === 'failed' && (
          <span className="message">
            {humanize(e.error_class)}: {serverText(e.error_message)}
          </span>
        )}
      </p>
      {e.calls.map((c, i) => (
        <CallRows key={i} c={c} isOnlyCall={e.calls.length === 1} text={texts} />
      ))}
      {e.calls_left_out > 0 && (
        <p className="muted">and {exact(e.calls_left_out)} further statements of the transaction</p>
      )}
    </li>
  );
}

function CallRows({ c, isOnlyCall, text }: { c: KeptCall; isOnlyCall: boolean; text: boolean }) {
  const [all, setAll] = useState(false);
  const maxShown = 12;
  const values = all ? c.values : c.values.slice(0, maxShown);
  return (
    <div className="parameters-call">
      {!isOnlyCall && (
        <p className="muted">
          {exact(c.position)}. <code>{c.statement_id}</code>
        </p>
      )}
      {text && c.sql && <pre className="sql">{c.sql}</pre>}
      {c.values.length === 0 ? (
        <p className="muted">No parameters.</p>
      ) : (
        <dl>
          {values.map((v, i) => {
            const s = valueText(v);
            return (
              <div key={i}>
                <dt>
                  {v.parameters.map((n) => `$${n}`).join(', ') || exact(i + 1)} {v.name && <span>{v.name}</span>}
                </dt>
                <dd className={s.value ? 'mono' : 'muted'}>
                  {s.text === '' ? <span className="muted">empty text</span> : s.text}
                  {v.cut && <span className="muted"> … ({truncationNote(v)})</span>}
                </dd>
              </div>
            );
          })}
        </dl>
      )}
      {!all && c.values.length > maxShown && (
        <button type="button" className="btn quiet small" onClick={() => setAll(true)}>
          {exact(c.values.length - maxShown)} more
        </button>
      )}
      {c.values_left_out > 0 && <p className="muted">and {exact(c.values_left_out)} further parameters, not kept</p>}
    </div>
  );
}

/** SlowestParameters lists each statement's slowest executions with their parameters. */
export function SlowestParameters({ run }: { run: RunDetail }) {
  const [open, setOpen] = useState('');
  const statements = [...new Set((run.plan?.statements ?? []).flatMap((s) => [s.id, s.transaction || s.id]))];
  if (statements.length === 0) return null;
  return (
    <section className="panel" aria-labelledby="slow-binds">
      <header>
        <h2 className="h3" id="slow-binds">
          Slowest of each statement, with parameters
        </h2>
      </header>
      <ul className="failures">
        {statements.map((id) => (
          <li key={id}>
            <div className="failure-head">
              <code>{id}</code>
              <button
                type="button"
                className="btn small"
                aria-expanded={open === id}
                aria-label={`Parameters of the slowest executions of ${id}`}
                onClick={() => setOpen(open === id ? '' : id)}
              >
                Parameters
              </button>
            </div>
            {open === id && <Parameters run={run} of={{ why: 'slow', statement: id }} />}
          </li>
        ))}
      </ul>
    </section>
  );
}
