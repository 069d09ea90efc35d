import type { Node } from '../api/types';
import { Mark } from '../design/icons';
import type { NodeState } from './model';

type Shape = Parameters<typeof Mark>[0]['shape'];

const states: Record<NodeState, { tone: string; shape: Shape; label: string; color: string }> = {
  ACTIVE: { tone: 'ok', shape: 'dot', label: 'Active', color: 'var(--ok)' },
  DRAINING: { tone: 'warn', shape: 'half', label: 'Draining', color: 'var(--warn-mark)' },
  PROBING: { tone: 'bad', shape: 'triangle', label: 'Probing', color: 'var(--e-3)' },
  UNREACHABLE: { tone: 'bad', shape: 'cross', label: 'Unreachable', color: 'var(--bad-mark)' },
  CONNECTING: { tone: '', shape: 'ring', label: 'Connecting', color: 'var(--line-strong)' },
  REMOVED: { tone: '', shape: 'square', label: 'Removed', color: 'var(--text-3)' },
};

export const stateColor = (s: NodeState) => states[s]?.color ?? 'var(--line-strong)';
export const stateLabel = (s: NodeState) => states[s]?.label ?? s;

/** NodeStateBadge shows a node's state and its reason. */
export function NodeStateBadge({ node }: { node: Pick<Node, 'state' | 'reason'> }) {
  const s = states[node.state] ?? { tone: '', shape: 'ring' as const, label: node.state };
  return (
    <span className={`badge ${s.tone}`} title={node.reason}>
      <Mark shape={s.shape} />
      {s.label}
    </span>
  );
}
