// What the nodes page draws, computed from what the server answers; no clock of its own.
import type { Needs, Node, NodeEvent } from '../api/types';

export type NodeState = Node['state'];

/** A stretch of time in which a node was in one state, in milliseconds since 1970. */
export interface Stretch {
  state: NodeState;
  from: number;
  to: number;
  reason: string;
}

/** What happened to a node at one moment besides changes of its state. */
export interface Sign {
  at: number;
  event: NodeEvent;
}

export interface Lane {
  id: string;
  stretches: Stretch[];
  signs: Sign[];
}

/**
 * The lanes of the time line between two moments, in the order of the nodes, then of those that
 * are not listed any more. Several servers each tell what they see: the server that answers is
 * believed where it saw the node itself. Where nobody saw a node there is a gap.
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
      stretches: stretches(all, server, now.get(id), from, to),
      signs: all
        .filter((e) => e.kind !== 'STATE')
        .map((e) => ({ at: Date.parse(e.at ?? ''), event: e }))
        .filter((s) => s.at >= from && s.at <= to),
    }))
    .filter((l) => l.stretches.length > 0 || l.signs.length > 0);
}

function stretches(all: NodeEvent[], server: string, now: Node | undefined, from: number, to: number): Stretch[] {
  const states = all.filter((e) => e.kind === 'STATE' && e.to);
  const own = states.filter((e) => e.server === server);
  const seen = own.length > 0 ? own : states;
  const found: Stretch[] = [];
  const add = (state: NodeState, a: number, b: number, reason: string) => {
    const s = { state, from: Math.max(a, from), to: Math.min(b, to), reason };
    if (s.to > s.from) found.push(s);
  };
  seen.forEach((e, i) => {
    const at = Date.parse(e.at ?? '');
    if (i === 0 && e.from) add(e.from, from, at, '');
    const next = seen[i + 1];
    // After a restart of the server the node is seen for the first time again: what was before is not known.
    add(e.to!, at, next ? Date.parse(next.at ?? '') : to, e.reason);
  });
  const since = now?.since ? Date.parse(now.since) : Number.NaN;
  if (now && seen.length === 0 && since) add(now.state, since, to, now.reason);
  return found;
}

/** The words for how much of a node is in use. */
export function room(n: Pick<Node, 'capacity' | 'used_connections'>): { share: number; words: string } {
  const used = n.used_connections.toLocaleString('en');
  if (n.capacity === 0) return { share: 0, words: `${used} connections, no limit` };
  return {
    share: Math.min(1, n.used_connections / n.capacity),
    words: `${used} of ${n.capacity.toLocaleString('en')} connections`,
  };
}

/** What runs of all servers hold on a node, by its name in the ledger; a server's own node has the server's name. */
export function reserved(n: Pick<Node, 'node_id' | 'local'>, server: string, needs: Needs | undefined): number | null {
  const name = n.local ? `${n.node_id}@${server}` : n.node_id;
  return needs?.nodes?.find((r) => r.node_id === name)?.reserved_connections ?? null;
}

/** The runs on a node, each once, with how many run workers it has there. */
export function runsOn(n: Node): { id: string; name: string; workers: number }[] {
  const found = new Map<string, { id: string; name: string; workers: number }>();
  for (const w of n.run_workers ?? []) {
    const run = found.get(w.run_id) ?? { id: w.run_id, name: w.run_name || w.run_id, workers: 0 };
    run.workers++;
    found.set(w.run_id, run);
  }
  return [...found.values()];
}

/** One sentence about all nodes, for the head of the page. */
export function summary(nodes: Node[]): string {
  const remote = nodes.filter((n) => n.state !== 'REMOVED');
  const take = remote.filter((n) => n.accepting_work).length;
  const away = remote.filter((n) => ['UNREACHABLE', 'PROBING', 'CONNECTING'].includes(n.state)).length;
  const parts = [`${take} of ${remote.length} ${remote.length === 1 ? 'node takes' : 'nodes take'} work`];
  if (away > 0) parts.push(`${away} ${away === 1 ? 'does' : 'do'} not answer`);
  return parts.join(', ');
}

/** How many nodes may still join with a token. */
export function usesLeft(t: { uses: number; used: number }): string {
  const left = Math.max(t.uses - t.used, 0);
  const may = `${left.toLocaleString('en')} ${left === 1 ? 'node' : 'nodes'} may join`;
  return t.used > 0 ? `${may}, ${t.used.toLocaleString('en')} of ${t.uses.toLocaleString('en')} have` : may;
}

/** When something is over, seen from now. */
export function expires(iso: string | null | undefined, now: number): string {
  if (!iso) return 'never';
  const s = (Date.parse(iso) - now) / 1000;
  if (s <= 0) return 'over';
  if (s < 60) return 'in less than a minute';
  if (s < 2 * 3600) return `in ${Math.floor(s / 60)} min`;
  if (s < 2 * 86400) return `in ${Math.floor(s / 3600)} h`;
  return `in ${Math.floor(s / 86400)} days`;
}
