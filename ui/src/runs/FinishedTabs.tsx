import * as Tabs from '@radix-ui/react-tabs';
import { useEffect, useState } from 'react';
import { Link } from 'wouter';
import type { RunDetail, Summary } from '../api/types';
import { useParam } from '../app/location';
import { Distribution } from '../charts/Distribution';
import { PercentileCurve } from '../charts/PercentileCurve';
import { Segments, Term } from '../design/Controls';
import { capitalize, count, dateTime, errorRate, exact, humanize, latency, percent, plain } from '../design/format';
import { CardBoundary } from '../design/CardBoundary';
import { Num } from '../design/Num';
import { Empty } from '../design/States';
import { AccountingView } from './AccountingView';
import { ByStatement } from './ByStatement';
import { CostView } from './CostView';
import { EnrichmentView, isEnriching } from './Enrichment';
import { EnvironmentView } from './EnvironmentView';
import { DeletedExecutions } from './DeletedExecutions';
import { Executions } from './Executions';
import { ExportView } from './ExportView';
import { Failures } from './Failures';
import { SlowestParameters } from './Parameters';
import { FindMaxResultView } from './FindMax';
import { executionsPath } from './executionFilter';
import { KindCharts } from './KindCharts';
import { hasOperations } from './validity';
import { LiveCharts } from './LiveCharts';
import { LogPanel } from './LogPanel';
import type { RunState } from './live';
import { rateOf } from './rates';
import type { Columns } from './series';
import { Why } from './Why';
import { FinishedWorkers } from './Workers';

const tabs = [
  'overview',
  'distribution',
  'kinds',
  'why',
  'server',
  'workers',
  'errors',
  'slowest',
  'executions',
  'accounting',
  'environment',
  'log',
  'export',
] as const;
const titles: Record<(typeof tabs)[number], string> = {
  overview: 'Overview',
  distribution: 'Distribution',
  kinds: 'By kind',
  why: 'Why',
  server: 'Server side',
  workers: 'Workers',
  errors: 'Errors',
  slowest: 'Slowest',
  executions: 'Executions',
  accounting: 'Accounting',
  environment: 'Environment',
  log: 'Log',
  export: 'Export',
};

export function FinishedTabs({ run, state, c }: { run: RunDetail; state: RunState; c: Columns }) {
  const [param, setTab] = useParam('tab', 'overview');
  const tab = (tabs as readonly string[]).includes(param) ? param : 'overview';
  // On a phone the tab list scrolls, and a link may open one out of view.
  useEffect(() => {
    document.querySelector('.tabs-list [data-state=active]')?.scrollIntoView({ block: 'nearest', inline: 'center' });
  }, [tab]);
  const s = run.summary!;
  const visibleTabs = tabs.filter((t) => t !== 'server' || run.plan?.driver !== 'postgres');
  return (
    <Tabs.Root value={tab} onValueChange={setTab} className="stack">
      <Tabs.List className="tabs-list" aria-label="Result">
        {visibleTabs.map((t) => (
          <Tabs.Trigger key={t} value={t}>
            {titles[t]}
            {t === 'errors' && s.errors.count > 0 && <span className="count bad">{plain(count(s.errors.count))}</span>}
            {t === 'server' && isEnriching(state.live?.enrichment ?? run.enrichment) && (
              <span className="count">loading</span>
            )}
            {t === 'accounting' && !s.accounting.balanced && (
              <span className="count bad">{s.counts_missing ? 'counts missing' : 'does not balance'}</span>
            )}
          </Tabs.Trigger>
        ))}
      </Tabs.List>
      <CardBoundary key={tab} title={titles[tab as keyof typeof titles]}>
        <TabContents run={run} state={state} c={c} />
      </CardBoundary>
    </Tabs.Root>
  );
}

function TabContents({ run, state, c }: { run: RunDetail; state: RunState; c: Columns }) {
  const s = run.summary!;
  return (
    <>
      <Tabs.Content value="overview">
        {!hasOperations(run, s, c.t.length) ? (
          <div className="stack">
            <section className="panel">
              <Empty icon="chart" title="No operation was sent to the database">
                The run ended before its load began. The log shows the last step it reached.
              </Empty>
            </section>
            <LogPanel logs={state.logs} state={state.logsState} dropped={0} follow={false} file={run.test_name} />
          </div>
        ) : (
          <div className="stack">
            {s.find_max && <FindMaxResultView r={s.find_max} />}
            <LiveCharts run={run} live={null} c={c} state={state.seriesState} />
            {s.cost && <CostView c={s.cost} simulated={!!run.simulated} emulated={run.emulated} />}
          </div>
        )}
      </Tabs.Content>
      <Tabs.Content value="distribution">
        <DistributionTab s={s} />
      </Tabs.Content>
      <Tabs.Content value="kinds">
        <div className="stack">
          <ByKind s={s} />
          {Object.keys(s.by_kind ?? {}).length > 0 && <KindCharts run={run} />}
          <ByStatement s={s} />
        </div>
      </Tabs.Content>
      <Tabs.Content value="why">
        <Why run={run} c={c} />
      </Tabs.Content>
      <Tabs.Content value="server">
        <EnrichmentView run={run} live={state.live} s={s} />
      </Tabs.Content>
      <Tabs.Content value="workers">
        <FinishedWorkers run={run} />
      </Tabs.Content>
      <Tabs.Content value="errors">
        <div className="stack">
          <ErrorsTab s={s} />
          {!run.executions_deleted_at && <Failures run={run} />}
        </div>
      </Tabs.Content>
      <Tabs.Content value="slowest">
        <div className="stack">
          <Slowest s={s} run={run} all={executionsPath(run.run_id, { sort: 'latency', phase: 'MEASUREMENT' })} />
          {!run.executions_deleted_at && <SlowestParameters run={run} />}
        </div>
      </Tabs.Content>
      <Tabs.Content value="executions">
        {run.executions_deleted_at ? <DeletedExecutions run={run} /> : <Executions run={run} />}
      </Tabs.Content>
      <Tabs.Content value="accounting">
        <AccountingView f={s} />
      </Tabs.Content>
      <Tabs.Content value="environment">
        <EnvironmentView run={run} s={s} />
      </Tabs.Content>
      <Tabs.Content value="log">
        <LogPanel logs={state.logs} state={state.logsState} dropped={0} follow={false} file={run.test_name} tall />
      </Tabs.Content>
      <Tabs.Content value="export">
        <ExportView run={run} s={s} c={c} />
      </Tabs.Content>
    </>
  );
}

const scales = [
  { value: 'linear', label: 'Linear' },
  { value: 'log', label: 'Log' },
] as const;

export function DistributionTab({ s }: { s: Summary }) {
  const [scale, setScale] = useState<'linear' | 'log'>('linear');
  const [curve, setCurve] = useState<'linear' | 'log'>('linear');
  const l = s.latency_ms;
  return (
    <div className="stack">
      <section className="panel">
        <header>
          <h2 className="h3">Latencies of {plain(count(s.operations))} operations</h2>
          <div className="end">
            <Segments label="Vertical axis" value={scale} options={scales} onChange={setScale} />
          </div>
        </header>
        <div className="body">
          {s.histogram?.length ? (
            <>
              <Distribution buckets={s.histogram} latency={l} logCount={scale === 'log'} />
              {l && (
                <div className="percentile-row">
                  {(
                    [
                      ['min', l.min],
                      ['P50', l.p50],
                      ['P90', l.p90],
                      ['P95', l.p95],
                      ['P99', l.p99],
                      ['P99.9', l.p999],
                      ['max', l.max],
                      ['mean', l.avg],
                      ['std dev', l.stddev],
                    ] as const
                  ).map(([name, v]) => (
                    <div key={name}>
                      <span className="muted">{name}</span>
                      <Num q={latency(v)} />
                    </div>
                  ))}
                </div>
              )}
            </>
          ) : (
            <Empty tight title="No operation was measured">
              The run ended before its measurement, so there is no distribution.
            </Empty>
          )}
        </div>
      </section>
      {s.histogram?.length && l ? (
        <section className="panel">
          <header>
            <h2 className="h3">Latency at each percentile</h2>
            <div className="end">
              <Segments label="Axis of latency" value={curve} options={scales} onChange={setCurve} />
            </div>
          </header>
          <div className="body">
            <PercentileCurve of={[{ buckets: s.histogram, latency: l }]} log={curve === 'log'} />
          </div>
        </section>
      ) : null}
    </div>
  );
}

/** changes are the kinds whose rows are changed rows. */
const changes = new Set(['INSERT', 'UPDATE', 'DELETE']);

export function ByKind({ s }: { s: Summary }) {
  const rows = Object.entries(s.by_kind ?? {}).sort((a, b) => b[1].count - a[1].count);
  if (rows.length === 0)
    return (
      <section className="panel">
        <Empty title="No operation was measured">There are no figures by kind.</Empty>
      </section>
    );
  return (
    <section className="panel table-wrap" tabIndex={0} aria-label="By kind, scrollable">
      <table className="table">
        <thead>
          <tr>
            <th>Kind</th>
            <th className="num">Operations</th>
            <th>Share</th>
            <th className="num">Rate</th>
            <th className="num">Rows</th>
            <th className="num">Errors</th>
            <th className="num">P50</th>
            <th className="num">P90</th>
            <th className="num">P95</th>
            <th className="num">P99</th>
            <th className="num">P99.9</th>
            <th className="num">max</th>
            <th className="num">mean</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(([kind, f]) => {
            const share = s.operations ? f.count / s.operations : 0;
            return (
              <tr key={kind}>
                <td>
                  <span className="row nowrap">
                    <i className="swatch" style={{ background: `var(--k-${kind.toLowerCase()})` }} />
                    {capitalize(humanize(kind))}
                  </span>
                </td>
                <td className="num">{exact(f.count)}</td>
                <td>
                  <span className="share" title={`${(share * 100).toFixed(3)} %`}>
                    <i style={{ width: `${share * 100}%`, background: `var(--k-${kind.toLowerCase()})` }} />
                  </span>
                </td>
                <td className="num">
                  <Num q={rateOf(s, f.qps)} />
                </td>
                <td className="num">
                  <Num q={count(f.rows)} />
                  {!!f.no_rows && (
                    <span className="second">
                      {plain(percent((100 * f.no_rows) / f.count))} {changes.has(kind) ? 'changed' : 'found'} none
                    </span>
                  )}
                </td>
                <td className="num">
                  <Num q={count(f.errors)} />
                </td>
                {(['p50', 'p90', 'p95', 'p99', 'p999', 'max', 'avg'] as const).map((k) => (
                  <td key={k} className="num">
                    <Num q={latency(f.latency_ms?.[k])} />
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}

export function ErrorsTab({ s }: { s: Summary }) {
  const classes = Object.entries(s.errors.by_class ?? {}).sort((a, b) => b[1] - a[1]);
  if (s.errors.count === 0)
    return (
      <section className="panel">
        <Empty icon="check" title="No operation failed">
          All {plain(count(s.operations))} operations of the measurement succeeded.
        </Empty>
      </section>
    );
  const maxCount = Math.max(...classes.map(([, n]) => n), 1);
  return (
    <div className="columns errors-columns">
      <section className="panel">
        <header>
          <h2 className="h3">By class</h2>
          <span className="muted note">
            {exact(s.errors.count)} of {exact(s.operations)} operations, {plain(errorRate(s.errors.rate))}
          </span>
        </header>
        <div className="body stack tightly">
          {classes.map(([name, n]) => (
            <div key={name} className="bar-row">
              <span>{capitalize(humanize(name))}</span>
              <span className="share wide">
                <i style={{ width: `${(n / maxCount) * 100}%`, background: 'var(--bad-mark)' }} />
              </span>
              <span className="num">{exact(n)}</span>
            </div>
          ))}
        </div>
      </section>
      <section className="panel">
        <header>
          <h2 className="h3">Most frequent errors</h2>
        </header>
        <div className="table-wrap" tabIndex={0} role="group" aria-label="Most frequent errors, scrollable">
          <table className="table">
            <thead>
              <tr>
                <th className="num">Count</th>
                <th>Class</th>
                <th>Code</th>
                <th>Message</th>
              </tr>
            </thead>
            <tbody>
              {(s.errors.top ?? []).map((e) => (
                <tr key={e.error_class + e.error_code + e.error_message}>
                  <td className="num">{exact(e.count)}</td>
                  <td>{humanize(e.error_class)}</td>
                  <td>
                    <code>{e.error_code || '–'}</code>
                  </td>
                  <td className="message">{e.error_message}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </section>
    </div>
  );
}

/** Slowest lists the slowest executions; all links to the full list, when there is a server. */
export function Slowest({ s, run, all }: { s: Summary; run?: RunDetail; all?: string }) {
  const rows = s.slowest ?? [];
  const texts = new Map((run?.plan?.statements ?? []).map((x) => [x.id, x.sql]));
  if (rows.length === 0)
    return (
      <section className="panel">
        <Empty title="No operation was measured">The slowest executions of the measurement are listed here.</Empty>
      </section>
    );
  return (
    <section className="panel table-wrap" tabIndex={0} aria-label="Slowest executions, scrollable">
      {all && (
        <header>
          <h2 className="h3">Slowest of the measurement</h2>
          <div className="end">
            <Link className="btn small" href={all}>
              Show all by latency
            </Link>
          </div>
        </header>
      )}
      <table className="table dense">
        <thead>
          <tr>
            <th className="num">Latency</th>
            <th>Kind</th>
            <th>Statement</th>
            <th>Started</th>
            <th>Worker</th>
            <th className="num">Connection</th>
            <th className="num">
              <Term tip="The number of the execution on its connection, from 0.">Seq</Term>
            </th>
            <th className="num">Rows</th>
            <th>Outcome</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((r) => (
            <tr key={`${r.worker_id}/${r.connection_id}/${r.seq}`}>
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
                <code title={texts.get(r.statement_id)}>{r.statement_id}</code>
              </td>
              <td className="nowrap">{dateTime(r.started_at)}</td>
              <td className="mono">{r.worker_id}</td>
              <td className="num">{r.connection_id}</td>
              <td className="num">{exact(r.seq)}</td>
              <td className="num">{exact(r.rows)}</td>
              <td className="message">
                {r.success ? 'succeeded' : `${humanize(r.error_class ?? 'failed')}: ${r.error_message ?? ''}`}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
