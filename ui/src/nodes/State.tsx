import type { Node } from '../api/types';
import { Mark } from '../design/icons';
import type { NodeState } from './model';

type Shape = Parameters<typeof Mark>[0]['shape'];

const states: Record<NodeState, { tone: string; shape: Shape; word: string; color: string }> = {
  ACTIVE: { tone: 'ok', shape: 'dot', word: 'Active', color: 'var(--ok)' },
  DRAINING: { tone: 'warn', shape: 'half', word: 'Draining', color: 'var(--warn-mark)' },
  PROBING: { tone: 'bad', shape: 'triangle', word: 'Probing', color: 'var(--e-3)' },
  UNREACHABLE: { tone: 'bad', shape: 'cross', word: 'Unreachable', color: 'var(--bad-mark)' },
  CONNECTING: { tone: '', shape: 'ring', word: 'Connecting', color: 'var(--line-strong)' },
  REMOVED: { tone: '', shape: 'square', word: 'Removed', color: 'var(--text-3)' },
};

export const stateColor = (s: NodeState) => states[s]?.color ?? 'var(--line-strong)';
export const stateWord = (s: NodeState) => states[s]?.word ?? s;

/** A node's state as shape, word and colour, and why. */
export function NodeStateBadge({ node }: { node: Pick<Node, 'state' | 'reason'> }) {
  const s = states[node.state] ?? { tone: '', shape: 'ring' as const, word: node.state };
  return (
    <span className={`badge ${s.tone}`} title={node.reason}>
      <Mark shape={s.shape} />
      {s.word}
    </span>
  );
}
