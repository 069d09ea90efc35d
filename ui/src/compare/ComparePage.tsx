import { useLocation } from 'wouter';
import { Link } from 'wouter';
import { usePageTitle, useParam } from '../app/location';
import { ActionsMenu } from '../design/Controls';
import { Icon } from '../design/icons';
import { Empty } from '../design/States';
import { Comparison, useComparison } from './Comparison';
import { CopyComparison, Tolerance, useTolerance } from './Tolerance';
import { maxRuns, runsFrom } from './model';

/** ComparePage is /compare?runs=a,b,…: two to eight runs; the first is the baseline. */
export function ComparePage() {
  usePageTitle('Compare runs');
  const [list, setList] = useParam('runs');
  const [tolerance, setTolerance] = useTolerance();
  const [, navigate] = useLocation();
  const ids = runsFrom(list);
  const labels = ids.map(() => null);
  const state = useComparison(ids, labels, tolerance);
  const set = (next: string[]) => setList(next.join(','));
  return (
    <>
      <header className="page-head">
        <Link
          href={`/history${ids.length ? `?selected=${ids.join(',')}` : ''}`}
          className="back"
          aria-label="Back to the runs"
          title="Back to the runs"
        >
          <Icon name="back" size={18} />
        </Link>
        <h1>Compare runs</h1>
        {ids.length > 0 && <span className="sub">{ids.length}</span>}
        {ids.length > 1 && (
          <div className="actions">
            <Tolerance value={tolerance} onChange={setTolerance} />
            <CopyComparison compared={state.compared} tolerance={tolerance} />
            {ids.length < maxRuns && (
              <Link href={`/history?selected=${ids.join(',')}`} className="btn" aria-label="Add a run">
                <Icon name="plus" /> <span className="hide-phone">Add a run</span>
              </Link>
            )}
          </div>
        )}
      </header>
      <div className="page">
        {ids.length < 2 ? (
          <div className="panel">
            <Empty
              icon="chart"
              title="Choose at least two runs"
              actions={
                <Link href={`/history${ids.length ? `?selected=${ids.join(',')}` : ''}`} className="btn primary">
                  Choose runs
                </Link>
              }
            >
              Select up to {maxRuns} runs in the list. The first one is the baseline.
            </Empty>
          </div>
        ) : (
          <Comparison
            ids={ids}
            labels={labels}
            state={state}
            tolerance={tolerance}
            action={(id, i) => (
              <ActionsMenu
                small
                label={`Actions for run ${i + 1}`}
                actions={[
                  { label: 'Open', icon: 'chart', act: () => navigate(`/runs/${id}`) },
                  ...(i > 0
                    ? [
                        {
                          label: 'Make it the baseline',
                          icon: 'check',
                          act: () => set([id, ...ids.filter((x) => x !== id)]),
                        },
                      ]
                    : []),
                  ...(ids.length > 2
                    ? [{ label: 'Remove from comparison', icon: 'close', act: () => set(ids.filter((x) => x !== id)) }]
                    : []),
                ]}
              />
            )}
          />
        )}
      </div>
    </>
  );
}
