import { describe, expect, test } from 'vitest';
import type { ScenarioDraft } from '../src/api/types';
import { firstInvalidLine } from '../src/templates/utf8';
import { unknownStatement, unknownStatementFindings } from '../src/templates/feedLines';
import { unknownTables } from '../src/templates/relations';
import { feedHasStatements, withFeed } from '../src/templates/resets';
import { replayProblem } from '../src/templates/RunPicker';

const row = (status: string, total_ops: number, feed?: unknown) =>
  ({ status, total_ops, scenario_config: { workload: { feed } } }) as Parameters<typeof replayProblem>[0];

test('only runs that can be replayed are offered', () => {
  expect(replayProblem(row('COMPLETED', 10))).toBe('');
  expect(replayProblem(row('CANCELLED', 10))).toBe('');
  expect(replayProblem(row('RUNNING', 10))).not.toBe('');
  expect(replayProblem(row('FAILED', 0))).not.toBe('');
  expect(replayProblem(row('COMPLETED', 5_000_001))).not.toBe('');
  expect(replayProblem(row('COMPLETED', 10, { csv: 'x' }))).not.toBe('');
  const kept = row('COMPLETED', 10);
  expect(replayProblem({ ...kept, executions_deleted_at: null })).toBe('');
  expect(replayProblem({ ...kept, executions_deleted_at: '2026-11-20T12:00:00Z' })).not.toBe('');
  // List rows have no feed.
  const listed = (plugin: string) =>
    ({ status: 'COMPLETED', total_ops: 10, scenario_config: { workload: { plugin } } }) as Parameters<
      typeof replayProblem
    >[0];
  expect(replayProblem(listed('sql'))).toBe('');
  expect(replayProblem(listed('replay'))).not.toBe('');
  expect(replayProblem(listed('replay@1.0.0'))).not.toBe('');
});

test('the line that is not UTF-8 is named', () => {
  const text = (s: string) => new TextEncoder().encode(s);
  expect(firstInvalidLine(text('0,find,ü\n1,find,2'))).toBe(0);
  expect(firstInvalidLine(new Uint8Array())).toBe(0);
  expect(firstInvalidLine(new Uint8Array([...text('0,a\n\n2,'), 0xff, 10, 0xff]))).toBe(3);
  expect(firstInvalidLine(new Uint8Array([...text('0,a\n'), 0xc3]))).toBe(2);
});

test('a recorded run has no statements beside it, and a file gets its own back', () => {
  const file = {
    workload: { feed: { csv: '0,find' }, params: { speed: 2, statements: [{ id: 'find' }] } },
  } as unknown as ScenarioDraft;
  const recorded = withFeed(file, { feed: { run: '' }, statements: 'of no run' });
  expect(recorded.workload).toEqual({ feed: { run: '' }, params: { speed: 2 } });
  expect(withFeed(recorded, { feed: { csv: '0,find' }, statements: [{ id: 'find' }] })).toEqual(file);
  expect([file, recorded, { workload: {} } as ScenarioDraft].map(feedHasStatements)).toEqual([false, true, true]);
  // A stored template with both shows both, so that one can be removed.
  expect(
    feedHasStatements({ workload: { feed: { run: 'x' }, params: { statements: [] } } } as unknown as ScenarioDraft),
  ).toBe(false);
});

describe('lines of a file that is replayed', () => {
  const ids = new Set(['find', 'note']);
  test('name statements that are there', () => {
    for (const text of [
      '',
      'at_ms,statement,values\n0,find,17\n5,BEGIN\r\n5, note ,99,seen again\r\n5,COMMIT\n',
      '\ufeff0,"find","a\nb,""c"",nothing\n"\n1,note,2',
      '{"at_ms": 0, "statement": "find", "values": [17]}\n\n{"at_ms": 1, "statement": "BEGIN"}\n{"at_ms"',
      '0\n1,find',
    ])
      expect(unknownStatement(text, ids), text).toBeNull();
  });
  test('are told by their number where one is not', () => {
    expect(unknownStatement('0,find,17\n1,fnd,2\n2,other', ids)).toEqual({ line: 2, name: 'fnd' });
    expect(unknownStatement('0,find,"a\nb"\n\n1,"fnd"', ids)).toEqual({ line: 4, name: 'fnd' });
    expect(unknownStatement('at_ms,statement\n1,statement', ids)).toEqual({ line: 2, name: 'statement' });
    expect(unknownStatement('\n{"at_ms": 0, "statement": "fnd"}', ids)).toEqual({ line: 2, name: 'fnd' });
  });
  test('are told with the one that was likely meant', () => {
    const found = (csv: string) => unknownStatementFindings({ csv }, [{ id: 'note' }, { id: 'find' }, 'no statement']);
    expect(found('0,fnd')).toEqual([
      { field: 'workload.feed.csv', message: 'line 1: there is no statement "fnd"', hint: 'did you mean "find"?' },
    ]);
    expect(found('0,x')[0]!.hint).toContain('add the statement below');
    expect(found('0,find')).toEqual([]);
    // The server's error about a malformed document suffices.
    expect(unknownStatementFindings({ csv: '0,x' }, undefined)).toEqual([]);
    expect(unknownStatementFindings({ run: 'x' }, [])).toEqual([]);
  });
});

describe('a table that is not there', () => {
  const catalog = {
    truncated: false,
    relations: [
      { schema: 'public', name: 'orders', columns: [] },
      { schema: 'sales', name: 'Items', columns: [] },
    ],
  };
  const of = (table_name: string, more: object = {}) =>
    ({ target: { connection: 'shop', table_name, ...more }, workload: {}, scaling: {} }) as unknown as ScenarioDraft;
  const found = (config: ScenarioDraft, sees: typeof catalog | undefined = catalog, several = false) =>
    unknownTables(config, (c) => (c === 'shop' ? sees : undefined), several);
  const hint = (name: string) => found(of(name))[0]?.hint;

  test('is told with the nearest', () => {
    expect(found(of('ordres'))[0]).toMatchObject({ field: 'target.table_name', warning: true });
    expect(hint('ordres')).toContain('"orders"');
    expect(hint('sales.itmes')).toContain('"sales.Items"');
    expect(hint('nothing_like_it')).toBe('the run checks again when it starts');
  });
  test('is told of each target of a matrix, by what its own connection sees', () => {
    const target = (connection: unknown, table_name: string, more = {}) => ({ connection, table_name, ...more });
    const config = {
      matrix: {
        targets: [
          target('shop', 'orders'),
          target('shop', 'ordres'),
          target('elsewhere', 'ordres'),
          target({ driver: 'postgres' }, 'ordres'),
          target('shop', 'ordres', { prepare: { rows: 5 } }),
        ],
      },
      workload: {},
      scaling: {},
    } as unknown as ScenarioDraft;
    expect(found(config).map((f) => f.field)).toEqual(['matrix.targets[1].table_name']);
    expect(found({ ...config, matrix: { targets: 5 } } as unknown as ScenarioDraft)).toEqual([]);
  });
  test('is not told of one that is', () => {
    for (const name of [
      'orders',
      'ORDERS',
      '"orders"',
      'public.orders',
      'shop.public.orders',
      'items',
      'sales.items',
      '',
    ])
      expect(found(of(name)), name).toEqual([]);
  });
  test('is not told where it is made, or not known', () => {
    expect(found(of('x', { prepare: { rows: 5 } }))).toEqual([]);
    expect(found(of('x'), catalog, true)).toEqual([]);
    expect(unknownTables(of('x'), () => undefined, false)).toEqual([]);
    expect(found(of('x'), { ...catalog, truncated: true })).toEqual([]);
  });
});
