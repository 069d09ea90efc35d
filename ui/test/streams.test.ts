import { describe, expect, it } from 'vitest';
import type { StreamCatalog, StreamQuery } from '../src/api/types';
import { gallery, queriesOf } from '../src/streams/gallery';
import { streamCompletions } from '../src/streams/language';
import {
  explainRequest,
  lagOf,
  lossCounts,
  planDiagram,
  queryDiagram,
  quotedName,
  shiftErrors,
  splitFailure,
  statementsOf,
} from '../src/streams/model';

const texts = (sql: string) => statementsOf(sql).map(({ from, to }) => sql.slice(from, to));

describe('statements of a text', () => {
  it('are divided by semicolons that stand in no text, name or comment', () => {
    expect(texts('CREATE SINK a; -- one; two\nSELECT \';\' AS "x;y", `z;` /* ; */ FROM a;\n;')).toEqual([
      'CREATE SINK a',
      'SELECT \';\' AS "x;y", `z;` /* ; */ FROM a',
    ]);
    expect(texts("SELECT 'it''s; \\'; ' FROM a; SHOW QUERIES")).toHaveLength(2);
    expect(texts(' -- nothing\n')).toEqual([]);
  });
});

describe('explaining', () => {
  it('takes the last query, and leaves lines and columns where they are', () => {
    const sql = 'CREATE SINK s TYPE PRINT;\nCREATE QUERY q AS SELECT a\nFROM b INTO s; SHOW SINKS';
    const asked = explainRequest(sql, [])!;
    expect(asked.sql.trim()).toBe('EXPLAIN SELECT a\nFROM b');
    expect(asked.sql.indexOf('SELECT')).toBe(sql.indexOf('SELECT'));
    expect(asked.shift).toBe(0);
    // An existing sink is part of the explained statement.
    expect(explainRequest(sql, ['S'])!.sql).toMatch(/INTO s$/);
  });
  it('puts errors back where there was no room', () => {
    const asked = explainRequest('-- a remark\nSELECT x FROM y', [])!;
    expect(asked.sql).toBe('           \nEXPLAIN SELECT x FROM y');
    const error = (line: number, column: number) => ({ field: 'sql', message: 'no', line, column });
    expect(shiftErrors([error(2, 16), error(3, 16)], asked).map((e) => e.column)).toEqual([8, 16]);
  });
  it('has nothing to say of other statements', () => expect(explainRequest('DROP SINK s', ['s'])).toBeNull());
});

it('tells a failure and its hint apart', () => {
  expect(splitFailure('NetworkError: no\n  hint: put that right')).toEqual(['NetworkError: no', 'Put that right.']);
  expect(splitFailure('it is gone')).toEqual(['it is gone', '']);
});

it('writes names as statements have to', () => {
  expect(quotedName('too_slow')).toBe('too_slow');
  expect(quotedName('my "rule"; DROP')).toBe('"my ""rule""; DROP"');
});

it('draws a plan from the sources to the last step', () => {
  const p = planDiagram([
    'Project a',
    '  Join b',
    '    Scan x',
    '    Scan y',
    'Fragment on server, physical sources 1',
  ]);
  expect(p.boxes.map((b) => [b.title, b.column, b.row])).toEqual([
    ['Project', 2, 0],
    ['Join', 1, 0],
    ['Scan', 0, 0],
    ['Scan', 0, 1],
  ]);
  expect(p.arrows).toEqual([
    { from: 's1', to: 's0' },
    { from: 's2', to: 's1' },
    { from: 's3', to: 's1' },
  ]);
});

const catalog = {
  sources: [
    {
      name: 'stats',
      columns: [{ name: 'p99Ms', type: 'FLOAT64', not_null: false }],
      physical: [
        { id: 1, type: 'SYSTEM', placement: '' },
        { id: 2, type: 'FILE', placement: 'n1' },
      ],
    },
    { name: 'other', columns: [{ name: 'port', type: 'INT32', not_null: false }], physical: [] },
  ],
  sinks: [{ name: 'out', type: 'PRINT', placement: '', columns: [] }],
  queries: [],
  workers: [],
  alerts: [],
} as StreamCatalog;

it('draws a query over two workers: both sources, both fragments, one sink', () => {
  const fragment = (host_name: string) => ({ host_name, plan: '', state: 'RUNNING', attempts: 1, failure: '' });
  const query = {
    sources: [1, 2],
    sink: 'OUT',
    fragments: [fragment('n1'), fragment('server')],
    live: null,
  } as unknown as StreamQuery;
  const p = queryDiagram(query, catalog, String, '');
  expect(p.boxes.map((b) => b.id)).toEqual(['p1', 'p2', 'f0', 'f1', 'sink']);
  expect(p.arrows.map((a) => `${a.from} ${a.to}`)).toEqual(['p1 f1', 'p2 f0', 'f0 f1', 'f1 sink']);
});

it('has no rates and no lag of a query that is over, which did have rows', () => {
  const live = { in_per_second: 0, out_per_second: 0, lag_ms: 5, late: 2 };
  const of = (state: string) =>
    ({ sources: [1], sink: 'OUT', state, fragments: [{ host_name: 'server', state: 'STOPPED' }], live }) as unknown;
  const drawn = (state: string) => {
    const q = of(state) as StreamQuery;
    return [lagOf(q), queryDiagram(q, catalog, String, '').arrows.map((a) => a.label), lossCounts(q).length];
  };
  expect(drawn('RUNNING')).toEqual(['under 1 s', ['0', '0'], 1]);
  expect(drawn('TERMINATED')).toEqual(['–', [undefined, undefined], 1]);
});

describe('completion', () => {
  const labels = (text: string) => streamCompletions(text, text.length, catalog).map((o) => o.label);
  it('knows sources, sinks and the columns of what is read', () => {
    expect(labels('SELECT a FROM ')).toEqual(['stats', 'other']);
    expect(labels('SELECT a FROM stats INTO ')).toEqual(['out']);
    expect(labels('SELECT a FROM stats WHERE p9')).toEqual(['p99Ms']);
    expect(labels('SELECT a FROM stats s WHERE s.')).toEqual(['p99Ms']);
    expect(labels('CREATE SINK x TYPE ')).toContain('GUARDRAIL');
    expect(labels("CREATE SINK x TYPE WEBHOOK SET('a' AS SINK.U")[0]).toBe('URL');
    expect(labels('SELECT a FROM stats WHERE port')).not.toContain('port');
  });
  it('is silent within texts and comments', () => expect(labels("SELECT 'FROM ")).toEqual([]));
});

describe('the gallery', () => {
  it('has the queries of the test files, each with a sink and a name of its own', () => {
    expect(gallery.map((g) => g.id)).toEqual([
      'slow',
      'queues',
      'checkout',
      'errors',
      'slowest',
      'node',
      'seconds',
      'table',
      'throughput',
      'heartbeats',
      'overload',
    ]);
    const names = new Set<string>();
    const sinks = new Set<string>();
    for (const g of gallery) {
      const [sink, query, ...more] = texts(g.text);
      expect(more).toEqual([]);
      const [, to] = /^CREATE SINK (\w+)\b[\s\S]* TYPE (?:PRINT|FILE|GUARDRAIL|WEBHOOK|POSTGRES)/.exec(sink!)!;
      sinks.add(to!);
      expect(query).toMatch(new RegExp(`^CREATE QUERY (\\w+) AS\\s+SELECT [\\s\\S]*INTO ${to}$`));
      names.add(/^CREATE QUERY (\w+)/.exec(query!)![1]!);
    }
    expect(names.size).toBe(gallery.length);
    // All of them can run, one after the other.
    expect(sinks.size).toBe(gallery.length);
  });
  it('finds a query by its sink', () =>
    expect(queriesOf('# x\nquery rowsort\nSELECT a INTO s;\n----\n1\n\nquery\nSELECT b INTO t\n----\n', 's')).toEqual([
      'SELECT a INTO s',
    ]));
});
