import type { Beginning } from '../api/types';
import { latency, plain } from '../design/format';

/** startTimingText describes when a worker's load started, and its clock error. */
export function startTimingText(b: Beginning): string {
  const late =
    b.start_late_ms > 0
      ? `Its load began ${plain(latency(b.start_late_ms))} after the instant that START named.`
      : 'Its load began when START said.';
  const where = b.node_id === 'local' ? "the server's own node" : b.node_id;
  return b.clock_error_ms === null
    ? `${late} How far the clock of ${where} is off is not known.`
    : `${late} Its times, on ${where}, are the server's to within ${plain(latency(b.clock_error_ms))}.`;
}
