import { Mark } from '../design/icons';
import type { Standing as Known } from './model';

const marks: Record<Known, { tone: string; shape: Parameters<typeof Mark>[0]['shape']; words: string }> = {
  baseline: { tone: '', shape: 'square', words: 'baseline' },
  better: { tone: 'ok', shape: 'triangle', words: 'better' },
  worse: { tone: 'bad', shape: 'cross', words: 'worse' },
  same: { tone: '', shape: 'dot', words: 'same' },
  unclear: { tone: 'warn', shape: 'half', words: 'unclear' },
  unknown: { tone: '', shape: 'ring', words: 'not compared' },
};

/** How a run stands beside the baseline, in a word and a shape. */
export function Standing({ of, reason }: { of: Known; reason?: string }) {
  const m = marks[of];
  return (
    <span className={`badge ${m.tone}`} title={reason || undefined}>
      <Mark shape={m.shape} />
      {m.words}
    </span>
  );
}
