// Streams of the mock: statements create objects, and running queries produce rows.
import type { StreamCatalog, StreamQuery } from '../src/api/types';
import { iso } from './data';
import { Refusal } from './refusal';

const began = Date.now();
const columns = (text: string) =>
  text.split(', ').map((c) => {
    const [name, type] = c.split(' ');
    return { name: name!, type: type!, not_null: false };
  });
const source = (id: number, name: string, text: string) => ({
  name,
  columns: columns(text),
  physical: [{ id, type: 'SYSTEM', placement: '' }],
});

const sources: StreamCatalog['sources'] = [
  source(
    1,
    'worker_statistics',
    'timestamp TIMESTAMP, runId TEXT, workerId TEXT, nodeId TEXT, phase TEXT, recordsProcessed INT64, errors INT64, ' +
      'connections INT64, p50Ms FLOAT64, p95Ms FLOAT64, p99Ms FLOAT64',
  ),
  source(2, 'warehouse', 'timestamp TIMESTAMP, runId TEXT, name TEXT, state TEXT, running INT64, queued INT64'),
  { name: 'orders', columns: columns('ts TIMESTAMP, id UINT64, amount DECIMAL(12,2)'), physical: [] },
];
const sinks: StreamCatalog['sinks'] = [
  { name: 'dashboard', type: 'PRINT', placement: '', columns: [] },
  { name: 'stop_run', type: 'GUARDRAIL', placement: '', columns: [] },
  { name: 'page_me', type: 'WEBHOOK', placement: '', columns: [] },
  { name: 'my_table', type: 'POSTGRES', placement: '', columns: [] },
  { name: 'far', type: 'FILE', placement: 'bench-02', columns: [] },
];
let made = 6;

function query(id: number, name: string, sink: string, state: StreamQuery['state'], failure = ''): StreamQuery {
  return {
    query_id: id,
    name,
    statement:
      `CREATE QUERY ${name} AS SELECT start, end, SUM(recordsProcessed) AS total\nFROM worker_statistics\n` +
      `WINDOW TUMBLING(timestamp, SIZE 5 SEC)\nINTO ${sink}`,
    sink,
    sources: [1],
    state,
    desired_state: 'RUNNING',
    since: iso(began - 60_000),
    failure,
    created_by: 'admin',
    created_at: iso(began - 90_000),
    owner: 'bench-1',
    fragments: [
      {
        host_name: 'server',
        plan:
          'Project start, end, total\n  Aggregate SUM(recordsProcessed) in tumbling windows of 5s over timestamp\n' +
          '    Scan worker_statistics(timestamp, recordsProcessed)\n',
        state: state === 'FAILED' ? 'FAILED' : state === 'PENDING' ? 'REGISTERED' : 'RUNNING',
        attempts: 1,
        failure,
        live: null,
      },
    ],
    live: null,
    trouble: null,
    waiting: '',
    output: [],
  };
}

/** stuck is a dropped query whose worker does not answer. */
function stuck(q: StreamQuery): StreamQuery {
  const [f] = q.fragments;
  return {
    ...q,
    desired_state: 'STOPPED',
    failure: 'the worker bench-02 was lost',
    fragments: [
      { ...f!, host_name: 'server', state: 'STOPPED' },
      { ...f!, host_name: 'bench-02', state: 'STARTED', attempts: 2, failure: 'the worker bench-02 was lost' },
    ],
  };
}

let queries: StreamQuery[] = [
  query(1, 'throughput', 'dashboard', 'RUNNING'),
  query(2, 'too_slow', 'stop_run', 'RUNNING'),
  query(
    3,
    'busy_node',
    'page_me',
    'FAILED',
    'NetworkError: 2 rows could not be posted: https://hooks.example.com: the endpoint answers 404\n' +
      '  hint: put that right, then DROP the query and CREATE it again',
  ),
  {
    ...query(4, 'worker_seconds', 'my_table', 'RUNNING'),
    trouble: {
      since: iso(began - 14_000),
      attempts: 6,
      message: 'Postgres can not be written to: dial tcp 10.0.4.7:5432: connect: connection refused',
    },
  },
  stuck(query(5, 'far_away', 'far', 'STOPPING_STUCK')),
  query(6, 'begins', 'dashboard', 'DEPLOYING', 'a source of orders can not be reached: it is tried again'),
];
let alerts: StreamCatalog['alerts'] = [
  {
    at: iso(began - 40_000),
    query_id: 2,
    query: 'too_slow',
    type: 'GUARDRAIL',
    run_id: 'r-1',
    row: 'runId r-1, p99 251.3',
    rows: 1,
    failure: '',
  },
  {
    at: iso(began - 50_000),
    query_id: 3,
    query: 'busy_node',
    type: 'WEBHOOK',
    run_id: '',
    row: 'nodeId n-1, least 91.2, most 99.8',
    rows: 2,
    failure: '2 rows could not be posted: https://hooks.example.com: the endpoint answers 404',
  },
];
let bare = false;

/** lively updates a running query's counts to now. */
function lively(q: StreamQuery): StreamQuery {
  if (q.state !== 'RUNNING') return q;
  const seconds = Math.floor((Date.now() - began) / 1000) + 60;
  const prints = q.sink === 'dashboard' || sinks.find((s) => s.name === q.sink)?.type === 'PRINT';
  const windows = Math.floor(seconds / 5);
  return {
    ...q,
    live: {
      in: seconds * 16,
      out: q.name === 'too_slow' ? 1 : windows,
      in_per_second: 16,
      out_per_second: prints ? 0.2 : 0,
      late: q.name === 'throughput' ? 3 : 0,
      ahead: 0,
      timeless: 0,
      malformed: 0,
      dropped: 0,
      division_by_zero: 0,
      overflow: 0,
      cast: 0,
      state_bytes: 1840,
      latest_row: iso(Date.now() - 1_200),
      lag_ms: 1_200,
      last_output: iso(Date.now() - 3_000),
    },
    output: prints
      ? Array.from({ length: Math.min(windows, 100) }, (_, i) => {
          const at = began - 60_000 + (windows - Math.min(windows, 100) + i) * 5_000;
          return `${iso(at)},${iso(at + 5_000)},${154_000 + ((i * 7919) % 9_000)}`;
        })
      : [],
  };
}

const refuse = (kind: string, message: string, line: number, column: number, hint = '') => {
  throw new Refusal(422, 'validation_failed', `${kind}: ${message}`, hint, [
    { field: 'sql', message, hint, line, column },
  ]);
};

function execute(sql: string) {
  const results = [];
  for (const part of sql.split(';')) {
    const text = part.replace(/^(?:\s+|--[^\n]*\n)+/, '').trim();
    if (!text) continue;
    const at = sql.indexOf(text);
    const line = sql.slice(0, at).split('\n').length;
    const one = {
      statement: text,
      done: undefined as string | undefined,
      columns: [] as string[],
      rows: [] as string[][],
    };
    const create = /^CREATE SINK (\w+) TYPE (\w+)/i.exec(text);
    const created = /^CREATE QUERY (\w+)[\s\S]*INTO (\w+)$/i.exec(text);
    const drop = /^DROP QUERY (\w+)/i.exec(text);
    if (create) {
      if (sinks.some((s) => s.name === create[1]))
        refuse('AlreadyExists', `there is a sink ${create[1]} already`, line, 13);
      sinks.push({ name: create[1]!, type: create[2]!.toUpperCase(), placement: '', columns: [] });
      one.done = `created the sink ${create[1]}`;
    } else if (created) {
      queries.push(query(++made, created[1]!, created[2]!, 'RUNNING'));
      one.done = `accepted the query ${created[1]}`;
      one.columns = ['name'];
      one.rows = [[created[1]!]];
    } else if (drop) {
      queries = queries.filter((q) => q.name !== drop[1]);
      one.done = `dropped the query ${drop[1]}`;
    } else if (/^EXPLAIN SELECT/i.test(text)) {
      one.columns = ['plan'];
      one.rows = [
        ['Project start, end, total'],
        ['  Aggregate SUM(recordsProcessed) in tumbling windows of 5s over timestamp'],
        ['    Scan worker_statistics(timestamp, recordsProcessed)'],
        ['Fragment on server, physical sources 1'],
      ];
    } else if (/^SHOW SINKS/i.test(text)) {
      one.columns = ['name', 'type'];
      one.rows = sinks.map((s) => [s.name, s.type]);
    } else {
      const word = /^\w+/.exec(text)?.[0] ?? '';
      refuse('ParserError', `expected a statement, found ${word}`, line, 1, 'did you mean SELECT?');
    }
    results.push(one);
  }
  return { results };
}

const all = (): StreamCatalog => ({
  queries: queries.map(lively),
  sources: bare ? [] : sources,
  sinks,
  workers: bare
    ? []
    : [
        { host_name: 'server', state: 'ACTIVE', slots: 2000, used_slots: queries.length },
        { host_name: 'bench-02', state: 'UNREACHABLE', slots: 16, used_slots: 0 },
        { host_name: 'bench-03', state: 'DRAINING', slots: 16, used_slots: 3 },
      ],
  alerts,
});

/** clear empties the catalog. */
function clear() {
  bare = true;
  queries = [];
  alerts = [];
  sinks.length = 0;
  return {};
}

export const streamRoutes: [string, RegExp, (parts: string[], body: { sql?: string }) => unknown][] = [
  ['GET', /^\/api\/v1\/streams$/, all],
  ['POST', /^\/api\/v1\/streams\/statements$/, (_m, b) => execute(b.sql ?? '')],
  ['POST', /^\/mock\/streams\/clear$/, clear],
];
