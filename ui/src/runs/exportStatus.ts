import { useQuery } from '@tanstack/react-query';
import { api } from '../api/client';
import type { RunDetail } from '../api/types';

/** pollInterval and maxPolls: a run without a row after a minute gets none. */
const pollInterval = 5_000;
const maxPolls = 12;

/** useExportRow reads one JSON value of a finished run from the results database; null without one. */
function useExportRow(run: RunDetail, what: string, sql: string, changes?: (value: unknown) => boolean): unknown {
  const late = !!run.end_time && Date.now() - Date.parse(run.end_time) > 10 * 60_000;
  const exportRow = useQuery({
    queryKey: [what, run.run_id],
    queryFn: ({ signal }) =>
      api.post('/api/query', {
        body: { sql: `SELECT to_json(x) AS ${what} FROM (${sql}) x`, max_rows: 1 },
        signal,
      }),
    retry: false,
    // The row appears seconds after the end, or never without derived tables.
    refetchInterval: (q) => {
      if (q.state.error) return false;
      const row = q.state.data?.rows[0];
      if (row) return changes?.(row[0]) ? 3 * pollInterval : false;
      return late || q.state.dataUpdateCount >= maxPolls ? false : pollInterval;
    },
  });
  return exportRow.data?.columns[0]?.name === what ? (exportRow.data.rows[0]?.[0] ?? null) : null;
}

function text(value: string): string {
  return `'${value.replaceAll("'", "''")}'`;
}

/** RecordProblems lists what of the record could not be read at ingestion. */
export interface RecordProblems {
  problems: string[];
  parts: number;
}

export function useRecordProblems(run: RunDetail): RecordProblems | null {
  return useExportRow(
    run,
    'record_problems',
    `SELECT part_problems AS problems, parts FROM rollup.runs WHERE run_id = ${text(run.run_id)} AND NOT provisional`,
  ) as RecordProblems | null;
}

/** ExportStatus is the run's state in the results account after the last attempt. */
interface ExportStatus {
  connection: string;
  place: string;
  status: 'DONE' | 'FAILED';
  executions: number;
  views: string[];
  problem: string;
  noted_at: string;
}

export function useExportStatus(run: RunDetail): ExportStatus | null {
  return useExportRow(
    run,
    'in_account',
    'SELECT connection, place, status, executions, views, problem, noted_at FROM rollup.exports ' +
      `WHERE run_id = ${text(run.run_id)}`,
    (a) => (a as ExportStatus).status === 'FAILED', // it may be tried again
  ) as ExportStatus | null;
}

/** viewQuery selects the run's rows of a view in the account. */
export function viewQuery(place: string, view: string, runId: string): string {
  return `SELECT * FROM ${place}.${view} WHERE RUN_ID = ${text(runId)}`;
}
