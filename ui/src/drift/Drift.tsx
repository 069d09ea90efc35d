import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { Link } from 'wouter';
import { api } from '../api/client';
import { useRuns } from '../api/queries';
import { useParam } from '../app/location';
import { difference, interval } from '../compare/model';
import { Segments, Term } from '../design/Controls';
import { Empty } from '../design/States';
import { FigureOverTime } from './FigureOverTime';
import { DotLegend } from './DotChart';
import { DriftStateBadge } from './DriftStateBadge';
import { useBaseline, useBaselineComparisons } from './baseline';
import { chartedRuns, dots, driftHeadline, figureOf, figures, hasFigures, maxDots, toChartedRun } from './model';

/** Drift shows how a figure of a template's runs changed over time, with the baseline. */
export function Drift({ template }: { template: string }) {
  const [param, setFigure] = useParam('figure', figures[0].value);
  const figure = figureOf(param);
  const runs = useRuns({ template_id: template, status: ['COMPLETED'], limit: 50 });
  const baseline = useBaseline(template);
  const base = baseline.data?.run_id ?? null;
  const old = base !== null && runs.data !== undefined && !runs.data.runs?.some((r) => r.run_id === base);
  const detail = useQuery({
    queryKey: ['run', base],
    queryFn: ({ signal }) => api.get('/api/runs/{id}', { path: { id: base! }, signal }),
    enabled: old,
  });
  const list = useMemo(() => {
    const newest = runs.data?.runs ?? [];
    return chartedRuns(
      newest,
      newest.find((r) => r.run_id === base) ?? (old && detail.data ? toChartedRun(detail.data) : null),
    );
  }, [runs.data, base, old, detail.data]);
  const ids = useMemo(() => list.map((r) => r.run_id), [list]);
  const against = useBaselineComparisons(base, ids);
  const shown = useMemo(
    () => dots(list, base, (base && against.data) || {}, figure.value),
    [list, base, against.data, figure],
  );
  const known = {
    data: runs.data && baseline.data !== undefined ? shown : undefined,
    error: runs.error ?? baseline.error,
    isPending: runs.isPending || baseline.isPending,
    refetch: () => Promise.all([runs.refetch(), baseline.refetch()]),
  };
  const waits = base !== null && against.isPending && list.length > 1;
  return (
    <FigureOverTime
      title={
        <Term
          tip={
            `The newest ${maxDots} completed runs of the template. A run counts as worse if its difference from the ` +
            'baseline exceeds 5 % and is not chance.'
          }
        >
          Drift over time
        </Term>
      }
      controls={<Segments label="Figure" value={figure.value} options={figures} onChange={setFigure} />}
      from={known}
      what="The runs of the template could not be read."
      empty={() =>
        !list.some(hasFigures) && (
          <Empty tight title="No completed runs yet">
            Each completed run of the template is a point here.
          </Empty>
        )
      }
      headline={(d) => (waits ? 'Comparing the runs with the baseline.' : driftHeadline(d, figure.label))}
      label={figure.label}
      format={figure.format}
      legend={<DotLegend />}
      table="The runs as a table"
      more={[
        { head: 'Difference', num: true, cell: (d) => (d.metric ? difference(d.metric) : '–') },
        { head: 'Interval', num: true, cell: (d) => (d.metric && interval(d.metric)) || '–' },
        {
          head: 'Against the baseline',
          cell: (d) => (
            <>
              <DriftStateBadge of={d.state} reason={d.metric?.reason} />{' '}
              {base && d.state !== 'baseline' && (
                <Link href={`/compare?runs=${base},${d.run.run_id}`} aria-label={`Compare ${d.run.test_name}`}>
                  Compare
                </Link>
              )}
            </>
          ),
        },
      ]}
    />
  );
}
