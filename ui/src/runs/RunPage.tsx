import { useCallback, useEffect, useMemo, useRef } from 'react';
import { useSearch } from 'wouter';
import { isLive, isTerminal, type RunDetail } from '../api/types';
import { usePageTitle, useParam } from '../app/location';
import { ChartGroup, type Zoom } from '../charts/group';
import { CardBoundary } from '../design/CardBoundary';
import { Failed, Notice, Skeleton } from '../design/States';
import { serverText } from '../design/sentences';
import { useToast } from '../design/Toast';
import { AboutRun } from './AboutRun';
import { Executions } from './Executions';
import { FindMaxAnswer, FindMaxLive } from './FindMax';
import { FinishedTabs } from './FinishedTabs';
import { Guardrails } from './Guardrails';
import { Rules } from './Rules';
import { LiveCharts } from './LiveCharts';
import { LiveErrors } from './LiveErrors';
import { LogPanel } from './LogPanel';
import { type RunState, useRunState } from './live';
import { PreparedRun } from './PreparedRun';
import { PrepareProgressPanel } from './PrepareProgressPanel';
import { RunHeader } from './RunHeader';
import { RunRemarks } from './Remarks';
import { axisBegins } from './series';
import { Steering } from './Steering';
import { Tiles } from './Tiles';
import { unresponsive } from './unresponsive';
import { ValidityNotice } from './ValidityNotice';
import { LiveWhy } from './Why';
import { Workers } from './Workers';

export function RunPage({ id }: { id: string }) {
  const [zoom, setZoom] = useZoom();
  const state = useRunState(id, zoom);
  usePageTitle(state.run ? state.run.test_name : 'Run');
  if (!state.run) {
    if (state.error)
      return (
        <div className="page">
          <div className="panel">
            <Failed what="This run could not be read." error={state.error} retry={state.retry} />
          </div>
        </div>
      );
    return <RunSkeleton />;
  }
  return <Run key={id} state={state} run={state.run} zoom={zoom} setZoom={setZoom} />;
}

function Run(props: { state: RunState; run: RunDetail; zoom: Zoom | null; setZoom: (z: Zoom | null) => void }) {
  const { state, run, zoom, setZoom } = props;
  const c = state.c;
  useReasonToast(run);
  const start = run.start_time ? Date.parse(run.start_time) : 0;
  // A payload has the new phase before the stored run.
  const from = axisBegins(state.live?.timing ?? run, c);
  const hasEnded = isTerminal(run.status) && !isLive(run);
  const status = state.live?.status ?? run.status;
  const phase = state.live ? state.live.phase : run.phase;
  const preparing = !hasEnded && run.status !== 'PREPARED' && phase === 'PREPARING';
  const [tab] = useParam('tab');
  const measured = run.summary !== null && isTerminal(run.status);

  return (
    <ChartGroup name={run.run_id} start={start} from={from} zoom={zoom} onZoom={setZoom}>
      <RunHeader state={state} run={run} />
      <div className="page run">
        {!hasEnded && <UnresponsiveNotice state={state} />}
        {run.status === 'PREPARED' ? (
          <PreparedRun run={run} />
        ) : (
          <>
            {measured && run.summary?.find_max && <FindMaxAnswer r={run.summary.find_max} />}
            {!hasEnded && <ValidityNotice run={run} live={measured ? null : state.live} c={c} />}
            <CardBoundary title="Figures">
              <Tiles run={run} live={state.live} c={c} />
            </CardBoundary>
            {hasEnded ? (
              <CardBoundary title="Verdict, notes and baseline">
                <AboutRun run={run} measured={measured} c={c} />
              </CardBoundary>
            ) : (
              <>
                <RunRemarks s={measured ? run.summary : null} live={measured ? null : state.live} />
                {!preparing && <Guardrails run={run} live={state.live} c={c} />}
                <Rules run={run} live={state.live} />
              </>
            )}
            {preparing && <PrepareProgressPanel live={state.live} />}
            {!preparing && run.start_time && <Steering run={run} live={state.live} />}
            {measured ? (
              <FinishedTabs run={run} state={state} c={c} />
            ) : (
              <>
                {!preparing && state.live?.find_max && <FindMaxLive f={state.live.find_max} />}
                {!preparing && <LiveCharts run={run} live={state.live} c={c} state={state.seriesState} />}
                {!preparing && !hasEnded && <LiveWhy run={run} c={c} />}
                {!hasEnded && <LiveErrors run={run} live={state.live} />}
                {tab === 'executions' && <Executions run={run} />}
                {!preparing && !hasEnded && <Workers run={run} live={state.live} lastMessageAt={state.lastMessageAt} />}
                <LogPanel
                  logs={state.logs}
                  state={state.logsState}
                  dropped={state.live?.logs_dropped ?? 0}
                  follow={status === 'RUNNING'}
                  file={run.test_name}
                />
              </>
            )}
          </>
        )}
      </div>
    </ChartGroup>
  );
}

/** useZoom keeps the zoom in the address, so that a link shows what its sender saw. */
function useZoom(): [Zoom | null, (z: Zoom | null) => void] {
  const search = useSearch();
  const [, setRange] = useParam('range', '', true);
  const zoom = useMemo<Zoom | null>(() => {
    const [a, b] = (new URLSearchParams(search).get('range') ?? '').split('-').map(Number);
    return a !== undefined && b !== undefined && b > a && a >= 0 ? { from: a, to: b } : null;
  }, [search]);
  const set = useCallback(
    (z: Zoom | null) => setRange(z ? `${z.from.toFixed(1)}-${Math.max(z.to, z.from + 0.5).toFixed(1)}` : ''),
    [setRange],
  );
  return [zoom, set];
}

/** useReasonToast shows once why a run ended early, when the user watches it. */
function useReasonToast(run: RunDetail) {
  const toast = useToast();
  const before = useRef(run.cancellation_reason);
  useEffect(() => {
    if (run.cancellation_reason && !before.current)
      toast(
        serverText(run.cancellation_reason),
        run.status === 'FAILED' || run.stop_reason !== 'user_requested' ? 'bad' : 'warn',
      );
    before.current = run.cancellation_reason;
  }, [run.cancellation_reason, run.status, run.stop_reason, toast]);
}

/** UnresponsiveNotice shows run workers that stopped reporting. */
function UnresponsiveNotice({ state }: { state: RunState }) {
  const u = unresponsive(state.live, state.lastMessageAt);
  if (!u) return null;
  return (
    <Notice tone={u.tone}>
      <strong>{u.title}.</strong>
      <ul>
        {u.details.map((d) => (
          <li key={d}>{d}</li>
        ))}
      </ul>
    </Notice>
  );
}

function RunSkeleton() {
  return (
    <>
      <div className="page-head">
        <Skeleton width={280} height={22} />
      </div>
      <div className="page run" aria-busy="true">
        <div className="tiles">
          {Array.from({ length: 6 }, (_, i) => (
            <div key={i} className="tile">
              <Skeleton width="50%" height={12} />
              <Skeleton width="70%" height={26} />
            </div>
          ))}
        </div>
        <div className="columns two">
          {Array.from({ length: 4 }, (_, i) => (
            <div key={i} className="panel pad">
              <Skeleton height={230} />
            </div>
          ))}
        </div>
      </div>
    </>
  );
}
