import { queryOptions, useQuery } from '@tanstack/react-query';
import { api } from '../api/client';
import { bounds, type Span } from '../api/queries';
import { ofRun, type Point } from '../api/types';
import { fromPoint, type Sample, type Series } from './series';

/** What a run's history says: the samples that have load, and how many seconds one stands for at most. */
export interface History extends Series {
  resolution: number;
}

/** The samples of points of history that have load; each point stands for span seconds, start is as in fromPoint. */
export const samples = (points: Point[], start: number, span: number): Sample[] =>
  points
    .map((p) => fromPoint(p, start, span))
    .filter((s) => s.phase !== 'PREPARING' && s.phase !== 'PROCESSING' && s.phase !== '');

/** The key of a run's history: its samples count their seconds from start. */
export const historyKey = (id: string, start: number) => ['timeseries', id, start];

/**
 * What is asked for a run's history, second by second, or in a long run in steps of several seconds; of a part of it
 * only, when one is given. start is the run's, in Unix milliseconds. Points are kept as samples only, so that a page
 * holds them once. They stay the objects that they are when others take their place: those that a cache makes anew,
 * field by field, to share what is equal take three times the memory, of thousands of samples.
 */
export const historyQuery = (id: string, start: number, part: Span | null = null) =>
  queryOptions({
    queryKey: [...historyKey(id, start), ...(part ? [Math.floor(part.from), Math.ceil(part.to)] : [])],
    queryFn: async ({ signal }): Promise<History> => {
      const r = await api.get('/api/runs/{id}/timeseries', { path: { id }, query: bounds(part), signal });
      return { samples: samples(ofRun(r.points), start, r.resolution_seconds), resolution: r.resolution_seconds };
    },
    staleTime: Number.POSITIVE_INFINITY,
    structuralSharing: false,
  });

/** The history of a run, as historyQuery says. */
export const useHistory = (id: string, enabled: boolean, start: number, part: Span | null = null) =>
  useQuery({ ...historyQuery(id, start, part), enabled });
