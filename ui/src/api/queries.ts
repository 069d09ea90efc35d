import { QueryClient, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { api, Problem } from './client';
import {
  type Artifact,
  asWorkerPoints,
  type Enrichment,
  isLive,
  isTerminal,
  type LogEntry,
  type RunCreateBody,
  type RunDetail,
  type RunRow,
  type Status,
} from './types';

export const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      refetchOnWindowFocus: false,
      // A rejected request is not retried; a silent server is.
      retry: (n, err) => n < 2 && err instanceof Problem && (err.status === 0 || err.status >= 502),
      networkMode: 'always',
    },
    mutations: { networkMode: 'always' },
  },
});

export const useMe = () =>
  useQuery({
    queryKey: ['me'],
    queryFn: ({ signal }) => api.get('/api/auth/me', { signal }).then((r) => r.user),
    staleTime: 60_000,
  });

/** useHasRole reports whether the user has at least this role; true until it is known. */
export function useHasRole(needs: 'operator' | 'admin'): boolean {
  const role = useMe().data?.role;
  return role === undefined || role === 'admin' || role === needs;
}

export const useInfo = () =>
  useQuery({ queryKey: ['info'], queryFn: ({ signal }) => api.get('/api/info', { signal }), staleTime: 60_000 });

export type RunSort =
  | 'created'
  | 'name'
  | 'qps'
  | 'p50_ms'
  | 'p95_ms'
  | 'p99_ms'
  | 'error_rate'
  | 'total_ops'
  | 'length'
  | 'ended'
  | 'status'
  | 'validity'
  | 'created_by'
  | 'connections';

export interface RunFilter {
  status?: Status[];
  template_id?: string;
  search?: string;
  since?: string;
  until?: string;
  /** Each as key:value; a run must have all of them. */
  tag?: string[];
  thresholds?: 'passed' | 'failed';
  sort?: RunSort;
  order?: 'asc' | 'desc';
  limit?: number;
  cursor?: string;
}

export const useRuns = (filter: RunFilter, refetchInterval?: number, enabled = true) =>
  useQuery({
    enabled,
    queryKey: ['runs', filter],
    queryFn: ({ signal }) => api.get('/api/runs', { query: filter, signal }),
    placeholderData: (before) => before,
    refetchInterval,
  });

/** useLastRuns is the newest run of each template, by template. */
export const useLastRuns = () =>
  useQuery({
    queryKey: ['runs', 'latest of template'],
    queryFn: async ({ signal }) => {
      const all = new Map<string, RunRow>();
      for (let cursor: string | undefined, page = 0; page < 20; page++) {
        const list = await api.get('/api/runs', { query: { latest_of_template: true, limit: 200, cursor }, signal });
        for (const r of list.runs ?? []) if (r.template_id) all.set(r.template_id, r);
        if (!list.next_cursor) break;
        cursor = list.next_cursor;
      }
      return all;
    },
  });

const liveStatuses: Status[] = ['RUNNING', 'STOPPING', 'CANCELLING'];

/** useLiveRuns lists runs with load, for the rail and the home page. */
export const useLiveRuns = () => useRuns({ status: liveStatuses, limit: 20 }, 3_000);

/** useNodeDemand returns what the runs of all servers need of nodes, and which of them wait. */
export const useNodeDemand = (enabled: boolean) =>
  useQuery({
    queryKey: ['scaling'],
    queryFn: ({ signal }) => api.get('/api/v1/scaling', { signal }),
    enabled,
    refetchInterval: 2_000,
  });

export const useRun = (id: string, linked: boolean, enabled = true) =>
  useQuery({
    queryKey: ['run', id],
    enabled,
    queryFn: ({ signal }) => api.get('/api/runs/{id}', { path: { id }, signal }),
    refetchInterval: (q) => {
      const run = q.state.data;
      if (!run || q.state.error) return q.state.error ? 5_000 : false;
      if (run.status === 'PREPARED') return 3_000;
      const again = run.enrichment?.aggregate?.next_poll_at;
      // Hours later the server reads the account again; this shows the result.
      if (!isLive(run) && again) return Math.min(Math.max(Date.parse(again) - Date.now() + 5_000, 5_000), 600_000);
      if (!isLive(run)) return run.summary || run.stop_reason === 'setup_failure' ? false : 5_000;
      // Figures arrive while the run is processed; the enrichment may take minutes more.
      if (isTerminal(run.status) && !run.summary) return 1_000;
      return linked ? false : 2_000;
    },
  });

/** Span is part of a run, in elapsed seconds. */
export interface Span {
  from: number;
  to: number;
}

export const rangeParams = (part: Span | null) =>
  part ? { from_seconds: Math.max(0, Math.floor(part.from) - 5), until_seconds: Math.ceil(part.to) + 5 } : {};

/**
 * useWorkerSeries returns the seconds of every run worker, optionally from an elapsed second on. A live run adds its
 * own seconds, so nothing is fetched again as time passes.
 */
export const useWorkerSeries = (id: string, enabled: boolean, from?: number) =>
  useQuery({
    queryKey: ['worker-series', id, ...(from === undefined ? [] : ['late'])],
    queryFn: ({ signal }) =>
      api
        .get('/api/runs/{id}/timeseries', { path: { id }, query: { worker_id: '*', from_seconds: from }, signal })
        .then((r) => asWorkerPoints(r.points)),
    enabled,
    staleTime: Number.POSITIVE_INFINITY,
  });

const logPage = 1000;

export const useLogs = (id: string, enabled: boolean) =>
  useQuery({
    queryKey: ['logs', id],
    queryFn: async ({ signal }) => {
      const all: LogEntry[] = [];
      for (let after = 0, page = 0; page < 10; page++) {
        const r = await api.get('/api/runs/{id}/logs', { path: { id }, query: { after, limit: logPage }, signal });
        const logs = r.logs ?? [];
        all.push(...logs);
        const last = logs.at(-1)?.seq ?? after;
        if (logs.length < logPage || last <= after) break;
        after = last;
      }
      return all;
    },
    enabled,
    staleTime: Number.POSITIVE_INFINITY,
  });

export const useTemplates = () =>
  useQuery({
    queryKey: ['templates'],
    queryFn: ({ signal }) => api.get('/api/templates', { signal }).then((r) => r.templates ?? []),
  });

export const useTemplate = (id: string | null) =>
  useQuery({
    queryKey: ['template', id],
    queryFn: ({ signal }) => api.get('/api/templates/{id}', { path: { id: id! }, signal, asStored: true }),
    enabled: id !== null,
    // The editor holds the user's copy; a refetch must not replace it.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });

export const useConnections = () =>
  useQuery({
    queryKey: ['connections'],
    queryFn: ({ signal }) => api.get('/api/connections', { signal }).then((r) => r.connections ?? []),
  });

export const usePlugins = () =>
  useQuery({
    queryKey: ['plugins'],
    queryFn: ({ signal }) => api.get('/api/plugins', { signal }).then((r) => r.plugins ?? []),
    staleTime: 60_000,
  });

/** usePlugin returns one plugin with all it declares; the list omits the statements. */
export const usePlugin = (sha256: string | null) =>
  useQuery({
    queryKey: ['plugins', sha256],
    queryFn: ({ signal }) => api.get('/api/plugins/{name}', { path: { name: sha256! }, signal }),
    enabled: sha256 !== null,
    staleTime: 60_000,
  });

export const useTokens = () =>
  useQuery({
    queryKey: ['tokens'],
    queryFn: ({ signal }) => api.get('/api/auth/tokens', { signal }).then((r) => r.tokens),
  });

export const useSessions = () =>
  useQuery({
    queryKey: ['sessions'],
    queryFn: ({ signal }) => api.get('/api/auth/tokens', { query: { kind: 'session' }, signal }).then((r) => r.tokens),
  });

export const useUsers = (enabled: boolean) =>
  useQuery({
    queryKey: ['users'],
    enabled: enabled,
    queryFn: ({ signal }) => api.get('/api/users', { signal }).then((r) => r.users),
  });

interface NewRun extends RunCreateBody {
  /** A template with several targets: creates a run for each. */
  matrix?: boolean;
}

/** useCreateRun creates a run, or the runs of a matrix; path is the page that shows it. */
export function useCreateRun() {
  const qc = useQueryClient();
  return useMutation({
    mutationFn: async ({ matrix, ...body }: NewRun) =>
      matrix
        ? { path: `/matrix/${(await api.post('/api/matrices', { body })).matrix_id}` }
        : { path: `/runs/${(await api.post('/api/runs', { body })).run_id}` },
    // Not awaited: the new list may unmount the button that waits for this response.
    onSuccess: () => void qc.invalidateQueries({ queryKey: ['runs'] }),
  });
}

export function useRunAction(id: string) {
  const qc = useQueryClient();
  return useMutation({
    mutationFn: (act: 'start' | 'stop') => api.post(`/api/runs/{id}/${act}`, { path: { id } }),
    onSettled: () =>
      Promise.all([qc.invalidateQueries({ queryKey: ['run', id] }), qc.invalidateQueries({ queryKey: ['runs'] })]),
  });
}

/** useEnrichmentAction starts or stops reading the target's query history. */
export function useEnrichmentAction(id: string) {
  const qc = useQueryClient();
  return useMutation({
    mutationFn: (act: 'retry' | 'stop') => api.post(`/api/runs/{id}/enrichment/${act}`, { path: { id } }),
    onSettled: () => qc.invalidateQueries({ queryKey: ['run', id] }),
  });
}

/** useEnrichment polls the enrichment of a finished run while it is in progress. */
export const useEnrichment = (id: string, from: Enrichment, enabled: boolean) =>
  useQuery({
    queryKey: ['enrichment', id, from.started_at, from.status],
    queryFn: ({ signal }) => api.get('/api/runs/{id}/enrichment', { path: { id }, signal }),
    initialData: from,
    enabled,
    refetchInterval: (q) => (['PENDING', 'RUNNING'].includes(q.state.data?.status ?? '') ? 1_000 : false),
  });

/** useArtifacts returns all parts of a run's record; the run itself has the first page. */
export function useArtifacts(run: RunDetail): Artifact[] {
  const first = run.artifacts ?? [];
  const total = run.artifacts_total ?? first.length;
  const rest = useQuery({
    queryKey: ['artifacts', run.run_id, total],
    queryFn: async ({ signal }) => {
      const more: Artifact[] = [];
      for (let after = first.at(-1)?.name ?? ''; first.length + more.length < total;) {
        const page = await api.get('/api/runs/{id}/artifacts', {
          path: { id: run.run_id },
          query: { after, limit: 1000 },
          signal,
        });
        if (!page.artifacts?.length) break;
        more.push(...page.artifacts);
        after = page.last_name;
      }
      return more;
    },
    enabled: first.length < total,
    staleTime: Number.POSITIVE_INFINITY,
  });
  return [...first, ...(rest.data ?? [])];
}

/** useWarehouse returns the warehouse polls of a run, or of part of it; a live run adds its own. */
export const useWarehouse = (id: string, enabled: boolean, part: Span | null = null) =>
  useQuery({
    queryKey: ['warehouse', id, ...(part ? [Math.floor(part.from), Math.ceil(part.to)] : [])],
    queryFn: ({ signal }) =>
      api
        .get('/api/runs/{id}/warehouse', { path: { id }, query: rangeParams(part), signal })
        .then((r) => ({ points: r.points ?? [], slots: r.slots ?? [], resolution: r.resolution_seconds })),
    enabled,
    staleTime: Number.POSITIVE_INFINITY,
  });
