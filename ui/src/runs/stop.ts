import { duration } from '../design/format';
import type { Phase, Scenario, Status } from '../api/types';

/** What a user's stop leaves to operations in flight, in seconds, unless the template says. */
const usual = 5;

export const drainSeconds = (s: Pick<Scenario, 'workload'> | undefined): number => {
  const stop = s?.workload.stop as { drain_seconds?: number | null } | null | undefined;
  return stop?.drain_seconds ?? usual;
};

const inFlight = (drain: number, open: boolean) =>
  `${
    drain > 0
      ? `Operations in flight get ${duration(drain)} to end; those that have not ended by then are cancelled`
      : 'Operations in flight are cancelled at once'
  } and count as failed.${open ? ' What is due and has not begun is dropped, and counted.' : ''}`;

/** What stopping the run does, and when. */
export function stopWords(scenario: Scenario, status: Status, phase: Phase | null): string {
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

/** The same for a matrix, of whose run under way only the workload is known. */
export const stopMatrixWords = (scenario: Pick<Scenario, 'workload'> | undefined): string =>
  'The run under way takes no new operation. ' +
  `${inFlight(drainSeconds(scenario), scenario?.workload.load_mode === 'QPS')} The targets after it are ` +
  'not run.';
