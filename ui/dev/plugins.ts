// Plugin manifests and an example plan.
import type { Plan, Plugin } from '../src/api/types';

export const hash = (s: string) => (s.repeat(64) + '0'.repeat(64)).slice(0, 64);

const mixRef = { kind: 'workload', name: 'mix', version: '1.0.0', sha256: hash('9f3ac1d07be2') } as const;
const postgresRef = { kind: 'adapter', name: 'postgres', version: '1.0.0', sha256: hash('41bb02ce8d7f') } as const;
export const pluginRefs = [mixRef, postgresRef];

const number = (title: string, description: string, min: number, max: number, def: number) => ({
  title,
  description,
  type: 'number',
  minimum: min,
  maximum: max,
  default: def,
});

const bundled = {
  enabled: true,
  bundled: true,
  state: 'enabled' as const,
  origin: 'bundled' as const,
  default: true,
  uploaded_at: null,
  enabled_at: null,
  templates: [],
  live_runs: [],
};

export const plugins: Plugin[] = [
  {
    ...mixRef,
    size_bytes: 3_214_336,
    abi: '1.0',
    imports: [
      'ls.log',
      'wasi_snapshot_preview1.clock_time_get',
      'wasi_snapshot_preview1.fd_write',
      'wasi_snapshot_preview1.random_get',
    ],
    exports: ['ls_abi', 'ls_alloc', 'ls_describe', 'ls_error', 'ls_fill', 'ls_open', 'ls_rows', 'memory'],
    ...bundled,
    manifest: {
      kind: 'workload',
      name: 'mix',
      version: '1.0.0',
      title: 'Mixed reads and writes',
      author: 'Loadstone',
      description:
        'Point lookups, range scans, inserts, updates and deletes by weight, on a table of its own or on ' +
        'any table with a key.',
      parameters: {
        type: 'object',
        additionalProperties: false,
        properties: {
          weights: {
            title: 'Weights',
            description: 'How often each kind of operation is issued, relative to the others.',
            type: 'object',
            additionalProperties: false,
            default: { POINT_LOOKUP: 70, RANGE_SCAN: 10, INSERT: 10, UPDATE: 10, DELETE: 0 },
            properties: {
              POINT_LOOKUP: number('Point lookups', 'Reads one row by its key.', 0, 1e6, 70),
              RANGE_SCAN: number('Range scans', 'Reads scan_length rows in key order.', 0, 1e6, 10),
              INSERT: number('Inserts', 'Adds one row with a new key.', 0, 1e6, 10),
              UPDATE: number('Updates', 'Sets one column of one row.', 0, 1e6, 10),
              DELETE: number('Deletes', 'Deletes one row by its key.', 0, 1e6, 0),
            },
          },
          keys: {
            title: 'Key distribution',
            description: 'Which rows are touched.',
            type: 'string',
            enum: ['uniform', 'zipfian', 'latest', 'sequential'],
            default: 'uniform',
          },
          zipf_theta: number(
            'Skew',
            'Exponent of zipfian and latest: 0 is uniform, 0.99 is the usual choice.',
            0,
            5,
            0.99,
          ),
          zipf_scrambled: {
            title: 'Scatter hot rows',
            description: 'Spread the hot rows over the whole table.',
            type: 'boolean',
            default: true,
          },
          scan_length: { ...number('Scan length', 'Rows that a range scan reads.', 1, 10000, 100), type: 'integer' },
          value_size: {
            title: 'Value size',
            description: 'Length of generated text and bytes, where the column allows it.',
            type: 'object',
            default: { min: 20, max: 100 },
            properties: {
              min: { title: 'Smallest', type: 'integer', minimum: 0, maximum: 65536, default: 20 },
              max: { title: 'Largest', type: 'integer', minimum: 0, maximum: 65536, default: 100 },
            },
          },
        },
      },
      tables: [
        {
          name: 'orders',
          key: ['id'],
          columns: [
            { name: 'id', type: 'i64' },
            { name: 'customer_id', type: 'i64' },
            { name: 'status', type: 'text' },
            { name: 'amount', type: 'text' },
            { name: 'created_at', type: 'timestamp' },
            { name: 'note', type: 'text' },
          ],
        },
      ],
    },
  },
  {
    ...postgresRef,
    size_bytes: 2_871_002,
    abi: '1.0',
    imports: ['ls.log', 'wasi_snapshot_preview1.fd_write'],
    exports: ['ls_abi', 'ls_alloc', 'ls_call', 'ls_describe', 'ls_error', 'memory'],
    ...bundled,
    manifest: {
      kind: 'adapter',
      name: 'postgres',
      version: '1.0.0',
      title: 'Postgres table',
      author: 'Loadstone',
      description: 'Heap tables of Postgres 13 and later.',
      driver: 'postgres',
      dialect: 'postgres',
      kinds: [],
    },
  },
];

const bind = (name: string, type: string, column = name) => ({ name, type, column });
const column = (name: string, type: string, db_type: string) => ({
  name,
  type,
  db_type,
  nullable: false,
  generated: false,
  has_default: false,
});
export const plan: Plan = {
  driver: 'postgres',
  workload: mixRef,
  adapter: postgresRef,
  session: ["SET application_name = 'loadstone'"],
  key_slots: 8,
  statements: [
    {
      id: 'lookup',
      kind: 'POINT_LOOKUP',
      table: 'orders',
      sql: 'SELECT id, customer_id, status, amount, created_at, note FROM orders WHERE id = $1',
      binds: [bind('id', 'i64')],
      writes: false,
    },
    {
      id: 'scan',
      kind: 'RANGE_SCAN',
      table: 'orders',
      sql: 'SELECT id, customer_id, status, amount, created_at, note FROM orders WHERE id >= $1 ORDER BY id LIMIT 100',
      binds: [bind('id', 'i64')],
      writes: false,
    },
    {
      id: 'insert',
      kind: 'INSERT',
      table: 'orders',
      sql: 'INSERT INTO orders (id, customer_id, status, amount, created_at, note) VALUES ($1, $2, $3, $4, $5, $6)',
      binds: [
        bind('id', 'i64'),
        bind('customer_id', 'i64'),
        bind('status', 'text'),
        bind('amount', 'text'),
        bind('created_at', 'timestamp'),
        bind('note', 'text'),
      ],
      writes: true,
    },
    {
      id: 'update_amount',
      kind: 'UPDATE',
      table: 'orders',
      sql: 'UPDATE orders SET amount = $2 WHERE id = $1',
      binds: [bind('id', 'i64'), bind('amount', 'text')],
      writes: true,
    },
  ],
  tables: [
    {
      name: 'orders',
      physical_name: 'public.orders',
      columns: [
        column('id', 'i64', 'bigint'),
        column('customer_id', 'i64', 'bigint'),
        column('status', 'text', 'varchar(16)'),
        column('amount', 'text', 'numeric(12,2)'),
        column('created_at', 'timestamp', 'timestamptz'),
        column('note', 'text', 'text'),
      ],
      key: ['id'],
      key_min: 1,
      key_max: 100000,
      dense: true,
      rows: 100000,
      rows_exact: true,
    },
  ],
};
