import type { Health, Phase, Status, Verdict } from '../api/types';
import { capitalize, humanize } from './format';
import { Mark } from './icons';

type Shape = Parameters<typeof Mark>[0]['shape'];

const statuses: Record<Status, { tone: string; shape: Shape; label: string }> = {
  PREPARED: { tone: '', shape: 'ring', label: 'Prepared' },
  RUNNING: { tone: 'ok', shape: 'dot', label: 'Running' },
  STOPPING: { tone: 'warn', shape: 'half', label: 'Stopping' },
  CANCELLING: { tone: 'warn', shape: 'half', label: 'Cancelling' },
  COMPLETED: { tone: 'ok', shape: 'square', label: 'Completed' },
  FAILED: { tone: 'bad', shape: 'cross', label: 'Failed' },
  CANCELLED: { tone: '', shape: 'square', label: 'Cancelled' },
};

/** unmetThresholds counts a run's failed thresholds. */
export const unmetThresholds = (s: { thresholds?: { passed: boolean }[] | null } | null | undefined) =>
  s?.thresholds?.filter((t) => !t.passed).length ?? 0;

/** StatusBadge shows a run's status; a run with thresholds shows whether they passed. */
export function StatusBadge({
  status,
  passed,
  failed = 0,
  waits,
}: {
  status: Status;
  passed?: boolean | null;
  /** How many thresholds failed. A run without thresholds fails too when nothing succeeded. */
  failed?: number;
  /** What a started run waits for. */
  waits?: string;
}) {
  if (status === 'PREPARED' && waits) {
    return (
      <span className="badge warn" title={`The run ${waits}.`}>
        <Mark shape="ring" />
        Waiting
      </span>
    );
  }
  const s = statuses[status] ?? { tone: '', shape: 'ring' as const, label: status };
  if (status === 'COMPLETED' && passed === false) {
    return (
      <span
        className="badge bad"
        title={
          failed > 0
            ? 'The run completed; at least one threshold failed.'
            : 'The run completed, but no operation succeeded.'
        }
      >
        <Mark shape="triangle" />
        {failed > 0 ? 'Thresholds failed' : 'Nothing succeeded'}
      </span>
    );
  }
  return (
    <span className={`badge ${s.tone}`}>
      <Mark shape={s.shape} />
      {s.label}
    </span>
  );
}

const phaseTone: Record<Phase, string> = {
  '': '',
  PREPARING: '',
  WARMUP: 'warmup',
  MEASUREMENT: 'ok',
  COOLDOWN: 'warn',
  PROCESSING: '',
};

const phaseLabels: Record<Phase, string> = {
  '': 'Done',
  PREPARING: 'Preparing',
  WARMUP: 'Warm-up',
  MEASUREMENT: 'Measurement',
  COOLDOWN: 'Cool-down',
  PROCESSING: 'Processing',
};

export function phaseName(p: Phase | null): string {
  return phaseLabels[p ?? ''] ?? capitalize(humanize(p ?? ''));
}

export function PhaseBadge({ phase }: { phase: Phase | null }) {
  return (
    <span className={`badge ${phaseTone[phase ?? ''] ?? ''}`}>
      <Mark shape={phase === 'MEASUREMENT' ? 'dot' : phase === 'WARMUP' ? 'half' : 'ring'} />
      {phaseName(phase)}
    </span>
  );
}

export function HealthBadge({ health }: { health: Health }) {
  if (health === 'STALE')
    return (
      <span className="badge warn">
        <Mark shape="triangle" />
        Stale
      </span>
    );
  if (health === 'DEAD')
    return (
      <span className="badge bad">
        <Mark shape="cross" />
        Dead
      </span>
    );
  return (
    <span className="badge ok">
      <Mark shape="dot" />
      Healthy
    </span>
  );
}

/** StandInFlags say that something other than the database answered. */
interface StandInFlags {
  simulated?: boolean;
  emulated?: boolean;
}

/** standInLabel names the stand-in; '' for a real database. */
const standInLabel = (of: StandInFlags | null | undefined) =>
  of?.emulated ? 'emulated' : of?.simulated ? 'simulated' : '';

/**
 * VerdictBadge shows the validity verdict. of names whose figures they are: valid figures of a stand-in say nothing
 * about a database. short means that the measurement was too short to compare.
 */
export function VerdictBadge(props: { verdict: Verdict; of?: StandInFlags | null; short?: boolean }) {
  const { verdict, of, short } = props;
  const words = [standInLabel(of), short ? 'short' : ''].filter(Boolean).join(', ');
  const word = words && ` (${words})`;
  if (verdict === 'NONE')
    return (
      <span className="badge" title="The run ended before its measurement, so it has no verdict.">
        <Mark shape="ring" />
        None
      </span>
    );
  return verdict === 'VALID' ? (
    <span
      className="badge ok"
      title={
        `Nothing degrades these figures${standInLabel(of) ? ', which describe a stand-in' : ''}` +
        (short ? '. The measurement was shorter than 20 s, too short to compare with other runs.' : '.')
      }
    >
      <Mark shape="dot" />
      Valid{word}
    </span>
  ) : (
    <span className="badge warn" title="The figures may show the limit of the generator, not of the table.">
      <Mark shape="triangle" />
      Degraded{word}
    </span>
  );
}

/** SimulatedBadge says that a stand-in produced the figures. */
export function SimulatedBadge({ of }: { of?: StandInFlags | null }) {
  return of?.emulated ? (
    <span
      className="badge simulated"
      title="Another engine answered in place of the database. These figures describe that engine."
    >
      emulated
    </span>
  ) : (
    <span
      className="badge simulated"
      title="The load went to a simulated database. These figures say nothing about a real one."
    >
      simulated
    </span>
  );
}
