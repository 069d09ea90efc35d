import type { Beginning } from '../api/types';
import { latency, plain } from '../design/format';

/** startTimingText describes when a worker's load started, and its clock error. */
export function startTimingText(b: Beginning): string {
  const late =
    b.start_late_ms > 0
      ? `The load began ${plain(latency(b.start_late_ms))} after the planned start.`
      : 'The load began on time.';
  const where = b.node_id === 'local' ? "the server's own node" : b.node_id;
  return b.clock_error_ms === null
    ? `${late} The clock error of ${where} is unknown.`
    : `${late} The clock of ${where} differs from the server's by at most ${plain(latency(b.clock_error_ms))}.`;
}
