import { useQuery } from '@tanstack/react-query';
import { api } from '../api/client';
import type { RunDetail, RunExport } from '../api/types';

/** pollInterval and maxPolls: a run without a record in the results database after a minute gets none. */
const pollInterval = 5_000;
const maxPolls = 12;

/** nextPoll is when to ask again: while nothing is there, and while an export that failed may be retried. */
export function nextPoll(data: RunExport | undefined, polls: number, late: boolean): number | false {
  if (data?.account?.status === 'FAILED') return 3 * pollInterval;
  if (data?.record && data.account) return false;
  return late || polls >= maxPolls ? false : pollInterval;
}

/** useRunExport is what has become of a finished run in the results database and in a results connection. */
function useRunExport(run: RunDetail): RunExport | null {
  const late = !!run.end_time && Date.now() - Date.parse(run.end_time) > 10 * 60_000;
  const status = useQuery({
    queryKey: ['run-export', run.run_id],
    queryFn: ({ signal }) => api.get('/api/runs/{id}/export', { path: { id: run.run_id }, signal }),
    retry: false,
    refetchInterval: (q) => (q.state.error ? false : nextPoll(q.state.data, q.state.dataUpdateCount, late)),
  });
  return status.data ?? null;
}

/** useRecordProblems lists what of the record could not be read at ingestion. */
export const useRecordProblems = (run: RunDetail) => useRunExport(run)?.record ?? null;

/** useExportStatus is the run's state in the results account after the last attempt. */
export const useExportStatus = (run: RunDetail) => useRunExport(run)?.account ?? null;

/** viewQuery selects the run's rows of a view in the account. */
export function viewQuery(place: string, view: string, runId: string): string {
  return `SELECT * FROM ${place}.${view} WHERE RUN_ID = '${runId.replaceAll("'", "''")}'`;
}
