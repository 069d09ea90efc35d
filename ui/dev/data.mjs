// The documents that the mock server begins with, in the server's own shapes.
import { randomUUID } from 'node:crypto';
import { figures, histogram, random, second, summarise } from './model.mjs';

export const iso = (ms) => new Date(ms).toISOString();
const hash = (s) => (s.repeat(64) + '0'.repeat(64)).slice(0, 64);

export const pluginRefs = [
  { kind: 'workload', name: 'mix', version: '1.0.0', sha256: hash('9f3ac1d07be2') },
  { kind: 'adapter', name: 'postgres', version: '1.0.0', sha256: hash('41bb02ce8d7f') },
];

const number = (title, description, min, max, def) => ({
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
  state: 'enabled',
  origin: 'bundled',
  default: true,
  uploaded_at: null,
  enabled_at: null,
  templates: [],
  live_runs: [],
};

export const plugins = [
  {
    ...pluginRefs[0],
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
        'Point lookups, range scans, inserts, updates and deletes by weight, on a table of its own or on any table with a key.',
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
    ...pluginRefs[1],
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

const bind = (name, type, column = name) => ({ name, type, column });
export const plan = {
  driver: 'postgres',
  workload: pluginRefs[0],
  adapter: pluginRefs[1],
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
        { name: 'id', type: 'i64', db_type: 'bigint' },
        { name: 'customer_id', type: 'i64', db_type: 'bigint' },
        { name: 'status', type: 'text', db_type: 'varchar(16)' },
        { name: 'amount', type: 'text', db_type: 'numeric(12,2)' },
        { name: 'created_at', type: 'timestamp', db_type: 'timestamptz' },
        { name: 'note', type: 'text', db_type: 'text' },
      ],
      key: ['id'],
      rows: 100000,
      rows_exact: true,
    },
  ],
};

export function scenario(name, more = {}) {
  return {
    name,
    description: more.description,
    target: {
      connection: more.connection ?? 'playground',
      adapter: 'postgres',
      table_name: more.table ?? 'orders',
      prepare: { rows: 100000, if_exists: 'use' },
    },
    workload: {
      plugin: 'mix',
      params: { weights: { POINT_LOOKUP: 70, RANGE_SCAN: 10, INSERT: 10, UPDATE: 10 }, keys: 'zipfian' },
      load_mode: 'CONCURRENCY',
      concurrent_connections: more.connections ?? 16,
      target_qps: null,
      arrival: 'constant',
      max_in_flight: 10000,
      duration_seconds: more.duration ?? 20,
      warmup_seconds: more.warmup ?? 3,
      think_time_ms: 0,
      statement_timeout_ms: 30000,
      reconnect_every: 0,
      seed: 42,
      repeat: 1,
    },
    scaling: { mode: 'FIXED', worker_count: 2, per_worker_capacity: Math.ceil((more.connections ?? 16) / 2) },
    find_max: { enabled: false },
    guardrails: more.guardrails ?? {},
    thresholds: more.thresholds ?? ['p95_ms < 250', 'error_rate < 0.001'],
    tags: more.tags ?? { example: 'first-run' },
  };
}

export const valid = { verdict: 'VALID', causes: [], notes: ['The target runs on the same machine as the generator.'] };

/** The seconds of a run, as load and as points of its history. */
export function curve({ seed, start, warmup, duration, connections, errors = 0, gap }) {
  const rnd = random(seed);
  const seconds = [];
  const points = [];
  const classes = {};
  let total = 0;
  let failed = 0;
  for (let t = 1; t <= warmup + duration; t++) {
    const phase = t <= warmup ? 'WARMUP' : 'MEASUREMENT';
    if (t === warmup + 1) {
      total = 0;
      failed = 0;
      for (const k of Object.keys(classes)) delete classes[k];
    }
    const s = { ...second(rnd, { t, connections, errors: phase === 'MEASUREMENT' ? errors : 0 }), phase };
    seconds.push(s);
    total += Math.round(s.qps);
    failed += Math.round(s.errorsPerSec);
    if (s.errorsPerSec) {
      classes.serialization = (classes.serialization ?? 0) + Math.round(s.errorsPerSec * 0.8);
      classes.timeout = (classes.timeout ?? 0) + Math.round(s.errorsPerSec * 0.2);
    }
    if (gap && t > gap[0] && t < gap[1]) continue;
    points.push(
      point(s, { at: start + (t + 1) * 1000, t: t + 1, phase, connections, total, failed, classes: { ...classes } }),
    );
  }
  return { seconds, points };
}

export function point(s, { at, t, phase, connections, total, failed, classes }) {
  const l = summarise(s.latencies);
  return {
    timestamp: iso(at),
    elapsed_seconds: t,
    phase,
    qps: s.qps,
    reads_per_sec: s.byKind.POINT_LOOKUP + s.byKind.RANGE_SCAN,
    writes_per_sec: s.byKind.INSERT + s.byKind.UPDATE,
    p50_latency_ms: l.p50,
    p95_latency_ms: l.p95,
    p99_latency_ms: l.p99,
    avg_latency_ms: l.avg,
    max_latency_ms: l.max,
    errors_per_sec: s.errorsPerSec,
    total_queries: total,
    error_count: failed,
    active_connections: connections,
    target_connections: connections,
    qps_by_kind: s.byKind,
    errors_by_class: classes,
    histogram: histogram(s.latencies, s.scale),
    cpu_pct: 38 + 6 * Math.sin(t / 5),
    memory_pct: 4.2,
    host_cpu_pct: 81,
    host_memory_pct: 22,
  };
}

export function emptyRun(name, sc, more = {}) {
  const id = randomUUID();
  return {
    run_id: id,
    test_id: id,
    template_id: more.template_id,
    test_name: name,
    scenario_config: sc,
    status: 'PREPARED',
    phase: 'PREPARING',
    start_time: null,
    warmup_start_time: null,
    warmup_end_time: null,
    measurement_end_time: null,
    end_time: null,
    total_workers_expected: sc.scaling.worker_count,
    workers_registered: 0,
    workers_active: 0,
    workers_completed: 0,
    total_ops: 0,
    error_count: 0,
    current_qps: 0,
    worker_targets: {},
    cancellation_reason: null,
    created_by: 'admin',
    owner_epoch: 1,
    created_at: iso(Date.now()),
    updated_at: iso(Date.now()),
  };
}

/** Fills a run in as one that has ended, with its figures. */
export function finish(
  run,
  {
    seed = 7,
    start,
    errors = 0,
    status = 'COMPLETED',
    reason = null,
    lost = 0,
    degraded = false,
    gap,
    seconds: given,
    points: had,
  },
) {
  const w = run.scenario_config.workload;
  const made = given
    ? { seconds: given, points: had }
    : curve({
        seed,
        start,
        warmup: w.warmup_seconds,
        duration: w.duration_seconds,
        connections: w.concurrent_connections,
        errors,
        gap,
      });
  const f = figures(random(seed), { seconds: made.seconds, warmup: w.warmup_seconds, errors, lost });
  const judged = (run.scenario_config.thresholds ?? []).map((t) => {
    const [name, , limit] = t.split(' ');
    const actual =
      name === 'error_rate'
        ? f.errors.rate
        : name === 'qps'
          ? f.qps
          : (f.latency_ms?.[name.replace('_ms', '')] ?? null);
    return {
      threshold: t,
      passed: actual !== null && (t.includes('>') ? actual > Number(limit) : actual < Number(limit)),
      actual,
    };
  });
  const passed = status === 'COMPLETED' && judged.every((j) => j.passed);
  const warmEnd = start + 1000 + w.warmup_seconds * 1000;
  Object.assign(run, {
    status,
    phase: '',
    start_time: iso(start),
    warmup_start_time: iso(start + 1000),
    warmup_end_time: iso(warmEnd),
    measurement_end_time: iso(warmEnd + f.duration_seconds * 1000),
    end_time: iso(warmEnd + f.duration_seconds * 1000 + 900),
    total_ops: f.accounting.started,
    error_count: f.errors.count,
    cancellation_reason: reason,
    stop_reason: status === 'COMPLETED' ? 'duration_elapsed' : status === 'CANCELLED' ? 'user_requested' : 'guardrail',
    created_at: iso(start - 1000),
  });
  const validity = degraded
    ? {
        verdict: 'DEGRADED',
        causes: [
          {
            cause: 'generator_cpu',
            detail: 'The generator used 94 % of its CPUs for 7 s, from 00:00:09 to 00:00:16.',
            from: iso(start + 9000),
            to: iso(start + 16000),
          },
        ],
        notes: [],
      }
    : valid;
  const summary = {
    run_id: run.run_id,
    test_name: run.test_name,
    status,
    cancellation_reason: reason,
    validity: validity.verdict,
    validity_detail: validity,
    start_time: run.start_time,
    end_time: run.end_time,
    ...f,
    live_percentiles: f.latency_ms
      ? [50, 95, 99].map((percentile) => {
          const exact_ms = f.latency_ms[`p${percentile}`];
          return { percentile, live_ms: exact_ms * 1.002, exact_ms, error_pct: 0.2 };
        })
      : null,
    thresholds: judged,
    passed,
    plugins: pluginRefs,
    environment: {
      loadstone_version: '0.1.0',
      go_version: 'go1.26.0',
      os: 'linux',
      arch: 'amd64',
      cpus: 2,
      cpu_model: 'AMD EPYC 7B13',
      memory_bytes: 25_000_000_000,
      hostname: 'bench-1',
      io_engine: 'goroutine',
      driver: 'postgres',
      server_version: '15.14',
      target_is_local: true,
      nodes: 1,
      calibration: {
        at: run.start_time,
        machine_fingerprint: '5f1c0a9be2d34477',
        loadstone_version: '0.1.0',
        automatic: true,
        io_engine: 'events',
        connections: 16,
        cost_ns_per_operation: 9600,
        max_qps: 98_000,
        schedule_rate: 5000,
        schedule_lag_p99_ms: 0.071,
        rate_error_pct: -0.01,
        percentiles: [
          { percentile: 50, target_ms: 10.01, measured_ms: 10.05, error_ms: 0.04 },
          { percentile: 99, target_ms: 17.9, measured_ms: 17.99, error_ms: 0.09 },
        ],
      },
    },
    tags: run.scenario_config.tags,
  };
  const artifacts = [0, 1].map((i) => ({
    artifact_id: randomUUID(),
    run_id: run.run_id,
    test_id: run.run_id,
    worker_id: `worker-${i}`,
    kind: 'executions',
    name: `executions-worker-${i}-0001.parquet`,
    artifact_size_bytes: Math.round((f.accounting.recorded / 2) * 31.4),
    artifact_checksum: hash(`${i}c7e91`),
    row_count: Math.round(f.accounting.recorded / 2),
    parquet_schema_version: 1,
  }));
  return { run, summary, plan, points: made.points, artifacts, logs: logsOf(run, start, made.points.length, reason) };
}

export function logsOf(run, start, seconds, reason) {
  const lines = [
    [0, 'INFO', '', `Run “${run.test_name}” was started by admin.`],
    [120, 'INFO', '', 'Plugins: workload mix 1.0.0, adapter postgres 1.0.0.'],
    [240, 'INFO', '', 'Table public.orders has 100000 rows; it is used as it is.'],
    [610, 'INFO', 'worker-0', 'Opened 8 connections.'],
    [640, 'INFO', 'worker-1', 'Opened 8 connections.'],
    [1000, 'INFO', '', 'Warm-up began; it lasts 3 s.'],
    [4000, 'INFO', '', 'Measurement began; it lasts 20 s.'],
  ];
  if (seconds > 12) lines.push([11200, 'WARNING', 'worker-1', 'A checkpoint of the target slowed writes for 1.2 s.']);
  if (reason)
    lines.push([
      (seconds + 1) * 1000,
      run.status === 'CANCELLED' ? 'WARNING' : 'ERROR',
      '',
      `${reason}. The run drains.`,
    ]);
  lines.push([(seconds + 1) * 1000 + 200, 'INFO', '', 'All workers have left; the figures are being computed.']);
  return lines.map(([ms, level, worker, message], i) => ({
    seq: i + 1,
    run_id: run.run_id,
    worker_id: worker || undefined,
    level,
    message,
    timestamp: iso(start + ms),
  }));
}
