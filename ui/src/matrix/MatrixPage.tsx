import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useLocation } from 'wouter';
import { OperatorOnly } from '../app/OperatorOnly';
import { api, asProblem, requestUrl } from '../api/client';
import { useCreateRun } from '../api/queries';
import { isTerminal, type Matrix } from '../api/types';
import { usePageTitle } from '../app/location';
import { Comparison, useComparison } from '../compare/Comparison';
import { CopyComparison, Tolerance, useTolerance } from '../compare/Tolerance';
import { ActionsMenu } from '../design/Controls';
import { useConfirm } from '../design/Dialog';
import { Icon } from '../design/icons';
import { Failed, Notice, SkeletonRows } from '../design/States';
import { SimulatedBadge, StatusBadge } from '../design/Status';
import { useToast } from '../design/Toast';
import { stopMatrixText } from '../runs/stop';
import { matrixScenario, targetsNeedingWrites, targetsRefusedWrites } from './targets';
import { problemText } from '../design/sentences';

/** MatrixPage is /matrix/{id}: one workload on several targets, compared; live while it runs. */
export function MatrixPage({ id }: { id: string }) {
  const matrix = useQuery({
    queryKey: ['matrix', id],
    queryFn: ({ signal }) => api.get('/api/matrices/{id}', { path: { id }, signal }),
    refetchInterval: (q) => (q.state.data && isTerminal(q.state.data.status) ? false : 1_500),
  });
  usePageTitle(matrix.data?.name ?? 'Matrix');
  if (matrix.data) return <MatrixView m={matrix.data} />;
  return (
    <div className="page">
      <div className="panel">
        {matrix.error ? (
          <Failed what="The matrix could not be read." error={matrix.error} retry={() => matrix.refetch()} />
        ) : (
          <SkeletonRows rows={8} />
        )}
      </div>
    </div>
  );
}

function MatrixView({ m }: { m: Matrix }) {
  const runs = m.runs ?? [];
  const ids = runs.map((r) => r.run_id);
  const labels = runs.map((r) => r.matrix_label ?? null);
  const [tolerance, setTolerance] = useTolerance();
  const state = useComparison(ids, labels, tolerance);
  const [, navigate] = useLocation();
  const qc = useQueryClient();
  const toast = useToast();
  const [dialog, ask] = useConfirm();
  const path = { id: m.matrix_id };
  const failed = (err: unknown) => {
    const p = asProblem(err);
    toast(problemText(p), 'bad');
  };
  const act = useMutation({
    mutationFn: (verb: 'start' | 'stop') => api.post(`/api/matrices/{id}/${verb}`, { path }),
    onSuccess: (next) => qc.setQueryData(['matrix', m.matrix_id], next),
    onError: failed,
  });
  const create = useCreateRun();
  /** what is the request for a new matrix: the template, or the runs' scenarios. */
  const what = async () => {
    if (m.template_id) return { template_id: m.template_id };
    const all = await Promise.all(ids.map((id) => api.get('/api/runs/{id}', { path: { id }, asStored: true })));
    return { scenario: matrixScenario(m, all) ?? undefined };
  };
  /** allow asks once for write permission on existing tables and starts the new matrix with it. */
  const allow = (asking: { label: string; line: string }[], replaces: boolean) =>
    ask({
      title: 'Allow these runs to write?',
      body: (
        <div className="stack tightly">
          <p>The runs write to tables that Loadstone did not create:</p>
          <ul>
            {asking.map((a) => (
              <li key={a.label}>
                <strong>{a.label}</strong>: {a.line}.
              </li>
            ))}
          </ul>
          <p>Loadstone does not undo these changes.</p>
        </div>
      ),
      verb: 'Allow and start',
      keep: 'Cancel',
      act: async () => {
        const r = await create.mutateAsync({ ...(await what()), allow_writes: true, start: true, matrix: true });
        navigate(r.path, { replace: replaces });
        // The matrix without permission never started.
        if (replaces) void api.remove('/api/matrices/{id}', { path }).catch(() => undefined);
      },
    });
  const start = useMutation({
    // When the preflight fails, the server checks writes per run.
    mutationFn: async () =>
      targetsNeedingWrites(
        await api.post('/api/preflight', { body: { ...(await what()), trial: false } }).catch(() => undefined),
        m.labels ?? [],
      ),
    onSuccess: (asking) => (asking.length ? allow(asking, true) : act.mutate('start')),
    onError: failed,
  });
  const refused = isTerminal(m.status) ? targetsRefusedWrites(runs) : [];
  const again = useMutation({
    mutationFn: async () => create.mutateAsync({ ...(await what()), start: true, matrix: true }),
    onSuccess: (r) => navigate(r.path),
    onError: failed,
  });
  const stop = () =>
    ask({
      title: `Stop “${m.name}”?`,
      body: stopMatrixText(runs[0]?.scenario_config),
      verb: 'Stop and drain',
      act: () => act.mutateAsync('stop'),
    });
  const remove = () =>
    ask({
      title: `Delete “${m.name}” and its ${ids.length} runs?`,
      body: 'This permanently deletes their figures, logs and executions.',
      verb: 'Delete matrix',
      act: async () => {
        await api.remove('/api/matrices/{id}', { path });
        await qc.invalidateQueries({ queryKey: ['runs'] });
        navigate('/history');
      },
    });
  const done = runs.filter((r) => isTerminal(r.status)).length;
  return (
    <>
      <header className="page-head">
        <Link href="/history" className="back" aria-label="Back to the runs" title="Back to the runs">
          <Icon name="back" size={18} />
        </Link>
        <div className="grow">
          <div className="row">
            <h1 className="clip">{m.name}</h1>
            <StatusBadge status={m.status} />
            {runs.some((r) => r.simulated) && <SimulatedBadge of={runs.find((r) => r.simulated)} />}
          </div>
          <div className="sub clip" role="status">
            {isTerminal(m.status)
              ? `${ids.length} targets, one after another with the same seed`
              : `${done} of ${ids.length} targets are done`}
          </div>
        </div>
        <div className="actions">
          <Tolerance value={tolerance} onChange={setTolerance} />
          <CopyComparison compared={state.compared} tolerance={tolerance} />
          <OperatorOnly>
            {m.status === 'PREPARED' && (
              <button
                type="button"
                className="btn primary"
                disabled={act.isPending || start.isPending}
                onClick={() => start.mutate()}
              >
                <Icon name="play" /> {start.isPending ? 'Checking…' : 'Start'}
              </button>
            )}
            {isTerminal(m.status) && (
              <button
                type="button"
                className="btn primary"
                disabled={again.isPending}
                onClick={() => (refused.length ? allow(refused, false) : again.mutate())}
              >
                <Icon name="play" /> Run again
              </button>
            )}
            {(m.status === 'RUNNING' || m.status === 'CANCELLING') && (
              <button
                type="button"
                className="btn danger"
                disabled={act.isPending || m.status === 'CANCELLING'}
                onClick={stop}
              >
                <Icon name="stop" size={12} /> {m.status === 'CANCELLING' ? 'Draining…' : 'Stop and drain'}
              </button>
            )}
          </OperatorOnly>
          <ActionsMenu
            label="More actions for this matrix"
            actions={[
              ...(m.template_id
                ? [{ label: 'Open template', icon: 'templates', act: () => navigate(`/templates/${m.template_id}`) }]
                : []),
              {
                label: 'Save matrix.json',
                icon: 'download',
                disabled: done === 0,
                act: () => {
                  const a = document.createElement('a');
                  a.href = requestUrl('/api/matrices/{id}/report', path, { tolerance_pct: tolerance });
                  a.download = 'matrix.json';
                  a.click();
                },
              },
              ...(m.status === 'RUNNING' || m.status === 'CANCELLING'
                ? []
                : [null, { label: 'Delete', icon: 'trash', danger: true, needs: 'operator' as const, act: remove }]),
            ]}
          />
        </div>
      </header>
      <div className="page">
        {refused.length > 0 && (
          <Notice tone="warn">
            <strong>
              {refused.length === 1 ? 'One target was' : `${refused.length} targets were`} skipped: nobody allowed
              writes to tables that Loadstone did not create.
            </strong>{' '}
            “Run again” asks.
            <ul>
              {refused.map((r) => (
                <li key={r.label}>
                  {r.label}: {r.line}
                </li>
              ))}
            </ul>
          </Notice>
        )}
        <Comparison ids={ids} labels={labels} state={state} tolerance={tolerance} />
      </div>
      {dialog}
    </>
  );
}
