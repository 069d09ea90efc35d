import { useQueries } from '@tanstack/react-query';
import { useMemo } from 'react';
import { api } from '../api/client';
import { type RunFilter, useRuns } from '../api/queries';
import type { RunRow } from '../api/types';
import { Icon } from '../design/icons';
import { Empty } from '../design/States';
import { OverTime } from '../drift/OverTime';
import { figureOf, figures, ofDetail, ofRow, said, trend } from './figures';

/** So many runs are drawn, the newest that the filters find. */
const most = 50;

/** How one figure moved over the marked runs or, with fewer than two, over those that the filters find. */
export function Trend(props: {
  name: string;
  filter: RunFilter;
  picked: string[];
  shown: RunRow[];
  onChange: (figure: string) => void;
}) {
  const { filter, picked, shown } = props;
  const figure = figureOf(props.name) ?? figures[0]!;
  const marked = picked.length >= 2;
  const found = useRuns({ ...filter, sort: 'created', order: 'desc', limit: most, cursor: undefined });
  const away = marked ? picked.filter((id) => !shown.some((r) => r.run_id === id)) : [];
  const details = useQueries({
    queries: away.map((id) => ({
      queryKey: ['run-trend', id],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        api.get('/api/runs/{id}', { path: { id }, signal }).then(ofDetail),
      staleTime: 60_000,
    })),
    combine: (list) => ({
      data: list.flatMap((q) => q.data ?? []),
      error: list.find((q) => q.error)?.error ?? null,
      isPending: list.some((q) => q.isPending),
      refetch: () => Promise.all(list.filter((q) => q.error).map((q) => q.refetch())),
    }),
  });
  const rows = found.data?.runs;
  const dots = useMemo(
    () =>
      trend(
        marked
          ? [...shown.filter((r) => picked.includes(r.run_id)).map(ofRow), ...details.data]
          : (rows ?? []).map(ofRow),
        figure,
      ),
    [marked, shown, picked, details.data, rows, figure],
  );
  const from = marked
    ? {
        // A marked run may have been deleted: the others are drawn.
        data: details.isPending ? undefined : dots,
        error: dots.length === 0 ? details.error : null,
        isPending: details.isPending,
        refetch: details.refetch,
      }
    : { data: found.data ? dots : undefined, error: found.error, isPending: found.isPending, refetch: found.refetch };
  const total = found.data?.total ?? 0;
  const of = marked
    ? `${picked.length} marked runs`
    : total > most
      ? `the newest ${most} of ${total} runs`
      : 'the runs of the list';
  return (
    <OverTime
      title={
        <>
          Trend <span className="muted">of {of}</span>
        </>
      }
      controls={
        <>
          <select
            className="input auto"
            aria-label="Figure of the trend"
            value={figure.value}
            onChange={(e) => props.onChange(e.target.value)}
          >
            {figures.map((f) => (
              <option key={f.value} value={f.value}>
                {f.label}
              </option>
            ))}
          </select>
          <button
            type="button"
            className="btn quiet icon"
            aria-label="Close the trend"
            title="Close the trend"
            onClick={() => props.onChange('')}
          >
            <Icon name="close" />
          </button>
        </>
      }
      from={from}
      what="The runs could not be read."
      empty={(d) =>
        d.length === 0 && (
          <Empty tight title={`No run here has the figure ${figure.label}`}>
            Runs that are over and have sent operations are drawn.
          </Empty>
        )
      }
      says={(d) => said(d, figure)}
      label={figure.label}
      format={figure.format}
      table="The trend as a table"
    />
  );
}
