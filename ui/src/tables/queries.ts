import { useQuery, useQueryClient } from '@tanstack/react-query';
import { api } from '../api/client';

/** useTables polls all derived tables, the queue and the claims. */
export const useTables = () =>
  useQuery({
    queryKey: ['tables'],
    queryFn: ({ signal }) => api.get('/api/v1/tables', { signal }),
    refetchInterval: 2_000,
  });

export const useTable = (name: string) =>
  useQuery({
    queryKey: ['tables', name],
    queryFn: ({ signal }) => api.get('/api/v1/tables/{name}', { path: { name }, signal }),
    refetchInterval: 2_000,
  });

/** useEditedTable loads a table unmodified, and does not refetch under the editor. */
export const useEditedTable = (name: string | null) =>
  useQuery({
    queryKey: ['edited-table', name],
    queryFn: ({ signal }) => api.get('/api/v1/tables/{name}', { path: { name: name! }, signal, asStored: true }),
    enabled: name !== null,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });

export const useRefreshes = (name: string) =>
  useQuery({
    queryKey: ['tables', name, 'history'],
    queryFn: ({ signal }) =>
      api
        .get('/api/v1/tables/{name}/history', { path: { name }, query: { limit: 100 }, signal })
        .then((r) => r.refreshes),
    refetchInterval: 4_000,
  });

/** useCatalog lists relations for completion. */
export const useCatalog = () =>
  useQuery({
    queryKey: ['query-catalog'],
    queryFn: ({ signal }) => api.get('/api/v1/query-catalog', { signal }).then((r) => r.relations),
    staleTime: 30_000,
  });

export const useSavedQueries = () =>
  useQuery({
    queryKey: ['saved-queries'],
    queryFn: ({ signal }) => api.get('/api/v1/queries', { signal, asStored: true }).then((r) => r.queries),
  });

/** useTablesChanged refetches everything about tables. */
export function useTablesChanged() {
  const qc = useQueryClient();
  return () =>
    Promise.all([['tables'], ['query-catalog']].map((queryKey) => qc.invalidateQueries({ queryKey }))).then(() => {});
}
