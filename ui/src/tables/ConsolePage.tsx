import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { api, asProblem, Problem } from '../api/client';
import type { FieldError, QueryAnswer } from '../api/types';
import { usePageTitle } from '../app/location';
import { OperatorOnly } from '../app/OperatorOnly';
import { type Action, ActionsMenu, Segments } from '../design/Controls';
import { duration } from '../design/format';
import { Icon } from '../design/icons';
import { Empty, Notice, RetryHint, SkeletonRows } from '../design/States';
import { useToast } from '../design/Toast';
import { ResultChart } from './ResultChart';
import { download } from './download';
import { Grid } from './Grid';
import { type Cell, type ChartChoice, queryId, readChoice, tabSeparated, writeChoice } from './model';
import { useCatalog, useSavedQueries } from './queries';
import { MissingQuery, SavedQueries } from './SavedQueries';
import { SqlEditor } from './SqlEditor';
import './tables.css';
import { asSentence, problemText } from '../design/sentences';

const start = 'SELECT started_at, adapter, load_mode, p95_ms\nFROM run_summary\nORDER BY started_at DESC\n';

const limits = [100, 1_000, 10_000, 100_000];

/** maxLinkLength is the longest query in an address; a server reads 16 KB of one, proxies less. */
const maxLinkLength = 6_000;

interface Running {
  id: string;
  since: number;
  abort: AbortController;
}

interface Outcome {
  sql: string;
  limit: number;
  answer?: QueryAnswer;
  problem?: Problem;
}

/** fromAddress parses a query or the name of a saved one, and the chart. */
function fromAddress(search: string) {
  const q = new URLSearchParams(search);
  const chart = new URLSearchParams();
  for (const k of ['x', 'y', 'series', 'shape']) if (q.get(k)) chart.set(k, q.get(k)!);
  return {
    sql: q.get('q') ?? '',
    saved: q.get('saved') ?? '',
    view: q.get('view') === 'chart' ? ('chart' as const) : ('table' as const),
    chart: chart.toString(),
  };
}

function useElapsedTick(on: boolean): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (!on) return;
    setNow(Date.now());
    const t = setInterval(() => setNow(Date.now()), 100);
    return () => clearInterval(t);
  }, [on]);
  return now;
}

/** ConsolePage is /query: SQL over results. A query from the address is shown, and runs only on request. */
export function ConsolePage() {
  usePageTitle('Query');
  const [, navigate] = useLocation();
  const toast = useToast();
  const [opened] = useState(() => fromAddress(location.search));
  const [sql, setSql] = useState(opened.sql || start);
  const [view, setView] = useState<'table' | 'chart'>(opened.view);
  const [chart, setChart] = useState(opened.chart);
  const [limit, setLimit] = useState(1_000);
  const [running, setRunning] = useState<Running | null>(null);
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const [name, setName] = useState(opened.saved);
  const catalog = useCatalog();
  const saved = useSavedQueries();
  const now = useElapsedTick(running !== null);
  const live = useRef(running);
  live.current = running;

  // A link to a saved query loads it.
  const linked = opened.saved ? saved.data?.find((q) => q.name === opened.saved) : undefined;
  const wasOpened = useRef(false);
  useEffect(() => {
    if (!linked || wasOpened.current) return;
    wasOpened.current = true;
    setSql(linked.sql);
    if (!opened.chart && linked.chart) {
      setChart(linked.chart);
      setView('chart');
    }
  }, [linked, opened.chart]);

  const show = useCallback(
    (next: { sql: string; view: string; chart: string; saved: string }) => {
      const q = new URLSearchParams(next.view === 'chart' ? next.chart : '');
      if (next.view === 'chart') q.set('view', 'chart');
      if (next.saved) q.set('saved', next.saved);
      else if (encodeURIComponent(next.sql).length <= maxLinkLength) q.set('q', next.sql);
      const s = q.toString();
      navigate(`/query${s ? `?${s}` : ''}`, { replace: true });
    },
    [navigate],
  );

  const stored = saved.data?.find((q) => q.name === name);
  const unchanged = stored !== undefined && stored.sql === sql ? stored.name : '';

  const run = async () => {
    if (running || !sql.trim()) return;
    const abort = new AbortController();
    const started = { id: queryId(), since: Date.now(), abort };
    setRunning(started);
    show({ sql, view, chart, saved: unchanged });
    const request = { sql, limit };
    try {
      const answer = await api.post('/api/query', {
        body: { sql, max_rows: limit, query_id: started.id },
        signal: abort.signal,
      });
      setOutcome({ ...request, answer });
    } catch (err) {
      if (abort.signal.aborted)
        setOutcome({ ...request, problem: new Problem(0, 'cancelled', 'The query was cancelled.') });
      else setOutcome({ ...request, problem: asProblem(err) });
    }
    setRunning(null);
  };

  const cancel = async () => {
    const current = running;
    if (!current) return;
    // The server cancels the query in the database; when it is unreachable, the page stops waiting.
    await api.post('/api/query/cancel', { body: { query_id: current.id } }).catch(() => current.abort.abort());
  };

  // Leaving the page cancels.
  useEffect(
    () => () => {
      const current = live.current;
      if (current) void api.post('/api/query/cancel', { body: { query_id: current.id } }).catch(() => {});
    },
    [],
  );

  const pick = (v: 'table' | 'chart') => {
    setView(v);
    show({ sql, view: v, chart, saved: unchanged });
  };
  const draw = (c: ChartChoice) => {
    const text = writeChoice(c);
    setChart(text);
    show({ sql, view: 'chart', chart: text, saved: unchanged });
  };
  const link = async () => {
    show({ sql, view, chart, saved: unchanged });
    if (!unchanged && encodeURIComponent(sql).length > maxLinkLength) {
      toast('The query is too long for a link. Save it; a saved query has a short link.', 'warn');
      return;
    }
    try {
      await navigator.clipboard.writeText(location.href);
      toast('Link copied. It opens this query without running it.', 'ok');
    } catch {
      toast('The browser blocked copying. Copy the address of this page instead.', 'warn');
    }
  };

  const problem = outcome?.problem;
  const errors: FieldError[] =
    problem && outcome?.sql === sql && problem.code !== 'cancelled' && problem.code !== 'conflict'
      ? problem.fields.length
        ? problem.fields
        : [{ field: 'sql', message: problem.message, hint: problem.hint }]
      : [];
  return (
    <>
      <header className="page-head">
        <Link href="/tables" className="back" aria-label="Tables" title="Tables">
          <Icon name="back" />
        </Link>
        <h1>Query</h1>
        <span className="sub hide-phone clip">{stored?.name || 'SQL over the results of all runs'}</span>
        <div className="actions">
          <button type="button" className="btn" onClick={() => void link()}>
            <Icon name="link" /> Link
          </button>
          {running ? (
            <button type="button" className="btn danger" onClick={() => void cancel()}>
              <Icon name="stop" /> Cancel{' '}
              <span className="quantity">{((now - running.since) / 1000).toFixed(1)} s</span>
            </button>
          ) : (
            <button
              type="button"
              className="btn primary"
              title="Ctrl+Enter"
              disabled={!sql.trim()}
              onClick={() => void run()}
            >
              <Icon name="play" /> Run
            </button>
          )}
        </div>
      </header>
      <div className="page">
        <MissingQuery name={name} list={saved} />
        <div className="console">
          <div className="stack">
            <SqlEditor
              label="Query"
              value={sql}
              onChange={setSql}
              catalog={catalog.data ?? []}
              errors={errors}
              onRun={() => void run()}
            />
            <div className="toolbar">
              <label className="row note">
                at most
                <select className="input small" value={limit} onChange={(e) => setLimit(Number(e.target.value))}>
                  {limits.map((n) => (
                    <option key={n} value={n}>
                      {n.toLocaleString('en-US')} rows
                    </option>
                  ))}
                </select>
              </label>
              <span className="note muted hide-phone">and 25 s. Ctrl+Enter runs, Ctrl+Space completes.</span>
              <OperatorOnly>
                <Link href={`/tables/new?q=${encodeURIComponent(sql)}`} className="btn quiet small end">
                  <Icon name="table" size={14} /> Keep it as a table
                </Link>
              </OperatorOnly>
            </div>
          </div>
          <SavedQueries
            list={saved}
            current={name}
            sql={sql}
            chart={view === 'chart' ? chart : ''}
            untouched={sql === start || sql === opened.sql}
            onOpen={(q) => {
              setName(q.name);
              setSql(q.sql);
              setChart(q.chart);
              setView(q.chart ? 'chart' : 'table');
              setOutcome(null);
              const as = saved.data?.some((o) => o.name === q.name && o.sql === q.sql) ? q.name : '';
              show({ sql: q.sql, view: q.chart ? 'chart' : 'table', chart: q.chart, saved: as });
            }}
            onSaved={(q) => {
              setName(q);
              show({ sql, view, chart, saved: q });
            }}
            onRenamed={(q) => {
              setName(q);
              show({ sql, view, chart, saved: stored?.sql === sql ? q : '' });
            }}
            onGone={() => {
              setName('');
              show({ sql, view, chart, saved: '' });
            }}
          />
        </div>
        {opened.sql && !outcome && !running && <Notice>This query came with the link. Read it, then run it.</Notice>}
        <Result
          outcome={outcome}
          running={running !== null}
          stale={outcome !== null && outcome.sql !== sql}
          view={view}
          chart={chart}
          onView={pick}
          onDraw={draw}
        />
      </div>
    </>
  );
}

function Result(props: {
  outcome: Outcome | null;
  running: boolean;
  stale: boolean;
  view: 'table' | 'chart';
  chart: string;
  onView: (v: 'table' | 'chart') => void;
  onDraw: (c: ChartChoice) => void;
}) {
  const toast = useToast();
  const { outcome } = props;
  const answer = outcome?.answer;
  const rows = useMemo(() => (answer?.rows ?? []) as Cell[][], [answer]);
  const choice = useMemo(
    () => (answer ? readChoice(props.chart, answer.columns, rows) : null),
    [answer, rows, props.chart],
  );
  if (!answer)
    return (
      <section className="panel" aria-label="Result" aria-busy={props.running}>
        {props.running ? (
          <SkeletonRows rows={6} />
        ) : outcome?.problem?.status === 429 ? (
          <Empty tight icon="clock" title="Not run yet">
            <span role="timer">
              <RetryHint problem={outcome.problem} />
            </span>
          </Empty>
        ) : outcome?.problem ? (
          <Empty
            tight
            icon={outcome.problem.code === 'cancelled' || outcome.problem.code === 'conflict' ? 'stop' : 'alert'}
            title={outcome.problem.message}
          >
            {asSentence(outcome.problem.fields[0]?.message ?? outcome.problem.hint)}
          </Empty>
        ) : (
          <Empty tight icon="table" title="No query yet">
            Run the query to see its result as a table or as a chart.
          </Empty>
        )}
      </section>
    );
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(tabSeparated(answer.columns, rows));
      toast(`${rows.length.toLocaleString('en-US')} rows copied for a spreadsheet.`, 'ok');
    } catch {
      toast('The browser blocked copying. Download the rows instead.', 'warn');
    }
  };
  const save = (format: 'csv' | 'json' | 'parquet') => async () => {
    try {
      const more = await download(outcome.sql, format);
      if (more) toast('The file holds the first 100 000 rows. The result has more.', 'warn');
    } catch (err) {
      const p = asProblem(err);
      toast(problemText({ message: p.message, hint: p.fields[0]?.message ?? p.hint }), 'bad');
    }
  };
  const actions: (Action | null)[] = [
    { label: 'Copy rows', icon: 'copy', act: () => void copy() },
    null,
    ...(['csv', 'json', 'parquet'] as const).map((f) => ({
      label: `Download as ${f === 'parquet' ? 'Parquet' : f.toUpperCase()}`,
      icon: 'download',
      act: () => void save(f)(),
    })),
  ];
  return (
    <section className="panel" aria-label="Result" aria-busy={props.running}>
      <header>
        <Segments
          label="View of the result"
          value={props.view}
          options={[
            { value: 'table', label: 'Table' },
            { value: 'chart', label: 'Chart' },
          ]}
          onChange={props.onView}
        />
        <span className="note" role="status">
          {rows.length.toLocaleString('en-US')} {rows.length === 1 ? 'row' : 'rows'}{' '}
          <span className="muted">in {duration(Math.max(1, Math.round(answer.elapsed_ms)) / 1000)}</span>
          {props.stale && <span className="muted"> · result of the query before your changes</span>}
        </span>
        <div className="end">
          <ActionsMenu label="Copy and download" actions={actions} />
        </div>
      </header>
      {answer.truncated && (
        <div className="body">
          <Notice tone="warn">
            These are the first {rows.length.toLocaleString('en-US')} rows; there are more. Raise the limit, add up
            more, or download: a file has up to 100 000 rows, and the query is executed again for it.
          </Notice>
        </div>
      )}
      {rows.length === 0 ? (
        <Empty tight title="No rows">
          The query is right, and nothing fits it. Its columns are {answer.columns.map((c) => c.name).join(', ')}.
        </Empty>
      ) : props.view === 'table' ? (
        <Grid label="Answer" columns={answer.columns} rows={rows} />
      ) : choice ? (
        <ResultChart columns={answer.columns} rows={rows} choice={choice} onChange={props.onDraw} />
      ) : (
        <Empty tight icon="chart" title="Nothing to draw">
          A chart needs a column of numbers and one other column.
        </Empty>
      )}
    </section>
  );
}
