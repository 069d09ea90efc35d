import { useQueries } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { api, asProblem } from '../api/client';
import { useRuns } from '../api/queries';
import { isLive, type Run } from '../api/types';
import { SearchBox } from '../design/Controls';
import { Dialog } from '../design/Dialog';
import { ago, dateTime } from '../design/format';
import { Icon } from '../design/icons';
import { Empty, Load, SkeletonRows } from '../design/States';
import { StatusBadge } from '../design/Status';
import { useToast } from '../design/Toast';
import { maxBaseRuns, maxRuns } from './address';
import { earlierRuns } from './earlierRuns';

/** usePickedRuns loads runs by id; deleted runs are in missing. */
export function usePickedRuns(ids: string[]): { runs: Run[]; pending: boolean; missing: string[] } {
  const all = useQueries({
    queries: ids.map((id) => ({
      queryKey: ['run-times', id],
      queryFn: async ({ signal }: { signal: AbortSignal }): Promise<Run> => {
        const {
          artifacts: _a,
          events: _e,
          live: _l,
          ...run
        } = await api.get('/api/runs/{id}', {
          path: { id },
          signal,
        });
        return run;
      },
      staleTime: 10_000,
      // Live runs are polled until they end.
      refetchInterval: (q: { state: { data?: Run } }) => (q.state.data && isLive(q.state.data) ? 3_000 : false),
    })),
  });
  const knownRuns = all.map((q) => q.data);
  const key = knownRuns
    .map((r) =>
      r ? [r.run_id, r.status, r.phase, r.warmup_end_time, r.measurement_end_time, r.end_time].join('/') : '',
    )
    .join();
  return {
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the key stands for the runs
    runs: useMemo(() => knownRuns.filter((r) => r !== undefined), [key]),
    pending: all.some((q) => q.isPending),
    missing: ids.filter((_, i) => all[i]!.isError),
  };
}

/** runNames tells runs apart: by name, with the start time when a name repeats. */
export function runNames(runs: Run[]): (id: string) => string {
  const names = runs.map((r) => r.test_name);
  return (id) => {
    const run = runs.find((r) => r.run_id === id);
    if (!run) return id;
    const alone = names.filter((n) => n === run.test_name).length < 2;
    return alone ? run.test_name : `${run.test_name} ${dateTime(run.start_time)}`;
  };
}

interface Props {
  runs: string[];
  base: string[];
  knownRuns: Run[];
  /** Whether a curve's colour identifies the run. */
  coloured: boolean;
  onChange: (runs: string[], base: string[]) => void;
}

/** RunBar shows and edits the overlaid runs. */
export function RunBar({ runs, base, knownRuns, coloured, onChange }: Props) {
  const [picking, setPicking] = useState(false);
  const toast = useToast();
  const name = runNames(knownRuns);
  const first = knownRuns.find((r) => r.run_id === runs[0]);

  const lastTen = async () => {
    if (!first) return;
    try {
      const before = await earlierRuns(first, 10, runs, (query) => api.get('/api/runs', { query }));
      if (before.length === 0) toast(`No completed run of the same template precedes ${first.test_name}.`, 'warn');
      else
        onChange(
          runs,
          before.map((r) => r.run_id),
        );
    } catch (err) {
      toast(asProblem(err).message, 'bad');
    }
  };

  return (
    <div className="explore-runs">
      {runs.map((id, i) => (
        <span key={id} className="chip">
          <i style={coloured ? { background: `var(--run-${(i % 8) + 1})` } : undefined} />
          {name(id)}
          <button
            type="button"
            aria-label={`Leave out ${name(id)}`}
            onClick={() =>
              onChange(
                runs.filter((r) => r !== id),
                base,
              )
            }
          >
            <Icon name="close" size={12} />
          </button>
        </span>
      ))}
      <button type="button" className="btn small" onClick={() => setPicking(true)}>
        <Icon name="plus" size={14} /> {runs.length ? 'Runs' : 'Choose runs'}
      </button>
      {base.length > 0 ? (
        <span className="chip" title={base.map(name).join('\n')}>
          <i className="dashed" />
          median of {base.length} {base.length === 1 ? 'run' : 'runs'}
          <button type="button" aria-label="Leave out the median" onClick={() => onChange(runs, [])}>
            <Icon name="close" size={12} />
          </button>
        </span>
      ) : (
        runs.length > 0 && (
          <button
            type="button"
            className="btn quiet small"
            title="Completed earlier runs of the same template, or of the same name"
            onClick={() => void lastTen()}
          >
            Compare with the median of the last ten
          </button>
        )
      )}
      {picking && <Picker runs={runs} base={base} onClose={() => setPicking(false)} onDone={onChange} />}
    </div>
  );
}

type Role = '' | 'run' | 'base';

function Picker(props: {
  runs: string[];
  base: string[];
  onClose: () => void;
  onDone: (runs: string[], base: string[]) => void;
}) {
  const [search, setSearch] = useState('');
  const [runs, setRuns] = useState(props.runs);
  const [base, setBase] = useState(props.base);
  const list = useRuns({ search: search || undefined, limit: 40 });
  const role = (id: string): Role => (runs.includes(id) ? 'run' : base.includes(id) ? 'base' : '');
  const set = (id: string, to: Role) => {
    setRuns((l) => (to === 'run' ? [...l.filter((r) => r !== id), id].slice(-maxRuns) : l.filter((r) => r !== id)));
    setBase((l) =>
      to === 'base' ? [...l.filter((r) => r !== id), id].slice(-maxBaseRuns) : l.filter((r) => r !== id),
    );
  };
  return (
    <Dialog title="Overlay runs, aligned at their start" wide onClose={props.onClose}>
      <div className="stack">
        <SearchBox value={search} placeholder="Search runs" onChange={setSearch} />
        <div className="explore-picker" tabIndex={0} role="group" aria-label="Runs">
          <Load
            from={list}
            what="The runs could not be read."
            skeleton={<SkeletonRows rows={6} />}
            empty={(l) => !l.runs?.some((r) => r.start_time) && <Empty tight title="No matching runs" />}
          >
            {(l) => (
              <ul>
                {l.runs
                  ?.filter((r) => r.start_time)
                  .map((r) => (
                    <li key={r.run_id}>
                      <label className="grow clip">
                        <input
                          type="checkbox"
                          checked={role(r.run_id) === 'run'}
                          onChange={(e) => set(r.run_id, e.target.checked ? 'run' : '')}
                        />{' '}
                        {r.test_name}
                      </label>
                      <StatusBadge status={r.status} />
                      <span className="muted note nowrap" title={dateTime(r.start_time)}>
                        {ago(r.start_time)}
                      </span>
                      <label className="note nowrap">
                        <input
                          type="checkbox"
                          aria-label={`${r.test_name} in the median`}
                          checked={role(r.run_id) === 'base'}
                          onChange={(e) => set(r.run_id, e.target.checked ? 'base' : '')}
                        />{' '}
                        median
                      </label>
                    </li>
                  ))}
              </ul>
            )}
          </Load>
        </div>
        <p className="note muted">
          Up to {maxRuns} runs have curves of their own; of up to {maxBaseRuns} others the median is drawn.
        </p>
        <div className="actions">
          <button type="button" className="btn" onClick={props.onClose}>
            Cancel
          </button>
          <button
            type="button"
            className="btn primary"
            onClick={() => {
              props.onDone(runs, base);
              props.onClose();
            }}
          >
            Show {runs.length} {runs.length === 1 ? 'run' : 'runs'}
          </button>
        </div>
      </div>
    </Dialog>
  );
}
