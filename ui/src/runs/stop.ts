import { duration } from '../design/format';
import type { Phase, Scenario, Status } from '../api/types';

/** defaultDrainSeconds is how long a user's stop waits for operations in flight, unless the template sets it. */
const defaultDrainSeconds = 5;

const drainSeconds = (s: Pick<Scenario, 'workload'> | undefined): number => {
  const stop = s?.workload.stop as { drain_seconds?: number | null } | null | undefined;
  return stop?.drain_seconds ?? defaultDrainSeconds;
};

const inFlight = (drain: number, open: boolean) =>
  `${
    drain > 0
      ? `Operations in flight get ${duration(drain)} to finish and are then cancelled`
      : 'Operations in flight are cancelled at once'
  } and count as failed.${open ? ' Scheduled operations that have not started are dropped and counted.' : ''}`;

/** stopText says what stopping the run does, and when. */
export function stopText(scenario: Scenario, status: Status, phase: Phase | null): string {
  const drain = drainSeconds(scenario);
  if (status === 'RUNNING' && (!phase || phase === 'PREPARING'))
    return 'This cancels the preparation. No load starts, and the run cannot be resumed.';
  const open = scenario.workload.load_mode === 'QPS';
  const first = status === 'STOPPING' ? 'The run starts no new operations.' : 'The run will start no new operations.';
  return (
    `${first} ${inFlight(drain, open)} Its measurements are kept. It ends as cancelled within ` +
    `about ${duration(drain + 10)} and cannot be resumed.`
  );
}

/** stopMatrixText is stopText for a matrix, of which only the workload is known. */
export const stopMatrixText = (scenario: Pick<Scenario, 'workload'> | undefined): string =>
  'The current run starts no new operations. ' +
  `${inFlight(drainSeconds(scenario), scenario?.workload.load_mode === 'QPS')} The remaining targets are ` +
  'skipped.';
