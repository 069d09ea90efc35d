import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import { api, Problem } from '../api/client';
import { useRun, useRuns } from '../api/queries';
import { isTerminal, type RunDetail, type RunRow } from '../api/types';
import { SearchBox } from '../design/Controls';
import { ago, count, plain } from '../design/format';
import { useDebounced } from '../design/useDebounced';
import { Failed, Notice, SkeletonRows } from '../design/States';
import { Field, useForm } from './fields';
import { get } from './schema';

/** maxExecutions is the server's replay limit. */
const maxExecutions = 5_000_000;

/** replayProblem says why a run cannot be replayed, judged by its list row; "" when it can. */
export function replayProblem(
  r: Pick<RunRow, 'status' | 'total_ops' | 'scenario_config' | 'executions_deleted_at'>,
): string {
  if (!isTerminal(r.status)) return 'has not ended';
  if (r.total_ops === 0) return 'recorded no operation';
  if (r.total_ops > maxExecutions) return 'has more operations than a replay takes';
  if (r.executions_deleted_at) return 'has no stored executions';
  // List rows have scenarios without their feeds.
  const { feed, plugin } = r.scenario_config.workload;
  if (feed || /^replay(@|$)/.test(plugin ?? '')) return 'is a replay itself';
  return '';
}

/** missingForReplay says what a chosen run's record lacks; "" when nothing is known to be missing. */
function missingForReplay(r: RunDetail): string {
  if (!isTerminal(r.status)) return 'The run has not finished. Replay it after its end.';
  if (r.scenario_config.workload.feed) return 'This run is a replay. Choose the run that it replayed.';
  if (r.phase !== 'PROCESSING' && (r.artifacts_total ?? 0) === 0)
    return 'This run has no stored executions. Choose another run.';
  if ((r.summary?.accounting?.dropped ?? 0) > 0)
    return 'This run dropped operations, so it cannot be replayed. Choose another run.';
  return '';
}

/** RunPicker chooses a recorded run from a list, or by a typed id. */
export function RunPicker({ path }: { path: string }) {
  const { config, set } = useForm();
  const feedRun = get(config, path);
  const id = typeof feedRun === 'string' ? feedRun.trim() : '';
  const [text, setText] = useState('');
  const runs = useRuns({
    status: ['COMPLETED', 'FAILED', 'CANCELLED'],
    search: useDebounced(text) || undefined,
    limit: 100,
  });
  const fit = (runs.data?.runs ?? []).filter((r) => !replayProblem(r));
  return (
    <>
      <div className="stack tightly">
        <SearchBox value={text} placeholder="Find a run by its name" onChange={setText} />
        {runs.data ? (
          <div className="run-list" role="radiogroup" aria-label="Runs that can be replayed">
            {fit.map((r) => (
              <RunOption key={r.run_id} r={r} name={path} chosen={r.run_id === id} pick={() => set(path, r.run_id)} />
            ))}
            {fit.length === 0 && (
              <p className="muted">
                {text
                  ? 'No run with this name can be replayed.'
                  : 'No run can be replayed yet. A run can be replayed after it has finished.'}
              </p>
            )}
          </div>
        ) : runs.error ? (
          <Failed what="runs" error={runs.error} retry={() => runs.refetch()} />
        ) : (
          <SkeletonRows rows={3} />
        )}
      </div>
      <Field path={path} label="Run" help="Choose a run above, or enter its id. The run supplies the statements.">
        {(a) => (
          <input
            {...a}
            className="input mono"
            value={typeof feedRun === 'string' ? feedRun : ''}
            placeholder="3f2a1c8e-…"
            spellCheck={false}
            onChange={(e) => set(path, e.target.value.trim())}
          />
        )}
      </Field>
      {/^[0-9a-f-]{36}$/.test(id) && <ChosenRun id={id} key={id} />}
    </>
  );
}

/**
 * RunOption is a run of the list. A failed run's row does not tell whether it has a record, so it cannot be chosen
 * without one.
 */
function RunOption(props: { r: RunRow; name: string; chosen: boolean; pick: () => void }) {
  const { r } = props;
  const detail = useQuery({
    queryKey: ['run', r.run_id],
    queryFn: ({ signal }) => api.get('/api/runs/{id}', { path: { id: r.run_id }, signal }),
    enabled: r.status === 'FAILED',
    staleTime: 60_000,
  });
  const problem = r.status === 'FAILED' && detail.data ? missingForReplay(detail.data) : '';
  return (
    <label data-row>
      <input
        type="radio"
        name={props.name}
        checked={props.chosen}
        disabled={problem !== '' && !props.chosen}
        onChange={props.pick}
      />
      <span className="of">
        <strong className="wrap-anywhere">{r.test_name}</strong>
        <span className="muted">
          {ago(r.created_at)} · {plain(count(r.total_ops))} operations ·{' '}
          <span className="mono">{r.scenario_config.target?.table_name || r.scenario_config.workload.plugin}</span>
        </span>
        {problem && <span className="muted">{problem}</span>}
      </span>
    </label>
  );
}

function ChosenRun({ id }: { id: string }) {
  const run = useRun(id, true);
  if (run.error instanceof Problem && run.error.status === 404)
    return <Notice tone="bad">This server has no run with this id.</Notice>;
  if (!run.data) return null;
  const problem = missingForReplay(run.data);
  if (problem) return <Notice tone="bad">{problem}</Notice>;
  return (
    <p className="muted">
      Replays <Link href={`/runs/${id}`}>{run.data.test_name}</Link>, {plain(count(run.data.total_ops))} operations.
    </p>
  );
}
