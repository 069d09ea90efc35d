import { useQuery } from '@tanstack/react-query';
import { api } from '../api/client';
import type { RunDetail } from '../api/types';
import { Notice } from '../design/States';

/** A run that has no row after a minute has none later: milliseconds between two questions, and how many there are. */
const every = 5_000;
const mostAsked = 12;

/** The parts of the record that were lost or damaged when the run was taken into the results database. */
export function RecordProblems({ run }: { run: RunDetail }) {
  const id = run.run_id.replaceAll("'", "''");
  const taken = useQuery({
    queryKey: ['record-problems', run.run_id],
    queryFn: ({ signal }) =>
      api.post('/api/query', {
        body: {
          sql:
            'SELECT to_json(part_problems) AS part_problems, parts FROM rollup.runs ' +
            `WHERE run_id = '${id}' AND NOT provisional`,
          max_rows: 1,
        },
        signal,
      }),
    retry: false,
    // It is taken in some seconds after its end, or never, as where there are no derived tables.
    refetchInterval: (q) =>
      q.state.error || q.state.data?.rows.length || q.state.dataUpdateCount >= mostAsked ? false : every,
  });
  const [problems, parts] = taken.data?.columns[0]?.name === 'part_problems' ? (taken.data.rows[0] ?? []) : [];
  if (!Array.isArray(problems) || problems.length === 0) return null;
  const listed = 5;
  return (
    <Notice tone="warn">
      <strong>
        {problems.length} of {String(parts)} parts of the record could not be read.
      </strong>{' '}
      Tables and queries have the rest.
      <ul>
        {problems.slice(0, listed).map((p) => (
          <li key={String(p)}>{String(p)}</li>
        ))}
        {problems.length > listed && <li>and {problems.length - listed} more</li>}
      </ul>
    </Notice>
  );
}
