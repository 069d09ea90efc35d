// Derived tables and queries of the mock in all states. It does not parse SQL.
import type { DerivedTable, QueryAnswer, RefreshRecord, SavedQuery } from '../src/api/types';
import { iso } from './data';
import { Refusal } from './refusal';

const second = 1_000;
const began = Date.now();

function table(name: string, part: Partial<DerivedTable>): DerivedTable {
  return {
    name,
    kind: 'SQL',
    definition: `SELECT run_id, adapter, max(p95_ms) AS p95_ms -- of ${name}\nFROM run_summary\nGROUP BY 1, 2`,
    description: '',
    bundled: true,
    target_lag_seconds: 60,
    refresh_mode: 'AUTO',
    partition_by: 'RUN',
    partitions: 0,
    priority: 5,
    sources: ['runs'],
    status: 'ACTIVE',
    version: 1,
    changed_at: iso(began - 60 * second),
    behind_since: null,
    as_of: iso(began - 50 * second),
    next_refresh_due: null,
    last_refresh_seconds: 0.042,
    failures: 0,
    error: '',
    failing: [],
    created_by: 'loadstone',
    created_at: iso(began - 864e5),
    updated_at: iso(began - 864e5),
    updated_by: 'loadstone',
    ...part,
  };
}

const refused = 'The database refuses the SQL: division by zero.';
const own = { bundled: false, created_by: 'ada', updated_by: 'bob', partition_by: '' as const };
/** A run that is no longer exported. */
const alone = {
  status: 'ACTIVE' as const,
  failures: 1,
  error: 'The account refuses the write: the role LOADER lacks INSERT on QUERY_EXECUTIONS.',
  failing: [
    {
      subtask: '01932a7e-1c4b-7a55-8b1e-5a0e5d1c9f10',
      failures: 5,
      given_up: true,
      error: 'The account refuses the write: the role LOADER lacks INSERT on QUERY_EXECUTIONS.',
      failed_at: iso(began - 3_600 * second),
    },
  ],
};
const tables = new Map<string, DerivedTable>(
  [
    table('runs', {
      kind: 'INGEST',
      definition: '',
      sources: [],
      refresh_mode: 'INCREMENTAL',
      target_lag_seconds: 20,
      as_of: null,
      description: 'The seconds of every finished run, in the schema rollup.',
    }),
    table('run_summary', { description: 'One row for each run: what it was, and its exact figures.' }),
    table('kind_seconds', { behind_since: iso(began - 20 * second), next_refresh_due: iso(began + 25 * second) }),
    table('baseline_drift', { behind_since: iso(began - 7_300 * second), sources: ['run_summary'] }),
    table('p95_by_night', {
      ...own,
      sources: ['run_summary'],
      version: 4,
      description: 'P95 of the hybrid table, each night.',
      target_lag_seconds: 3600,
    }),
    table('cost by "size"', {
      ...own,
      sources: ['p95_by_night', 'kind_seconds'],
      status: 'FAILED',
      failures: 5,
      error: refused,
      behind_since: iso(began - 9_000 * second),
    }),
    // It waits for its first refresh and has no lag yet.
    table('warehouse hours', {
      ...own,
      definition: 'SELECT 1 AS n',
      sources: ['runs'],
      as_of: null,
      behind_since: iso(began - 30 * second),
      next_refresh_due: iso(began + 3_600 * second),
    }),
    table('exported_executions', {
      kind: 'INGEST',
      definition: '',
      sources: [],
      refresh_mode: 'INCREMENTAL',
      as_of: null,
      description: 'Single executions of finished runs, in the account of a connection.',
      ...alone,
    }),
    table('quiet', { ...own, status: 'SUSPENDED', sources: ['baseline_drift'], as_of: iso(began - 4 * 864e5) }),
  ].map((t) => [t.name, t]),
);
const claim = {
  dynamic_table: 'baseline_drift',
  subtask: '',
  worker_id: 'bench-01-5ce1/1',
  epoch: 981,
  claimed_at: iso(began - 41 * second),
  heartbeat_at: iso(began - 11 * second),
  expires_at: iso(began + 109 * second),
};
const pending = {
  dynamic_table: 'baseline_drift',
  subtask: '',
  priority: 5,
  next_refresh_due: iso(began - 45 * second),
};

const records = (t: DerivedTable): RefreshRecord[] =>
  Array.from({ length: t.kind === 'SQL' && t.as_of === null ? 0 : 30 }, (_, i) => {
    const at = began - i * 290 * second - ((i * 7919) % 60) * second;
    const bad = t.status === 'FAILED' && i < 5;
    return {
      seq: 500 - i,
      dynamic_table: t.name,
      subtask: t.kind === 'INGEST' ? `0193${(i * 7919).toString(16)}-run` : '',
      worker_id: `bench-01-5ce1/${i % 2}`,
      epoch: 900 - i,
      started_at: iso(at - (40 + ((i * 31) % 90))),
      ended_at: iso(at),
      refresh_mode: i % 6 === 5 ? 'FULL' : 'INCREMENTAL',
      note: i % 6 === 5 ? 'FULL: its definition or the columns that it reads have changed.' : '',
      row_count: bad ? 0 : 400 + i * 90,
      byte_count: bad ? 0 : 51_000 + i * 9_100,
      lag_seconds: bad ? null : 1.4 + (i % 5),
      error: bad ? t.error : '',
    };
  });

const find = (name = ''): DerivedTable => {
  const t = tables.get(decodeURIComponent(name));
  if (!t) throw new Refusal(404, 'not_found', `There is no derived table "${decodeURIComponent(name)}".`);
  return t;
};

const columns = [
  { name: 'started_at', type: 'timestamptz' },
  { name: 'adapter', type: 'text' },
  { name: 'p95_ms', type: 'float8' },
  { name: 'executions', type: 'int8' },
];

const answer = (rows: number): QueryAnswer => ({
  columns,
  rows: Array.from({ length: rows }, (_, i) => [
    new Date(began - (rows - i) * 3600_000).toISOString().replace('T', ' ').replace('Z', '+00'),
    i % 3 === 0 ? 'snowflake_hybrid' : i % 3 === 1 ? 'postgres' : null,
    i % 17 === 5 ? null : 8 + 3 * Math.sin(i / 9) + (i % 3) * 4,
    120_000 + i * 917,
  ]),
  truncated: rows >= 1_000,
  elapsed_ms: 23.4,
});

const saved = new Map<string, SavedQuery>([
  [
    'P95 by night',
    {
      name: 'P95 by night',
      sql: 'SELECT started_at, adapter, p95_ms, executions\nFROM run_summary\nORDER BY 1',
      chart: 'x=started_at&y=p95_ms&series=adapter',
      version: 2,
      created_by: 'ada',
      updated_by: 'ada',
      created_at: iso(began - 3 * 864e5),
      updated_at: iso(began - 864e5),
    },
  ],
]);

type Handle = (parts: string[], body: never) => unknown;
type Route = [method: string, path: RegExp, handle: Handle];

/** checkSql rejects some SQL, so that error positions can be seen. */
function checkSql(sql: string, field: string) {
  const lines = sql.split('\n');
  const line = lines.findIndex((l) => l.includes('nowhere'));
  if (line < 0) return;
  const place = { field, message: 'relation "nowhere" does not exist', line: line + 1 };
  throw new Refusal(422, 'invalid', 'The database refuses the SQL.', '', [
    { ...place, column: lines[line]!.indexOf('nowhere') + 1 },
  ]);
}

export const tableRoutes: Route[] = [
  [
    'GET',
    /^\/api\/v1\/tables$/,
    () => ({
      at: iso(Date.now()),
      tables: [...tables.values()],
      pending: [pending],
      claims: [claim],
      workers: [
        {
          worker_id: claim.worker_id,
          role: 'SERVER',
          host: 'bench-1',
          kinds: ['SQL', 'INGEST'],
          slots: 2,
          waits_for: '',
          seen_at: iso(Date.now()),
        },
        {
          worker_id: 'bench-2-91c0aa17',
          role: 'NODE',
          host: 'bench-2',
          kinds: ['SQL'],
          slots: 4,
          waits_for: 'a run is carried on this machine',
          seen_at: iso(Date.now()),
        },
      ],
      nobody: '',
    }),
  ],
  [
    'POST',
    /^\/api\/v1\/tables$/,
    (_m, b: DerivedTable) => {
      const t = table(b.name, { ...own, ...b, sources: ['run_summary'], as_of: null });
      tables.set(t.name, t);
      return t;
    },
  ],
  [
    'GET',
    /^\/api\/v1\/tables\/([^/]+)$/,
    ([, name]) => {
      const t = find(name);
      const mine = claim.dynamic_table === t.name;
      return {
        at: iso(Date.now()),
        table: t,
        read_by: [...tables.values()].filter((o) => o.sources.includes(t.name)).map((o) => o.name),
        pending: mine ? [pending] : [],
        claims: mine ? [claim] : [],
      };
    },
  ],
  [
    'PUT',
    /^\/api\/v1\/tables\/([^/]+)$/,
    ([, name]) => {
      throw new Refusal(
        409,
        'conflict',
        `The table "${decodeURIComponent(name!)}" was changed by bob at 2026-11-22 20:51:07 UTC.`,
        'Load it again and repeat your change.',
        [{ field: 'version', message: 'is no longer current: that is 5' }],
      );
    },
  ],
  ['GET', /^\/api\/v1\/tables\/([^/]+)\/history$/, ([, name]) => ({ refreshes: records(find(name)) })],
  [
    'POST',
    /^\/api\/v1\/tables\/([^/]+)\/(refresh|suspend|resume)$/,
    ([, name, verb]) => {
      const t = find(name);
      if (verb !== 'refresh') t.status = verb === 'suspend' ? 'SUSPENDED' : 'ACTIVE';
      if (verb === 'resume') Object.assign(t, { failures: 0, error: '', failing: [] });
      return t;
    },
  ],
  [
    'POST',
    /^\/mock\/tables\/fail$/,
    () => {
      Object.assign(find('exported_executions'), alone);
      return Object.assign(find('cost by "size"'), { status: 'FAILED', failures: 5, error: refused });
    },
  ],
  ['DELETE', /^\/api\/v1\/tables\/([^/]+)$/, ([, name]) => (tables.delete(find(name).name), null)],
  [
    'POST',
    /^\/api\/v1\/table-preview$/,
    (_m, b: { definition: string }) => {
      checkSql(b.definition, 'definition');
      return {
        ...answer(50),
        truncated: true,
        plan: 'HashAggregate  (cost=14.20..14.80 rows=60)\n  ->  Seq Scan on run_summary  (cost=0.00..12.60)',
        sources: ['run_summary'],
        note: '',
      };
    },
  ],
];

export const queryRoutes: Route[] = [
  [
    'POST',
    /^\/api\/query$/,
    (_m, b: { sql: string; max_rows: number }) => {
      checkSql(b.sql, 'sql');
      return answer(b.sql.includes('LIMIT 0') ? 0 : Math.min(b.max_rows, b.sql.includes('load_mode') ? 1_000 : 90));
    },
  ],
  ['POST', /^\/api\/query\/cancel$/, () => null],
  [
    'GET',
    /^\/api\/v1\/query-catalog$/,
    () => ({
      relations: [
        { schema: 'tables', name: 'run_summary', columns },
        { schema: 'tables', name: 'cost by "size"', columns: columns.slice(1) },
        { schema: 'rollup', name: 'run_seconds', columns: [{ name: 'run_id', type: 'text' }, ...columns.slice(0, 1)] },
      ],
    }),
  ],
  ['GET', /^\/api\/v1\/queries$/, () => ({ queries: [...saved.values()] })],
  [
    'PUT',
    /^\/api\/v1\/queries\/([^/]+)$/,
    ([, path], b: SavedQuery) => {
      const before = decodeURIComponent(path!);
      const there = saved.get(before);
      const name = b.name ?? before;
      if ((b.version ?? 0) === 0 ? there : name !== before && saved.has(name))
        throw new Refusal(409, 'conflict', `There is a saved query called "${name}" already.`, 'Choose another name.', [
          { field: 'name', message: 'is taken' },
        ]);
      if (b.version && !there) throw new Refusal(404, 'not_found', `There is no saved query "${before}".`);
      if (there && b.version !== there.version)
        throw new Refusal(
          409,
          'conflict',
          `The saved query "${before}" was changed by bob at 2026-11-22 20:51:07 UTC, after you had opened it.`,
          'Load it again and repeat your change.',
          [{ field: 'version', message: `is no longer current: that is ${there.version}` }],
        );
      const now = iso(Date.now());
      const q: SavedQuery = {
        name,
        sql: b.sql,
        chart: b.chart ?? '',
        version: (b.version ?? 0) + 1,
        created_by: there?.created_by ?? 'admin',
        created_at: there?.created_at ?? now,
        updated_by: 'admin',
        updated_at: now,
      };
      saved.delete(before);
      saved.set(name, q);
      return q;
    },
  ],
  ['DELETE', /^\/api\/v1\/queries\/([^/]+)$/, ([, name]) => (saved.delete(decodeURIComponent(name!)), null)],
];
