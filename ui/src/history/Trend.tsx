import { useQueries } from '@tanstack/react-query';
import { useMemo } from 'react';
import { api } from '../api/client';
import { type RunFilter, useRuns } from '../api/queries';
import type { RunRow } from '../api/types';
import { Icon } from '../design/icons';
import { Empty } from '../design/States';
import { FigureOverTime } from '../drift/FigureOverTime';
import { figureOf, figures, trackedDetail, trackedRow, trend, trendHeadline } from './figures';

/** maxRuns limits the drawn runs to the newest. */
const maxRuns = 50;

/** Trend draws a figure over the selected runs, or over those of the filter with fewer than two. */
export function Trend(props: {
  name: string;
  filter: RunFilter;
  picked: string[];
  visible: RunRow[];
  onChange: (figure: string) => void;
}) {
  const { filter, picked, visible } = props;
  const figure = figureOf(props.name) ?? figures[0]!;
  const marked = picked.length >= 2;
  const newest = useRuns({ ...filter, sort: 'created', order: 'desc', limit: maxRuns, cursor: undefined });
  const offPage = marked ? picked.filter((id) => !visible.some((r) => r.run_id === id)) : [];
  const details = useQueries({
    queries: offPage.map((id) => ({
      queryKey: ['run-trend', id],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        api.get('/api/runs/{id}', { path: { id }, signal }).then(trackedDetail),
      staleTime: 60_000,
    })),
    combine: (list) => ({
      data: list.flatMap((q) => q.data ?? []),
      error: list.find((q) => q.error)?.error ?? null,
      isPending: list.some((q) => q.isPending),
      refetch: () => Promise.all(list.filter((q) => q.error).map((q) => q.refetch())),
    }),
  });
  const rows = newest.data?.runs;
  const dots = useMemo(
    () =>
      trend(
        marked
          ? [...visible.filter((r) => picked.includes(r.run_id)).map(trackedRow), ...details.data]
          : (rows ?? []).map(trackedRow),
        figure,
      ),
    [marked, visible, picked, details.data, rows, figure],
  );
  const from = marked
    ? {
        // Deleted selected runs are skipped.
        data: details.isPending ? undefined : dots,
        error: dots.length === 0 ? details.error : null,
        isPending: details.isPending,
        refetch: details.refetch,
      }
    : {
        data: newest.data ? dots : undefined,
        error: newest.error,
        isPending: newest.isPending,
        refetch: newest.refetch,
      };
  const total = newest.data?.total ?? 0;
  const of = marked
    ? `${picked.length} selected runs`
    : total > maxRuns
      ? `the newest ${maxRuns} of ${total} runs`
      : 'the listed runs';
  return (
    <FigureOverTime
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
          <Empty tight title={`No listed run has the figure ${figure.label}`}>
            The chart shows finished runs that sent operations.
          </Empty>
        )
      }
      headline={(d) => trendHeadline(d, figure)}
      label={figure.label}
      format={figure.format}
      table="The trend as a table"
    />
  );
}
