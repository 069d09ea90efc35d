import type { RunDetail } from '../api/types';
import { Notice } from '../design/States';
import { useRecordProblems } from './exportStatus';

const maxListed = 5;

/** RecordProblems lists the record parts that were missing or damaged at ingestion. */
export function RecordProblems({ run }: { run: RunDetail }) {
  const record = useRecordProblems(run);
  if (!record?.problems.length) return null;
  const { problems, parts } = record;
  return (
    <Notice tone="warn">
      <strong>
        {problems.length} of {parts} parts of the record could not be loaded.
      </strong>{' '}
      Tables and queries contain the other parts.
      <ul>
        {problems.slice(0, maxListed).map((p) => (
          <li key={p}>{p}</li>
        ))}
        {problems.length > maxListed && <li>and {problems.length - maxListed} more</li>}
      </ul>
    </Notice>
  );
}
