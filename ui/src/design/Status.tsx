import type { Health, Phase, Status, Verdict } from '../api/types';
import { sentence, words } from './format';
import { Mark } from './icons';

type Shape = Parameters<typeof Mark>[0]['shape'];

const statuses: Record<Status, { tone: string; shape: Shape; word: string }> = {
  PREPARED: { tone: '', shape: 'ring', word: 'Prepared' },
  RUNNING: { tone: 'ok', shape: 'dot', word: 'Running' },
  STOPPING: { tone: 'warn', shape: 'half', word: 'Stopping' },
  CANCELLING: { tone: 'warn', shape: 'half', word: 'Cancelling' },
  COMPLETED: { tone: 'ok', shape: 'square', word: 'Completed' },
  FAILED: { tone: 'bad', shape: 'cross', word: 'Failed' },
  CANCELLED: { tone: '', shape: 'square', word: 'Cancelled' },
};

/** How many of a run's thresholds were not met. */
export const unmet = (s: { thresholds?: { passed: boolean }[] | null } | null | undefined) =>
  s?.thresholds?.filter((t) => !t.passed).length ?? 0;

/** A run's status as shape, word and colour. A judged run says whether its thresholds passed. */
export function StatusBadge({
  status,
  passed,
  failed = 0,
  waits,
}: {
  status: Status;
  passed?: boolean | null;
  /** How many thresholds were not met: a run without any has not passed either when nothing of it succeeded. */
  failed?: number;
  /** What a prepared run waits for that was started. */
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
  const s = statuses[status] ?? { tone: '', shape: 'ring' as const, word: status };
  if (status === 'COMPLETED' && passed === false) {
    return (
      <span
        className="badge bad"
        title={
          failed > 0
            ? 'The run completed; at least one threshold failed.'
            : 'The run completed, and no operation of its measurement succeeded.'
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
      {s.word}
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

const phaseWord: Record<Phase, string> = {
  '': 'Done',
  PREPARING: 'Preparing',
  WARMUP: 'Warm-up',
  MEASUREMENT: 'Measurement',
  COOLDOWN: 'Cool-down',
  PROCESSING: 'Processing',
};

export function phaseName(p: Phase | null): string {
  return phaseWord[p ?? ''] ?? sentence(words(p ?? ''));
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

/** What says of itself that a stand-in answered in the database's place. */
interface OfStandIn {
  simulated?: boolean;
  emulated?: boolean;
}

/** The word for what answered in the database's place, empty when the database did. */
export const standIn = (of: OfStandIn | null | undefined) =>
  of?.emulated ? 'emulated' : of?.simulated ? 'simulated' : '';

/**
 * The verdict; of says whose figures it is about, because valid ones of a stand-in are none of the database, and short
 * that they were measured for too short a time to be held against others.
 */
export function VerdictBadge(props: { verdict: Verdict; of?: OfStandIn | null; short?: boolean }) {
  const { verdict, of, short } = props;
  const words = [standIn(of), short ? 'short' : ''].filter(Boolean).join(', ');
  const word = words && ` (${words})`;
  if (verdict === 'NONE')
    return (
      <span className="badge" title="The run ended before its measurement: there is nothing to judge.">
        <Mark shape="ring" />
        None
      </span>
    );
  return verdict === 'VALID' ? (
    <span
      className="badge ok"
      title={
        `Nothing degrades these figures${standIn(of) ? ', as those of a stand-in' : ''}` +
        (short ? ', but they were measured for less than 20 s: too short to be held against others.' : '.')
      }
    >
      <Mark shape="dot" />
      Valid{word}
    </span>
  ) : (
    <span className="badge warn" title="The figures may show the generator's limit rather than the table's.">
      <Mark shape="triangle" />
      Degraded{word}
    </span>
  );
}

/** Says that a stand-in gave these figures: they say nothing about a real database. */
export function SimulatedBadge({ of }: { of?: OfStandIn | null }) {
  return of?.emulated ? (
    <span
      className="badge simulated"
      title="Another engine answered in the database's place. These figures are its own."
    >
      emulated
    </span>
  ) : (
    <span
      className="badge simulated"
      title="A stand-in that models the database was under load. These figures say nothing about a real one."
    >
      simulated
    </span>
  );
}
