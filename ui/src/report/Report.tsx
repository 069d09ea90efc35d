import { type ReactNode, useMemo, useState } from 'react';
import { ChartGroup, type Zoom } from '../charts/group';
import { count, dateTime, duration, plain } from '../design/format';
import { Notice } from '../design/States';
import { SimulatedBadge, StatusBadge, unmetThresholds } from '../design/Status';
import { AccountingView } from '../runs/AccountingView';
import { ByStatement } from '../runs/ByStatement';
import { CostView } from '../runs/CostView';
import { EnvironmentView } from '../runs/EnvironmentView';
import { FindMaxAnswer, FindMaxResultView } from '../runs/FindMax';
import { ByKind, DistributionTab, ErrorsTab, Slowest } from '../runs/FinishedTabs';
import { Guardrails } from '../runs/Guardrails';
import { KindChartGrid } from '../runs/KindCharts';
import { hasOperations } from '../runs/validity';
import { samples } from '../runs/history';
import { LogPanel } from '../runs/LogPanel';
import { ByLoad } from '../runs/ByLoad';
import { MarkedMoments } from '../runs/MarkedMoments';
import { RunRemarks } from '../runs/Remarks';
import { RunCharts } from '../runs/RunCharts';
import { TargetLine, VerdictLine } from '../runs/RunHeader';
import { ValidityNotice } from '../runs/ValidityNotice';
import { axisBegins, columns } from '../runs/series';
import { Tiles } from '../runs/Tiles';
import { WhySummary } from '../runs/Findings';
import { FinishedWorkers } from '../runs/Workers';
import type { RunContent } from './content';

const readyState = { pending: false, error: null, retry: () => {} };

/** Report is the report of a run, with the components of its page. */
export function Report({ c: content }: { c: RunContent }) {
  const { run } = content;
  const s = run.summary!;
  const [zoom, setZoom] = useState<Zoom | null>(null);
  const start = run.start_time ? Date.parse(run.start_time) : 0;
  const c = useMemo(
    () =>
      columns({
        samples: samples(content.points ?? [], start, content.resolution_seconds),
      }),
    [content, start],
  );
  const hasLoad = hasOperations(run, s, c.t.length);
  const parts: [string, string, ReactNode][] = [
    ...(hasLoad
      ? ([
          [
            'charts',
            'Charts',
            <RunCharts key="charts" run={run} marks={content.marks} live={null} c={c} state={readyState} />,
          ],
          ['distribution', 'Distribution', <DistributionTab key="distribution" s={s} />],
          [
            'kinds',
            'By kind',
            <div key="kinds" className="stack">
              <ByKind s={s} />
              {content.kinds && (
                <KindChartGrid run={run} marks={content.marks} kinds={content.kinds} state={readyState} />
              )}
              <ByStatement s={s} />
            </div>,
          ],
          ['errors', 'Errors', <ErrorsTab key="errors" s={s} />],
          ['slowest', 'Slowest', <Slowest key="slowest" s={s} />],
          ['workers', 'Workers', <FinishedWorkers key="workers" run={run} />],
        ] satisfies [string, string, ReactNode][])
      : []),
    ...((s.findings?.length ?? 0) > 0
      ? ([['why', 'Why', <WhySummary key="why" run={run} s={s} />]] satisfies [string, string, ReactNode][])
      : []),
    ['accounting', 'Accounting', <AccountingView key="accounting" f={s} />],
    ['environment', 'Environment', <EnvironmentView key="environment" run={run} s={s} />],
    [
      'log',
      'Log',
      <LogPanel
        key="log"
        logs={content.logs ?? []}
        state={readyState}
        dropped={0}
        follow={false}
        file={run.test_name}
        tall
      />,
    ],
  ];
  return (
    <ChartGroup name={run.run_id} start={start} from={axisBegins(run, c)} standalone zoom={zoom} onZoom={setZoom}>
      <header className="page-head run-head">
        <div className="run-title">
          <div className="row">
            <h1 className="clip">{run.test_name}</h1>
            <StatusBadge status={run.status} passed={s.passed} failed={unmetThresholds(s)} />
            {run.simulated && <SimulatedBadge of={run} />}
          </div>
          <div className="row run-sub">
            <span className="sub">
              <TargetLine run={run} live={null} />
            </span>
            {Object.entries(run.scenario_config.tags ?? {}).map(([k, v]) => (
              <span key={k} className="tag">
                {k}: {v}
              </span>
            ))}
          </div>
        </div>
        <VerdictLine run={run} />
      </header>
      <main className="page run report">
        <p className="muted report-made">
          Run of {dateTime(run.start_time)}
          {s.duration_seconds > 0 && `, measured for ${duration(s.duration_seconds)}`}
          {`, ${plain(count(s.operations))} operations. `}Report of {dateTime(content.made_at)} by Loadstone{' '}
          {content.version}.
          {content.left_out.length > 0 && ` To limit its size it omits ${content.left_out.join(', ')}.`}
        </p>
        {content.note && (
          <Notice>
            <p className="note-text">{content.note}</p>
          </Notice>
        )}
        <nav className="report-parts" aria-label="Parts of the report">
          {parts.map(([id, title]) => (
            <button key={id} type="button" className="btn quiet small" onClick={() => goTo(id)}>
              {title}
            </button>
          ))}
        </nav>
        {s.find_max && <FindMaxAnswer r={s.find_max} />}
        <ValidityNotice run={run} live={null} c={c} />
        <Tiles run={run} live={null} c={c} />
        <ByLoad run={run} s={s} />
        <RunRemarks s={s} live={null} />
        <MarkedMoments run={run} marks={content.marks} />
        <Guardrails run={run} live={null} c={c} />
        {s.find_max && <FindMaxResultView r={s.find_max} />}
        {s.cost && <CostView c={s.cost} simulated={!!run.simulated} emulated={run.emulated} />}
        {parts.map(([id, title, part]) => (
          // No landmark: its content is already one of the same name.
          <div key={id} id={id} tabIndex={-1} className="stack report-part">
            <h2>{title}</h2>
            {part}
          </div>
        ))}
      </main>
    </ChartGroup>
  );
}

/** goTo scrolls by script: fragments do not work in files and sandboxed share links. */
function goTo(id: string): void {
  const part = document.getElementById(id);
  part?.scrollIntoView();
  part?.focus({ preventScroll: true });
}
