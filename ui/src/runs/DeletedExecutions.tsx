import type { RunDetail } from '../api/types';
import { dateTime } from '../design/format';
import { Notice } from '../design/States';

/** DeletedExecutions says that a run's single executions were deleted. */
export function DeletedExecutions({ run }: { run: RunDetail }) {
  if (!run.executions_deleted_at) return null;
  return (
    <Notice>
      The single executions of this run were deleted on {dateTime(run.executions_deleted_at)}
      {run.executions_deleted_by ? ` by ${run.executions_deleted_by}` : ''}. Its figures, charts and log remain. It
      cannot be replayed or compared second by second.
    </Notice>
  );
}
