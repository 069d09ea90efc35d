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
      ? `Operations in flight get ${duration(drain)} to end; those that have not ended by then are cancelled`
      : 'Operations in flight are cancelled at once'
  } and count as failed.${open ? ' What is due and has not begun is dropped, and counted.' : ''}`;

/** stopText says what stopping the run does, and when. */
export function stopText(scenario: Scenario, status: Status, phase: Phase | null): string {
  const drain = drainSeconds(scenario);
  if (status === 'RUNNING' && (!phase || phase === 'PREPARING'))
    return 'The set-up is cancelled, and no load begins. The run cannot be resumed.';
  const open = scenario.workload.load_mode === 'QPS';
  const first =
    status === 'STOPPING' ? 'It takes no new operation any more.' : 'It takes no new operation from now on.';
  return (
    `${first} ${inFlight(drain, open)} What it has measured is kept; it ends as cancelled, at the latest ` +
    `about ${duration(drain + 10)} from now, and cannot be resumed.`
  );
}

/** stopMatrixText is stopText for a matrix, of which only the workload is known. */
export const stopMatrixText = (scenario: Pick<Scenario, 'workload'> | undefined): string =>
  'The run under way takes no new operation. ' +
  `${inFlight(drainSeconds(scenario), scenario?.workload.load_mode === 'QPS')} The targets after it are ` +
  'not run.';
