import type { RunDetail } from '../api/types';
import { Notice } from '../design/States';
import { useRecordProblems } from './taken';

/** How many parts are named. */
const listed = 5;

/** The parts of the record that were lost or damaged when the run was taken into the results database. */
export function RecordProblems({ run }: { run: RunDetail }) {
  const taken = useRecordProblems(run);
  if (!taken?.problems.length) return null;
  const { problems, parts } = taken;
  return (
    <Notice tone="warn">
      <strong>
        {problems.length} of {parts} parts of the record could not be read.
      </strong>{' '}
      Tables and queries have the rest.
      <ul>
        {problems.slice(0, listed).map((p) => (
          <li key={p}>{p}</li>
        ))}
        {problems.length > listed && <li>and {problems.length - listed} more</li>}
      </ul>
    </Notice>
  );
}
