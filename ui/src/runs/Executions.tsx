import { useQuery } from '@tanstack/react-query';
import { Fragment, useState } from 'react';
import { useLocation, useSearch } from 'wouter';
import { api } from '../api/client';
import { type Execution, isTerminal, kinds, type RunDetail } from '../api/types';
import { Term } from '../design/Controls';
import { capitalize, dateTime, exact, humanize, latency, moment, plain } from '../design/format';
import { Icon } from '../design/icons';
import { Num } from '../design/Num';
import { serverText } from '../design/sentences';
import { Empty, Load, Notice, SkeletonRows } from '../design/States';
import {
  emptyFilter,
  type ExecutionFilter,
  executionsRequest,
  filterFromSearch,
  filterProblem,
  isFiltered,
  withFilter,
} from './executionFilter';
import { incompleteRecordText } from './validity';
import { Parameters } from './Parameters';
import './executions.css';

/** Executions lists a run's executions, filtered by the address and paged. */
export function Executions({ run }: { run: RunDetail }) {
  const search = useSearch();
  const [, navigate] = useLocation();
  const filter = filterFromSearch(search);
  const after = new URLSearchParams(search).get('after') ?? '';
  const start = run.start_time ? Date.parse(run.start_time) : 0;
  const problem = filterProblem(filter);
  const request = executionsRequest(filter, start, after);
  const page = useQuery({
    queryKey: ['executions', run.run_id, request],
    queryFn: ({ signal }) =>
      api.get('/api/v1/runs/{id}/executions', { path: { id: run.run_id }, query: request, signal }),
    enabled: problem === '',
    placeholderData: (before) => before,
  });
  const setFilter = (w: Partial<ExecutionFilter>) =>
    navigate(location.pathname + withFilter(location.search, w), { replace: true });
  const goToPage = (cursor: string) => {
    const q = new URLSearchParams(location.search);
    if (cursor) q.set('after', cursor);
    else q.delete('after');
    navigate(`${location.pathname}?${q}`);
  };
  return (
    <section className="panel executions" aria-labelledby="executions-title">
      <header>
        <h2 className="h3" id="executions-title">
          Single executions
        </h2>
        {page.data && (
          <span className="muted note" role="status">
            of {exact(page.data.record.rows_count)} recorded
            {page.data.record.complete ? '' : `, ${incompleteRecordText(run)}`}
          </span>
        )}
        <div className="end">
          {isFiltered(filter) && (
            <button type="button" className="btn quiet small" onClick={() => setFilter(emptyFilter)}>
              Clear filters
            </button>
          )}
        </div>
      </header>
      <Filters run={run} filter={filter} setFilter={setFilter} />
      {problem ? (
        <div className="body">
          <Notice tone="warn">{problem}</Notice>
        </div>
      ) : (
        <Load
          from={page}
          what="The executions could not be read."
          skeleton={<SkeletonRows rows={8} />}
          empty={(d) =>
            d.executions.length === 0 && (
              <Empty tight title={isFiltered(filter) ? 'No matching executions' : 'No executions yet'}>
                {isFiltered(filter)
                  ? 'Remove a filter to see more executions.'
                  : isTerminal(run.status)
                    ? 'The run has no recorded executions.'
                    : 'Nodes keep the executions until the run has finished.'}
              </Empty>
            )
          }
        >
          {(d) => (
            <>
              <Table rows={d.executions} start={start} filter={filter} setFilter={setFilter} run={run} />
              <footer className="pager">
                <button type="button" className="btn small" disabled={!after} onClick={() => history.back()}>
                  Back
                </button>
                <button
                  type="button"
                  className="btn small"
                  disabled={!d.next_cursor}
                  onClick={() => goToPage(d.next_cursor)}
                >
                  Next {exact(50)}
                </button>
                {after && (
                  <button type="button" className="btn quiet small" onClick={() => goToPage('')}>
                    First page
                  </button>
                )}
              </footer>
            </>
          )}
        </Load>
      )}
    </section>
  );
}

function Filters(props: { run: RunDetail; filter: ExecutionFilter; setFilter: (w: Partial<ExecutionFilter>) => void }) {
  const { run, filter, setFilter } = props;
  const statements = [...new Set((run.plan?.statements ?? []).map((s) => s.id))];
  const workers = (run.workers ?? []).map((w) => w.worker_id).filter((id): id is string => !!id);
  const classes = Object.keys(run.summary?.errors.by_class ?? run.live?.errors.by_class ?? {}).filter(
    (c) => c !== 'dropped',
  );
  const pick = (label: string, name: keyof ExecutionFilter, options: [string, string][]) => (
    <select
      className="input auto"
      aria-label={label}
      value={filter[name]}
      onChange={(e) => setFilter({ [name]: e.target.value })}
    >
      <option value="">{label}: any</option>
      {/* What a link asks for is shown, also where the run has nothing of it. */}
      {filter[name] && !options.some(([v]) => v === filter[name]) && (
        <option value={filter[name]}>{filter[name]}</option>
      )}
      {options.map(([v, text]) => (
        <option key={v} value={v}>
          {text}
        </option>
      ))}
    </select>
  );
  const type = (label: string, name: keyof ExecutionFilter, unit: string) => (
    <label className="row nowrap bound">
      <span className="muted">{label}</span>
      <BoundInput value={filter[name]} label={`${label}, ${unit}`} onSettled={(v) => setFilter({ [name]: v })} />
      <span className="muted">{unit}</span>
    </label>
  );
  return (
    <div className="toolbar filters" role="search" aria-label="Filters of executions">
      {pick(
        'Kind',
        'kind',
        kinds.map((k) => [k, capitalize(humanize(k))]),
      )}
      {pick(
        'Statement',
        'statement',
        statements.map((s) => [s, s]),
      )}
      {pick(
        'Worker',
        'worker',
        workers.map((w) => [w, w]),
      )}
      {pick('Outcome', 'outcome', [
        ['succeeded', 'Succeeded'],
        ['failed', 'Failed'],
        ['rolled_back', 'Rolled back as asked'],
      ])}
      {pick(
        'Error',
        'class',
        classes.map((c) => [c, capitalize(humanize(c))]),
      )}
      {pick('Phase', 'phase', [
        ['MEASUREMENT', 'Measurement'],
        ['WARMUP', 'Warm-up'],
      ])}
      {type('From', 'since', 's')}
      {type('until', 'before', 's')}
      {type('Above', 'over', 'ms')}
      {type('up to', 'upto', 'ms')}
      <label className="row nowrap">
        <input
          type="checkbox"
          checked={filter.inside === 'yes'}
          onChange={(e) => setFilter({ inside: e.target.checked ? 'yes' : '' })}
        />{' '}
        Inside transactions
      </label>
      {(['code', 'message'] as const).map(
        (n) =>
          filter[n] && (
            <button
              key={n}
              type="button"
              className="chip exact"
              title={`${filter[n]} (click to remove this filter)`}
              onClick={() => setFilter({ [n]: '' })}
            >
              {n}: {filter[n]} <Icon name="close" size={12} />
            </button>
          ),
      )}
    </div>
  );
}

/** BoundInput is a number that takes effect on Enter or blur, not with each key. */
function BoundInput(props: { value: string; label: string; onSettled: (v: string) => void }) {
  return (
    <input
      key={props.value}
      className="input short"
      inputMode="decimal"
      aria-label={props.label}
      defaultValue={props.value}
      onBlur={(e) => e.target.value !== props.value && props.onSettled(e.target.value.trim())}
      onKeyDown={(e) => e.key === 'Enter' && props.onSettled(e.currentTarget.value.trim())}
    />
  );
}

function Table(props: {
  rows: Execution[];
  start: number;
  filter: ExecutionFilter;
  setFilter: (w: Partial<ExecutionFilter>) => void;
  run: RunDetail;
}) {
  const { rows, start, filter, setFilter } = props;
  const [open, setOpen] = useState('');
  const by = filter.sort === 'latency' ? 'latency' : 'time';
  const up = filter.order === 'asc';
  const head = (name: 'time' | 'latency', label: string) => (
    <th
      className={name === 'latency' ? 'num' : ''}
      aria-sort={by === name ? (up ? 'ascending' : 'descending') : 'none'}
    >
      <button
        type="button"
        className="sort"
        onClick={() => setFilter({ sort: name === 'time' ? '' : name, order: by === name && !up ? 'asc' : '' })}
      >
        {label} <span aria-hidden>{by === name ? (up ? '▲' : '▼') : ''}</span>
      </button>
    </th>
  );
  return (
    <div className="table-wrap" tabIndex={0} role="region" aria-label="Single executions, scrollable">
      <table className="table dense">
        <thead>
          <tr>
            {head('time', 'Ended')}
            {head('latency', 'Latency')}
            <th>Kind</th>
            <th>Statement</th>
            <th>Worker</th>
            <th className="num">Connection</th>
            <th className="num">
              <Term tip="The number of the execution on its connection, from 0.">Seq</Term>
            </th>
            <th className="num">Rows</th>
            <th>Outcome</th>
            <th>
              <span className="sr">Details</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((r) => {
            const id = `${r.worker_id}/${r.connection_id}/${r.seq}/${r.position}/${r.retries}`;
            const position = `${r.seq} on connection ${r.connection_id} of ${r.worker_id}`;
            return (
              <Fragment key={id}>
                <tr className={r.phase === 'WARMUP' ? 'warmup' : ''}>
                  <td className="nowrap" title={dateTime(r.ended_at)}>
                    {start ? moment((Date.parse(r.ended_at ?? '') - start) / 1000) : dateTime(r.ended_at)}
                    {r.phase === 'WARMUP' && <span className="badge warmup">warm-up</span>}
                  </td>
                  <td className="num">
                    <Num q={latency(r.app_elapsed_ms)} />
                  </td>
                  <td>
                    <span className="row nowrap">
                      <i className="swatch" style={{ background: `var(--k-${r.kind.toLowerCase()})` }} />
                      {capitalize(humanize(r.kind))}
                    </span>
                  </td>
                  <td>
                    <code>{r.statement_id}</code>
                    {r.position > 0 && <span className="muted"> in a transaction</span>}
                  </td>
                  <td className="mono">{r.worker_id}</td>
                  <td className="num">{r.connection_id}</td>
                  <td className="num">{exact(r.seq)}</td>
                  <td className="num">{exact(r.rows)}</td>
                  <td className="message">
                    {r.success
                      ? r.rolled_back
                        ? 'rolled back as asked'
                        : 'succeeded'
                      : `${humanize(r.error_class || 'failed')}: ${serverText(r.error_message)}`}
                  </td>
                  <td>
                    <button
                      type="button"
                      className="btn quiet small"
                      aria-expanded={open === id}
                      aria-label={`${open === id ? 'Hide' : 'Show'} details of execution ${position}`}
                      onClick={() => setOpen(open === id ? '' : id)}
                    >
                      {open === id ? 'less' : 'more'}
                    </button>
                  </td>
                </tr>
                {open === id && (
                  <tr className="more">
                    <td colSpan={10}>
                      <Details e={r} run={props.run} />
                    </td>
                  </tr>
                )}
              </Fragment>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function Details({ e, run }: { e: Execution; run: RunDetail }) {
  const sql = run.plan?.statements?.find((s) => s.id === e.statement_id)?.sql;
  const facts: [string, string][] = [
    ['Due', e.due_at ?? ''],
    ['Started', e.started_at ?? ''],
    ['Ended', e.ended_at ?? ''],
    ['Late in the generator', plain(latency(e.schedule_lag_ms))],
    ['Waited for a connection', plain(latency(e.pool_wait_ms))],
    ['Decoding', plain(latency(e.decode_ms))],
    ['Retries', exact(e.retries)],
  ];
  if (e.step > 0) facts.push(['Step of the search', exact(e.step)]);
  if (e.error_code) facts.push(['Error code', e.error_code]);
  if (e.server_query_id) facts.push(['Query id', e.server_query_id]);
  return (
    <div className="execution-details">
      <dl>
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {e.error_message && <p className="message">{serverText(e.error_message)}</p>}
      {sql && <pre className="sql">{sql}</pre>}
      <Parameters
        run={run}
        hideText
        of={{
          worker: e.worker_id,
          connection: e.connection_id,
          seq: e.seq,
          statement: e.statement_id,
          inside: e.position > 0 ? 'yes' : 'no',
        }}
      />
    </div>
  );
}
