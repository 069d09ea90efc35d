import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { api, asProblem, Problem } from '../api/client';
import type { Comparison } from '../api/types';
import { useToast } from '../design/Toast';
import { problemText } from '../design/sentences';

/** tolerance is the percentage below which there is no difference, as on the Compare page. */
const tolerance = 5;

/** useBaseline is the baseline of a template; null without one. */
export const useBaseline = (template: string | null) =>
  useQuery({
    queryKey: ['baseline', template],
    queryFn: async ({ signal }) => {
      try {
        return (await api.get('/api/templates/{id}/baseline', { path: { id: template! }, signal })) ?? null;
      } catch (e) {
        // The template was deleted.
        if (e instanceof Problem && e.status === 404) return null;
        throw e;
      }
    },
    enabled: template !== null,
  });

/** useSetBaseline sets or, without a run, removes a template's baseline. */
export function useSetBaseline(template: string) {
  const qc = useQueryClient();
  const toast = useToast();
  return useMutation({
    mutationFn: (run: string | null) =>
      run
        ? api.put('/api/templates/{id}/baseline', { path: { id: template }, body: { run_id: run } })
        : api.remove('/api/templates/{id}/baseline', { path: { id: template } }),
    onSuccess: (_, run) => {
      void qc.invalidateQueries({ queryKey: ['baseline', template] });
      toast(run ? 'This run is now the baseline of its template.' : 'The template no longer has a baseline.', 'ok');
    },
    onError: (e) => {
      const p = asProblem(e);
      toast(problemText(p), 'bad');
    },
  });
}

const comparison = (base: string, id: string) => ({
  queryKey: ['compare', base, id, tolerance],
  queryFn: ({ signal }: { signal: AbortSignal }): Promise<Comparison> =>
    api.get('/api/compare', { query: { a: [base], b: [id], tolerance_pct: tolerance }, signal }),
  staleTime: Number.POSITIVE_INFINITY,
});

/** useBaselineComparison compares a run with its baseline. */
export const useBaselineComparison = (base: string | null, id: string) =>
  useQuery({ ...comparison(base ?? '', id), enabled: base !== null && base !== id });

/**
 * useBaselineComparisons compares runs one after another: the server limits concurrent comparisons. A run that cannot
 * be compared is null.
 */
export function useBaselineComparisons(base: string | null, ids: string[]) {
  const qc = useQueryClient();
  return useQuery({
    queryKey: ['compare-many', base, ids],
    queryFn: async ({ signal }) => {
      const all: Record<string, Comparison | null> = {};
      for (const id of ids) {
        if (signal.aborted) break;
        if (id !== base) all[id] = await qc.fetchQuery(comparison(base!, id)).catch(() => null);
      }
      return all;
    },
    enabled: base !== null && ids.length > 0,
    staleTime: Number.POSITIVE_INFINITY,
    placeholderData: (before) => before,
  });
}
