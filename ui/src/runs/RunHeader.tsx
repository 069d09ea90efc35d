import { useQueryClient } from '@tanstack/react-query';
import { memo, useEffect, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { OperatorOnly } from '../app/OperatorOnly';
import { api, asProblem } from '../api/client';
import { useCreateRun, useRunAction } from '../api/queries';
import { isLive, isTerminal, type Payload, type RunDetail } from '../api/types';
import { type Action, ActionsMenu } from '../design/Controls';
import { useConfirm } from '../design/Dialog';
import { capitalize, count, duration, plain } from '../design/format';
import { Icon } from '../design/icons';
import { problemText, serverText } from '../design/sentences';
import { PhaseBadge, SimulatedBadge, StatusBadge, unmetThresholds } from '../design/Status';
import { Tags } from '../history/tags';
import { useToast } from '../design/Toast';
import { clocks, freshness } from './clocks';
import { partialAnswer, searchHeadline } from './searchAnswer';
import { hasOperations, partialThresholdText } from './validity';
import type { RunState } from './live';
import { reportUrl, ShareDialog } from './ShareLinks';
import { NoteDialog } from './Notes';
import { stopText } from './stop';
import { neededWrites, refusedWrites } from './writePermission';

export function RunHeader({ state, run }: { state: RunState; run: RunDetail }) {
  const live = state.live;
  const status = live && !isTerminal(run.status) ? live.status : run.status;
  return (
    <header className="page-head run-head">
      <Link href="/history" className="back" aria-label="Back to history" title="Back to history">
        <Icon name="back" size={18} />
      </Link>
      <div className="run-title">
        <div className="row">
          <h1 className="clip">{run.test_name}</h1>
          {status === 'RUNNING' && live?.phase ? (
            <PhaseBadge phase={live.phase} />
          ) : (
            <StatusBadge
              status={status}
              passed={run.summary?.passed}
              failed={unmetThresholds(run.summary)}
              waits={run.waiting?.reason}
            />
          )}
          {isTerminal(run.status) && run.phase === 'PROCESSING' && <PhaseBadge phase="PROCESSING" />}
          {(run.simulated || live?.simulated) && <SimulatedBadge of={live?.emulated ? live : run} />}
          {live && !isTerminal(status) && <Timers live={live} />}
          <FreshnessBadge state={state} />
        </div>
        <div className="row run-sub">
          <span className="sub">
            <TargetLine run={run} live={live} />
          </span>
          {run.matrix_id && (
            <Link href={`/matrix/${run.matrix_id}`} className="chip">
              target of a matrix: {run.matrix_label}
            </Link>
          )}
          <Tags tags={run.scenario_config.tags} />
        </div>
      </div>
      <RunActions run={run} status={status} phase={live?.phase ?? run.phase ?? null} />
      {isTerminal(run.status) && <VerdictLine run={run} />}
    </header>
  );
}

function Timers({ live }: { live: Payload }) {
  const t = clocks(live.timing, live.phase);
  return (
    <span className="timers mono" role="timer">
      <span title="Elapsed and expected time of the run, including preparation">
        {t.elapsed}
        {t.total && <span className="muted"> / {t.total}</span>}
        {t.then && <span className="muted"> + {t.then}</span>}
      </span>
      {t.phase && (
        <span className="muted hide-phone" title="Time in this phase">
          phase {t.phase.at} / {t.phase.of}
        </span>
      )}
    </span>
  );
}

export function TargetLine({ run, live }: { run: RunDetail; live: Payload | null }) {
  const s = run.scenario_config;
  const connection =
    typeof s.target?.connection === 'string' ? s.target?.connection : (s.target?.connection?.driver ?? 'inline');
  const workers = live?.workers?.length || run.total_workers_expected || s.scaling.worker_count;
  // A search changes these as it runs.
  const connections = live?.connections.target || s.workload.concurrent_connections;
  const parts = [
    s.target?.adapter,
    connection,
    s.target?.table_name,
    `${workers} ${workers === 1 ? 'worker' : 'workers'}`,
    s.workload.load_mode === 'FIND_MAX_CONCURRENCY' && !live
      ? 'searches for the limit'
      : `${connections} ${connections === 1 ? 'connection' : 'connections'}`,
    s.workload.plugin,
  ];
  return <>{parts.filter(Boolean).join(' · ')}</>;
}

/** FreshnessBadge appears only when the data is stale. */
function FreshnessBadge({ state }: { state: RunState }) {
  const [now, setNow] = useState(Date.now);
  const isRunning = state.run !== undefined && isLive(state.run);
  useEffect(() => {
    if (!isRunning) return;
    const t = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(t);
  }, [isRunning]);
  const words = isRunning ? freshness(state.link, state.lastMessageAt, now) : null;
  if (words === null) return null;
  return (
    <span className="badge warn" role="status">
      <Icon name="refresh" size={12} />
      {words}
    </span>
  );
}

export function VerdictLine({ run }: { run: RunDetail }) {
  // A run that failed before its load has no figures to judge.
  const judged = run.status === 'COMPLETED' || (run.summary !== null && hasOperations(run, run.summary));
  const thresholds = judged ? (run.summary?.thresholds ?? []) : [];
  const reason = run.cancellation_reason && serverText(run.cancellation_reason);
  const length = run.summary?.duration_seconds;
  const search = run.summary?.find_max && searchHeadline(run.summary.find_max);
  if (run.status === 'COMPLETED' && thresholds.length === 0 && run.summary)
    return (
      <div className="verdict">
        <span>
          {search ? (
            <strong>{capitalize(search)}.</strong>
          ) : (
            `Completed: ${plain(count(run.summary.operations))} operations in ${duration(length)}.`
          )}{' '}
          The template has no thresholds.
        </span>
      </div>
    );
  const bad = run.status === 'FAILED' || (run.status === 'COMPLETED' && run.summary?.passed === false);
  return (
    <div className={`verdict ${bad ? 'bad' : run.status === 'COMPLETED' ? 'ok' : ''}`}>
      <span className="verdict-words">
        <Icon name={bad ? 'alert' : run.status === 'COMPLETED' ? 'check' : 'stop'} size={14} />
        <span>
          <strong>
            {run.status === 'FAILED'
              ? 'Failed'
              : run.status === 'CANCELLED'
                ? 'Cancelled'
                : !run.summary
                  ? 'Completed'
                  : run.summary.passed
                    ? 'Passed'
                    : unmetThresholds(run.summary) > 0
                      ? 'Thresholds failed'
                      : 'Nothing succeeded'}
          </strong>
          {reason && `: ${reason}`}
          {search && (reason ? ` · ${partialAnswer(run.summary!.find_max!)}` : `: ${search}`)}
          {!run.summary && run.phase === 'PROCESSING' && ' · the exact figures are being computed'}
        </span>
      </span>
      {thresholds.map((t) => {
        const part = partialThresholdText(run, t);
        return (
          <span
            key={t.threshold}
            className={`chip judged ${part ? '' : t.passed ? 'ok' : 'bad'}`}
            title={t.reason ?? part ?? (t.passed ? 'holds' : 'failed')}
          >
            <Icon name={part ? 'clock' : t.passed ? 'check' : 'close'} size={12} />
            <code>{t.threshold}</code>
            <span className="muted">
              {t.actual === null ? 'no figure' : `is ${Number(t.actual.toPrecision(4))}`}
              {part && `, ${part}`}
            </span>
          </span>
        );
      })}
    </div>
  );
}

/** RunActions does not depend on live seconds, so they do not render it. */
const RunActions = memo(function RunActions({
  run,
  status,
  phase,
}: {
  run: RunDetail;
  status: RunDetail['status'];
  phase: RunDetail['phase'] | null;
}) {
  const [, navigate] = useLocation();
  const toast = useToast();
  const qc = useQueryClient();
  const act = useRunAction(run.run_id);
  const create = useCreateRun();
  const [dialog, ask] = useConfirm();
  const [open, setOpen] = useState<'share' | 'note' | null>(null);
  const reported = isTerminal(status) && run.summary !== null;
  const failed = (err: unknown) => {
    const p = asProblem(err);
    toast(problemText(p), 'bad');
  };
  /** what is the request that repeats the run. */
  const what = async () =>
    run.template_id && !run.matrix_id
      ? { template_id: run.template_id }
      : { scenario: (await api.get('/api/runs/{id}', { path: { id: run.run_id }, asStored: true })).scenario_config };
  const again = () => {
    const line = refusedWrites(run);
    if (line) return allow(line, false);
    what()
      .then((made) => create.mutateAsync({ ...made, start: true }))
      .then((r) => navigate(r.path), failed);
  };
  /** allow asks once for write permission on existing tables and starts the new run with it. */
  const allow = (line: string, replaces: boolean) =>
    ask({
      title: 'Allow this run to write?',
      body: (
        <div className="stack tightly">
          <p>{line}</p>
          <p>Loadstone does not undo these changes.</p>
        </div>
      ),
      verb: 'Allow and start',
      keep: 'Cancel',
      act: async () => {
        const r = await create.mutateAsync({ ...(await what()), allow_writes: true, start: true });
        navigate(r.path, { replace: replaces });
        // The run without permission never started.
        if (replaces) void api.remove('/api/runs/{id}', { path: { id: run.run_id } }).catch(() => undefined);
      },
    });
  const start = () => {
    const line = neededWrites(qc.getQueryData(['preflight', run.run_id]), run.matrix_index ?? 0);
    if (line && run.matrix_id)
      return ask({
        title: 'Start the whole matrix?',
        body:
          `This run writes to tables that Loadstone did not create: ${line}. Start the matrix from ` +
          'its page, which asks once for all targets.',
        verb: 'Open the matrix',
        danger: false,
        keep: 'Cancel',
        act: () => navigate(`/matrix/${run.matrix_id}`),
      });
    if (line) return allow(`The run writes to tables that Loadstone did not create: ${line}.`, true);
    act.mutate('start', { onError: failed });
  };
  const stop = () =>
    ask({
      title: `Stop run “${run.test_name}”?`,
      body: stopText(run.scenario_config, status, phase),
      verb: 'Stop and drain',
      keep: 'Keep running',
      act: () => act.mutateAsync('stop'),
    });
  const remove = () =>
    ask({
      title: `Delete run “${run.test_name}”?`,
      body:
        'This permanently deletes its figures, its log and ' +
        `${plain(count(run.summary?.accounting.recorded ?? run.total_ops))} executions.`,
      verb: 'Delete run',
      act: async () => {
        await api.remove('/api/runs/{id}', { path: { id: run.run_id } });
        await qc.invalidateQueries({ queryKey: ['runs'] });
        toast(`Run “${run.test_name}” was deleted.`, 'ok');
        navigate('/history');
      },
    });
  const menu: (Action | null)[] = [
    run.template_id
      ? { label: 'Open template', icon: 'templates', act: () => navigate(`/templates/${run.template_id}`) }
      : null,
    {
      label: 'Save as template',
      icon: 'plus',
      needs: 'operator' as const,
      act: () => navigate(`/templates/new?from=${run.run_id}`),
    },
    ...(isTerminal(status) || status === 'PREPARED'
      ? [{ label: 'Note and tags', icon: 'edit', needs: 'operator' as const, act: () => setOpen('note') }]
      : []),
    ...(reported
      ? [
          { label: 'Share the report', icon: 'link', needs: 'operator' as const, act: () => setOpen('share') },
          {
            label: 'Download the report',
            icon: 'download',
            act: () => {
              const a = document.createElement('a');
              a.href = reportUrl(run.run_id);
              a.download = '';
              a.click();
            },
          },
        ]
      : []),
    { label: 'Compare with other runs', icon: 'chart', act: () => navigate(`/history?selected=${run.run_id}`) },
    ...(isTerminal(status) || status === 'PREPARED'
      ? [null, { label: 'Delete run', icon: 'trash', danger: true, needs: 'operator' as const, act: remove }]
      : []),
  ].filter((a, i, all) => a !== null || (i > 0 && all[i - 1] !== null));
  return (
    <div className="actions">
      {reported && (
        <a className="btn hide-phone" href={reportUrl(run.run_id)} download>
          <Icon name="download" /> Report
        </a>
      )}
      <OperatorOnly>
        {status === 'PREPARED' && (
          <>
            <button
              type="button"
              className="btn"
              onClick={() => act.mutate('stop', { onError: failed })}
              disabled={act.isPending}
            >
              Cancel run
            </button>
            {!run.waiting && (
              <button
                type="button"
                className="btn primary"
                onClick={start}
                disabled={act.isPending || create.isPending}
              >
                <Icon name="play" /> Start run
              </button>
            )}
          </>
        )}
        {(status === 'RUNNING' || status === 'STOPPING') && (
          <button type="button" className="btn danger" onClick={stop} disabled={act.isPending}>
            <Icon name="stop" size={12} /> Stop and drain
          </button>
        )}
        {status === 'CANCELLING' && (
          <button type="button" className="btn danger" disabled>
            Draining…
          </button>
        )}
        {isTerminal(status) && (
          <button type="button" className="btn primary" onClick={again} disabled={create.isPending}>
            <Icon name="play" /> Run again
          </button>
        )}
      </OperatorOnly>
      <ActionsMenu label="More actions for this run" actions={menu} />
      {open === 'share' && <ShareDialog run={run} onClose={() => setOpen(null)} />}
      {open === 'note' && <NoteDialog run={run} onClose={() => setOpen(null)} />}
      {dialog}
    </div>
  );
});
