import { queryOptions, useQuery } from '@tanstack/react-query';
import { api } from '../api/client';
import { rangeParams, type Span } from '../api/queries';
import { type Point, runPoints } from '../api/types';
import { fromPoint, type Sample, type Series } from './series';

/** History is the samples under load, and the maximum seconds per sample. */
export interface History extends Series {
  resolution: number;
}

/** samples converts points that have load; span is the seconds per point, start as in fromPoint. */
export const samples = (points: Point[], start: number, span: number): Sample[] =>
  points
    .map((p) => fromPoint(p, start, span))
    .filter((s) => s.phase !== 'PREPARING' && s.phase !== 'PROCESSING' && s.phase !== '');

/** historyKey contains start: samples count their seconds from it. */
export const historyKey = (id: string, start: number) => ['timeseries', id, start];

/**
 * historyQuery loads a run's history by second, or by several seconds in a long run; optionally only a part. start is
 * the run's, in Unix milliseconds. Only samples are kept, without structural sharing: copies of thousands of samples
 * take three times the memory.
 */
export const historyQuery = (id: string, start: number, part: Span | null = null) =>
  queryOptions({
    queryKey: [...historyKey(id, start), ...(part ? [Math.floor(part.from), Math.ceil(part.to)] : [])],
    queryFn: async ({ signal }): Promise<History> => {
      const r = await api.get('/api/runs/{id}/timeseries', { path: { id }, query: rangeParams(part), signal });
      return { samples: samples(runPoints(r.points), start, r.resolution_seconds), resolution: r.resolution_seconds };
    },
    staleTime: Number.POSITIVE_INFINITY,
    structuralSharing: false,
  });

export const useHistory = (id: string, enabled: boolean, start: number, part: Span | null = null) =>
  useQuery({ ...historyQuery(id, start, part), enabled });
