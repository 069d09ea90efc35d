import { useQuery } from '@tanstack/react-query';
import { api } from '../api/client';
import type { RunDetail } from '../api/types';

/** A run that has no row after a minute has none later: milliseconds between two questions, and how many there are. */
const every = 5_000;
const mostAsked = 12;

/** What the results database knows of a run that is over: one value of JSON, or null while there is none. */
function useTaken(run: RunDetail, what: string, sql: string, changes?: (value: unknown) => boolean): unknown {
  const late = !!run.end_time && Date.now() - Date.parse(run.end_time) > 10 * 60_000;
  const taken = useQuery({
    queryKey: [what, run.run_id],
    queryFn: ({ signal }) =>
      api.post('/api/query', {
        body: { sql: `SELECT to_json(x) AS ${what} FROM (${sql}) x`, max_rows: 1 },
        signal,
      }),
    retry: false,
    // It is taken in some seconds after its end, or never, as where there are no derived tables.
    refetchInterval: (q) => {
      if (q.state.error) return false;
      const row = q.state.data?.rows[0];
      if (row) return changes?.(row[0]) ? 3 * every : false;
      return late || q.state.dataUpdateCount >= mostAsked ? false : every;
    },
  });
  return taken.data?.columns[0]?.name === what ? (taken.data.rows[0]?.[0] ?? null) : null;
}

function text(value: string): string {
  return `'${value.replaceAll("'", "''")}'`;
}

/** What of the record could not be read when the run was taken into the results database. */
export interface RecordProblems {
  problems: string[];
  parts: number;
}

export function useRecordProblems(run: RunDetail): RecordProblems | null {
  return useTaken(
    run,
    'record_problems',
    `SELECT part_problems AS problems, parts FROM rollup.runs WHERE run_id = ${text(run.run_id)} AND NOT provisional`,
  ) as RecordProblems | null;
}

/** What of the run is in the account of the results connection, as its last attempt left it. */
export interface InAccount {
  connection: string;
  place: string;
  status: 'DONE' | 'FAILED';
  executions: number;
  views: string[];
  problem: string;
  noted_at: string;
}

export function useInAccount(run: RunDetail): InAccount | null {
  return useTaken(
    run,
    'in_account',
    'SELECT connection, place, status, executions, views, problem, noted_at FROM rollup.exports ' +
      `WHERE run_id = ${text(run.run_id)}`,
    (a) => (a as InAccount).status === 'FAILED', // it may be tried again
  ) as InAccount | null;
}

/** The rows of the run in a table or view of the account. */
export function queryOf(place: string, view: string, runId: string): string {
  return `SELECT * FROM ${place}.${view} WHERE RUN_ID = ${text(runId)}`;
}
