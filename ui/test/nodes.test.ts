import { describe, expect, it } from 'vitest';
import type { Needs, Node, NodeEvent } from '../src/api/types';
import { joinCommand, joinSteps } from '../src/nodes/Join';
import { expires, lanes, nodesSummary, nodeUsage, reserved, runsOn, usesLeft } from '../src/nodes/model';
import { question } from '../src/nodes/NodeTable';

const at = (minutes: number) => new Date(Date.UTC(2026, 10, 22, 12, minutes)).toISOString();
const ms = (minutes: number) => Date.parse(at(minutes));

const node = (id: string, more: Partial<Node> = {}): Node => ({
  node_id: id,
  address: `${id}:9090`,
  local: false,
  state: 'ACTIVE',
  since: at(0),
  reason: '',
  health: 'HEALTHY',
  wish: '',
  accepting_work: true,
  not_accepting_reason: '',
  version: '1',
  capacity: 100,
  used_connections: 0,
  rtt_ms: 1,
  heartbeat_timeout_ms: 500,
  missed_heartbeats: 0,
  clock_offset_ms: null,
  clock_error_ms: null,
  resources: null,
  last_contact: at(10),
  run_workers: [],
  ...more,
});

let seq = 0;
const event = (minute: number, id: string, more: Partial<NodeEvent>): NodeEvent => ({
  seq: ++seq,
  at: at(minute),
  node_id: id,
  server: 's1',
  kind: 'STATE',
  reason: '',
  by: '',
  ...more,
});

const course = (lane: { stateSpans: { state: string; from: number; to: number }[] } | undefined) =>
  lane?.stateSpans.map((s) => [s.state, (s.from - ms(0)) / 60_000, (s.to - ms(0)) / 60_000]);

describe('the time line of nodes', () => {
  const a = [
    event(1, 'a', { to: 'ACTIVE' }),
    event(4, 'a', { from: 'ACTIVE', to: 'UNREACHABLE' }),
    event(6, 'a', { kind: 'OPERATOR', reason: 'an operator has asked it to drain', by: 'ada' }),
    event(7, 'a', { from: 'UNREACHABLE', to: 'DRAINING' }),
  ];
  it('turns states into stretches, whatever the order of the events, and cuts them to the span', () => {
    const [lane] = lanes([node('a')], a.toReversed(), 's1', ms(2), ms(10));
    expect(course(lane)).toEqual([
      ['ACTIVE', 2, 4],
      ['UNREACHABLE', 4, 7],
      ['DRAINING', 7, 10],
    ]);
    expect(lane?.events.map((s) => s.event.by)).toEqual(['ada']);
  });
  it('begins with the state before the first event that is still known', () => {
    const [lane] = lanes([node('a')], a.slice(1), 's1', ms(2), ms(5));
    expect(course(lane)?.[0]).toEqual(['ACTIVE', 2, 4]);
  });
  it('leaves a gap where nobody saw the node, and shows nodes that are listed no more', () => {
    const [lane] = lanes([], a, 's1', ms(0), ms(3));
    expect(lane?.id).toBe('a');
    expect(course(lane)).toEqual([['ACTIVE', 1, 3]]);
  });
  it('believes the server that answers before others, and others where it saw nothing', () => {
    const other = [event(2, 'a', { server: 's2', to: 'UNREACHABLE' }), event(2, 'b', { server: 's2', to: 'ACTIVE' })];
    const [first, second] = lanes([node('a'), node('b')], [...a, ...other], 's1', ms(0), ms(3));
    expect(course(first)).toEqual([['ACTIVE', 1, 3]]);
    expect(course(second)).toEqual([['ACTIVE', 2, 3]]);
  });
  it('takes the state of now where the events are gone', () =>
    expect(course(lanes([node('a')], [], 's1', ms(2), ms(5))[0])).toEqual([['ACTIVE', 2, 5]]));
});

describe('a node in words', () => {
  it('says its room', () => {
    expect(nodeUsage(node('a', { used_connections: 25 }))).toEqual({ share: 0.25, label: '25 of 100 connections' });
    expect(nodeUsage(node('a', { used_connections: 25, capacity: 0 })).label).toBe('25 connections, no limit');
    expect(nodeUsage(node('a', { used_connections: 250 })).share).toBe(1);
  });
  it('names each run once', () => {
    const w = (run_id: string, run_name: string, worker_id: string) => ({
      run_id,
      run_name,
      worker_id,
      connections: 1,
    });
    expect(
      runsOn(
        node('a', { run_workers: [w('r', 'peak', 'worker-0'), w('r', 'peak', 'worker-1'), w('q', '', 'worker-0')] }),
      ),
    ).toEqual([
      { id: 'r', name: 'peak', workers: 2 },
      { id: 'q', name: 'q', workers: 1 },
    ]);
  });
  it('counts those that take work, and those that do not answer', () => {
    expect(nodesSummary([node('a')])).toBe('1 of 1 node takes work');
    const away = node('b', { state: 'UNREACHABLE', accepting_work: false });
    expect(nodesSummary([node('a'), away, node('c', { state: 'REMOVED', accepting_work: false })])).toBe(
      '1 of 2 nodes take work, 1 does not answer',
    );
  });
  it('asks by name, and says what is lost', () => {
    const w = { run_id: 'r', run_name: 'peak', worker_id: 'worker-0', connections: 1 };
    const q = question(node('a', { run_workers: [w] }), 'remove', () => {});
    expect(q.title).toBe('Remove a?');
    expect(q.body).toMatch(/^The node hosts 1 run worker now\. .*count as lost/);
    expect(question(node('a'), 'drain', () => {}).body).toMatch(/^Its current runs finish/);
  });
  it('says how the first node is added', () =>
    expect(joinSteps.map((s) => s.text).join('\n')).toMatch(
      /loadstone node token[\s\S]*loadstone worker [\s\S]*loadstone node add/,
    ));
});

describe('what runs hold on a node', () => {
  const needs = {
    nodes: [
      { node_id: 'a', reserved_connections: 12 },
      { node_id: 'local@s1', reserved_connections: 3 },
      { node_id: 'local@s2', reserved_connections: 5 },
    ],
  } as unknown as Needs;

  it('is found by the name in the ledger, where own nodes have their server behind them', () => {
    expect(reserved(node('a'), 's1', needs)).toBe(12);
    expect(reserved(node('local', { local: true }), 's1', needs)).toBe(3);
    expect(reserved(node('local', { local: true }), 's2', needs)).toBe(5);
  });

  it('is not known without an answer, or of a node that the ledger does not have', () => {
    expect(reserved(node('a'), 's1', undefined)).toBeNull();
    expect(reserved(node('b'), 's1', needs)).toBeNull();
  });
});

describe('tokens to join', () => {
  it('say how many nodes may still join', () => {
    expect(usesLeft({ uses: 1, used: 0 })).toBe('1 node may join');
    expect(usesLeft({ uses: 1000, used: 0 })).toBe('1,000 nodes may join');
    expect(usesLeft({ uses: 3, used: 2 })).toBe('1 node may join, 2 of 3 have');
    expect(usesLeft({ uses: 2, used: 3 })).toBe('0 nodes may join, 3 of 2 have');
  });
  it('say when they are over', () => {
    for (const [seconds, words] of [
      [-1, 'over'],
      [0, 'over'],
      [59, 'in less than a minute'],
      [3_599, 'in 59 min'],
      [7_199, 'in 119 min'],
      [7_200, 'in 2 h'],
      [172_800, 'in 2 days'],
    ] as const)
      expect(expires(new Date(ms(0) + seconds * 1000).toISOString(), ms(0))).toBe(words);
    expect(expires(null, ms(0))).toBe('never');
  });
  it('give the command with the secret', () =>
    expect(joinCommand('lsn_x')).toMatch(/^LOADSTONE_JOIN=lsn_x loadstone worker --listen HOST:9090 --data-dir /));
});
