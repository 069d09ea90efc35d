// Nodes of the mock: as many as POST /mock/nodes {count} sets, one of them unreachable.
import type { Node, NodeEvent } from '../src/api/types';
import { iso } from './data';
import { Refusal } from './refusal';

const minute = 60_000;
const started = Date.now();
let count = 3;

const named = (i: number) => `bench-${String(i + 1).padStart(2, '0')}-${(7919 * (i + 3)).toString(16)}`;
const desiredStates = new Map<string, Node['wish']>();
const requestedEvents: NodeEvent[] = [];

export const setNodes = (n: number) => ((count = n), {});

function local(): Node {
  return {
    ...one(0),
    node_id: 'local',
    address: '',
    local: true,
    state: 'ACTIVE',
    reason: 'it has introduced itself',
    health: 'HEALTHY',
    not_accepting_reason: '',
    accepting_work: true,
    capacity: 8192,
    used_connections: 0,
    run_workers: [],
    wish: '',
    version: '',
    clock_offset_ms: null,
    clock_error_ms: null,
  };
}

function one(i: number): Node {
  const id = named(i);
  const wish = desiredStates.get(id) ?? '';
  const away = i === 1;
  const state: Node['state'] = wish === 'REMOVE' ? 'REMOVED' : away ? 'UNREACHABLE' : wish ? 'DRAINING' : 'ACTIVE';
  const reason =
    state === 'UNREACHABLE'
      ? 'its stream has broken; no route to host'
      : state === 'ACTIVE'
        ? 'it has introduced itself'
        : `an operator has ${state === 'REMOVED' ? 'removed it' : 'asked it to drain'}`;
  const out = state === 'ACTIVE' ? '' : reason;
  const busy = i % 3 === 0;
  return {
    node_id: id,
    address: `10.0.0.${i + 7}:9090`,
    local: false,
    state,
    since: iso(started - (away ? 4 : 40) * minute),
    reason,
    health: away ? 'DEAD' : 'HEALTHY',
    wish,
    accepting_work: state === 'ACTIVE',
    not_accepting_reason: out,
    version: i % 5 === 4 ? '0.1.0' : '0.2.0',
    capacity: i % 7 === 6 ? 0 : 4096 * ((i % 3) + 1),
    used_connections: busy && !away ? 1500 + 240 * i : 0,
    rtt_ms: away ? null : 0.31 + i * 0.07,
    heartbeat_timeout_ms: 501,
    missed_heartbeats: away ? 3 : 0,
    clock_offset_ms: away ? null : i % 4 === 0 ? -1.2 : 0.4 * i,
    clock_error_ms: away ? null : 0.2,
    resources: away
      ? null
      : {
          cpu_pct: busy ? 61 : 1,
          memory_pct: 9,
          memory_bytes: 410e6,
          host_cpu_pct: busy ? 93 : 4,
          host_memory_pct: 31,
          gc_pause_max_ms: 0.2,
          stood_still_ms: 0,
          goroutines: 40,
        },
    last_contact: iso(Date.now() - (away ? 4 * minute : 500)),
    run_workers: busy
      ? [
          { run_id: 'r-live', run_name: 'checkout peak', worker_id: `worker-${i}`, connections: 1500 },
          { run_id: 'r-live', run_name: 'checkout peak', worker_id: `worker-${i + 1}`, connections: 240 * i },
        ]
      : [],
  };
}

export const listNodes = () => ({
  server: 's1',
  at: iso(Date.now()),
  nodes: [local(), ...Array.from({ length: count }, (_, i) => one(i))],
});

export function setDesiredState(id: string, verb: string): Node {
  const i = Array.from({ length: count }, (_, at) => named(at)).indexOf(id);
  if (i < 0) throw new Refusal(404, 'not_found', `There is no node "${id}".`);
  desiredStates.set(id, verb === 'drain' ? 'DRAIN' : verb === 'remove' ? 'REMOVE' : '');
  const reason = { drain: 'an operator has asked it to drain', remove: 'an operator has removed it' }[verb];
  requestedEvents.unshift({
    seq: 100_000 + requestedEvents.length,
    at: iso(Date.now()),
    node_id: id,
    server: 's1',
    kind: 'OPERATOR',
    reason: reason ?? 'an operator lets it take work again',
    by: 'admin',
  });
  return one(i);
}

let tokens = [
  { token_id: 't-fleet', created_by: 'admin', uses: 12, used: 5, created_at: iso(started - 50 * minute), for: 86_400 },
  { token_id: 't-one', created_by: 'mara', uses: 1, used: 0, created_at: iso(started - 2 * minute), for: 3_600 },
].map(({ for: seconds, ...t }) => ({ ...t, expires_at: iso(Date.parse(t.created_at) + seconds * 1000) }));

export const nodeTokens = () => ({ tokens: count > 0 ? tokens : [] });

export function makeNodeToken(body: { uses?: number; valid_seconds?: number }) {
  const t = {
    token_id: `t-${tokens.length}-${Date.now()}`,
    created_by: 'admin',
    uses: body.uses ?? 1,
    used: 0,
    created_at: iso(Date.now()),
    expires_at: iso(Date.now() + (body.valid_seconds ?? 3_600) * 1000),
  };
  tokens = [t, ...tokens];
  return { ...t, secret: 'lsn_4Yt0mXkQnL2vB7cD9eF1gH3jK5pR8sT6' };
}

export function endNodeToken(id: string) {
  if (!tokens.some((t) => t.token_id === id)) throw new Refusal(404, 'not_found', 'There is no such token.');
  tokens = tokens.filter((t) => t.token_id !== id);
  return null;
}

export function nodeEvents() {
  const course: NodeEvent[] = [];
  const add = (at: number, id: string, from: NodeEvent['from'], to: NodeEvent['to'], reason: string) =>
    course.push({ seq: 0, at: iso(at), node_id: id, server: 's1', kind: 'STATE', from, to, reason, by: '' });
  add(started - 55 * minute, 'local', undefined, 'ACTIVE', 'it has introduced itself');
  for (let i = 0; i < count; i++) {
    add(started - (50 - (i % 9)) * minute, named(i), undefined, 'ACTIVE', 'it has introduced itself');
    if (i % 3 === 2) {
      add(started - 30 * minute, named(i), 'ACTIVE', 'DRAINING', 'an operator has asked it to drain');
      add(started - 22 * minute, named(i), 'DRAINING', 'ACTIVE', 'it has introduced itself');
    }
    if (i === 1) {
      add(started - 5 * minute, named(i), 'ACTIVE', 'PROBING', '3 heartbeats in a row had no answer');
      add(started - 4 * minute, named(i), 'PROBING', 'UNREACHABLE', 'its stream has broken');
    }
  }
  course.sort((a, b) => Date.parse(b.at ?? '') - Date.parse(a.at ?? ''));
  return { events: [...requestedEvents, ...course.map((e, i) => ({ ...e, seq: course.length - i }))] };
}
