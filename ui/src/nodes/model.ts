// What the nodes page draws, as pure functions without a clock.
import type { Needs, Node, NodeEvent } from '../api/types';

export type NodeState = Node['state'];

/** StateSpan is a time in which a node was in one state, in Unix milliseconds. */
interface StateSpan {
  state: NodeState;
  from: number;
  to: number;
  reason: string;
}

/** LaneEvent is a node event other than a state change. */
interface LaneEvent {
  at: number;
  event: NodeEvent;
}

interface Lane {
  id: string;
  stateSpans: StateSpan[];
  events: LaneEvent[];
}

/**
 * lanes are the time line lanes: listed nodes first, then removed ones. Servers may disagree: the answering server's
 * own observations win. Times nobody observed are gaps.
 */
export function lanes(nodes: Node[], events: NodeEvent[], server: string, from: number, to: number): Lane[] {
  const byNode = new Map<string, NodeEvent[]>();
  for (const n of nodes) if (n.node_id) byNode.set(n.node_id, []);
  for (const e of [...events].sort((a, b) => a.seq - b.seq)) {
    const list = byNode.get(e.node_id);
    if (list) list.push(e);
    else byNode.set(e.node_id, [e]);
  }
  const now = new Map(nodes.map((n) => [n.node_id, n]));
  return [...byNode]
    .map(([id, all]) => ({
      id,
      stateSpans: stateSpans(all, server, now.get(id), from, to),
      events: all
        .filter((e) => e.kind !== 'STATE')
        .map((e) => ({ at: Date.parse(e.at ?? ''), event: e }))
        .filter((s) => s.at >= from && s.at <= to),
    }))
    .filter((l) => l.stateSpans.length > 0 || l.events.length > 0);
}

function stateSpans(all: NodeEvent[], server: string, now: Node | undefined, from: number, to: number): StateSpan[] {
  const states = all.filter((e) => e.kind === 'STATE' && e.to);
  const own = states.filter((e) => e.server === server);
  const relevant = own.length > 0 ? own : states;
  const found: StateSpan[] = [];
  const add = (state: NodeState, a: number, b: number, reason: string) => {
    const s = { state, from: Math.max(a, from), to: Math.min(b, to), reason };
    if (s.to > s.from) found.push(s);
  };
  relevant.forEach((e, i) => {
    const at = Date.parse(e.at ?? '');
    if (i === 0 && e.from) add(e.from, from, at, '');
    const next = relevant[i + 1];
    // After a server restart the earlier state is unknown.
    add(e.to!, at, next ? Date.parse(next.at ?? '') : to, e.reason);
  });
  const since = now?.since ? Date.parse(now.since) : Number.NaN;
  if (now && relevant.length === 0 && since) add(now.state, since, to, now.reason);
  return found;
}

/** nodeUsage describes how much of a node is in use. */
export function nodeUsage(n: Pick<Node, 'capacity' | 'used_connections'>): { share: number; label: string } {
  const used = n.used_connections.toLocaleString('en');
  if (n.capacity === 0) return { share: 0, label: `${used} connections, no limit` };
  return {
    share: Math.min(1, n.used_connections / n.capacity),
    label: `${used} of ${n.capacity.toLocaleString('en')} connections`,
  };
}

/** reserved is what runs of all servers reserve on a node, by its ledger name; a local node has the server's name. */
export function reserved(n: Pick<Node, 'node_id' | 'local'>, server: string, needs: Needs | undefined): number | null {
  const name = n.local ? `${n.node_id}@${server}` : n.node_id;
  return needs?.nodes?.find((r) => r.node_id === name)?.reserved_connections ?? null;
}

/** runsOn lists a node's runs with their number of run workers. */
export function runsOn(n: Node): { id: string; name: string; workers: number }[] {
  const found = new Map<string, { id: string; name: string; workers: number }>();
  for (const w of n.run_workers ?? []) {
    const run = found.get(w.run_id) ?? { id: w.run_id, name: w.run_name || w.run_id, workers: 0 };
    run.workers++;
    found.set(w.run_id, run);
  }
  return [...found.values()];
}

/** nodesSummary is the page's one-sentence summary. */
export function nodesSummary(nodes: Node[]): string {
  const remote = nodes.filter((n) => n.state !== 'REMOVED');
  const take = remote.filter((n) => n.accepting_work).length;
  const unreachable = remote.filter((n) => ['UNREACHABLE', 'PROBING', 'CONNECTING'].includes(n.state)).length;
  const parts = [`${take} of ${remote.length} ${remote.length === 1 ? 'node takes' : 'nodes take'} work`];
  if (unreachable > 0) parts.push(`${unreachable} ${unreachable === 1 ? 'does' : 'do'} not answer`);
  return parts.join(', ');
}

/** usesLeft says how many nodes may still join with a token. */
export function usesLeft(t: { uses: number; used: number }): string {
  const left = Math.max(t.uses - t.used, 0);
  const may = `${left.toLocaleString('en')} ${left === 1 ? 'node' : 'nodes'} may join`;
  return t.used > 0 ? `${may}, ${t.used.toLocaleString('en')} of ${t.uses.toLocaleString('en')} have` : may;
}

/** expires formats an expiry relative to now. */
export function expires(iso: string | null | undefined, now: number): string {
  if (!iso) return 'never';
  const s = (Date.parse(iso) - now) / 1000;
  if (s <= 0) return 'over';
  if (s < 60) return 'in less than a minute';
  if (s < 2 * 3600) return `in ${Math.floor(s / 60)} min`;
  if (s < 2 * 86400) return `in ${Math.floor(s / 3600)} h`;
  return `in ${Math.floor(s / 86400)} days`;
}
