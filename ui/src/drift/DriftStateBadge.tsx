import { Mark } from '../design/icons';
import type { DriftState as Known } from './model';

const marks: Record<Known, { tone: string; shape: Parameters<typeof Mark>[0]['shape']; label: string }> = {
  baseline: { tone: '', shape: 'square', label: 'baseline' },
  better: { tone: 'ok', shape: 'triangle', label: 'better' },
  worse: { tone: 'bad', shape: 'cross', label: 'worse' },
  same: { tone: '', shape: 'dot', label: 'same' },
  unclear: { tone: 'warn', shape: 'half', label: 'unclear' },
  unknown: { tone: '', shape: 'ring', label: 'not compared' },
};

/** DriftStateBadge shows a run's verdict against the baseline. */
export function DriftStateBadge({ of, reason }: { of: Known; reason?: string }) {
  const m = marks[of];
  return (
    <span className={`badge ${m.tone}`} title={reason || undefined}>
      <Mark shape={m.shape} />
      {m.label}
    </span>
  );
}
