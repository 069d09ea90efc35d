// The mock server's initial documents, in the real server's types.
import { randomUUID } from 'node:crypto';
import type {
  Artifact,
  Enrichment,
  LogEntry,
  LogLevel,
  Phase,
  Plan,
  Point,
  Run,
  Scenario,
  Status,
  Summary,
  ThresholdResult,
  Validity,
} from '../src/api/types';
import { hash, plan, pluginRefs } from './plugins';
import { figures, histogram, random, type Second, second, summarise } from './model';

export const iso = (ms: number) => new Date(ms).toISOString();
export interface ScenarioOptions {
  description?: string;
  connection?: string;
  table?: string;
  connections?: number;
  duration?: number;
  warmup?: number;
  guardrails?: Scenario['guardrails'];
  rules?: Scenario['rules'];
  thresholds?: string[];
  tags?: Record<string, string>;
}

export function scenario(
  name: string,
  more: ScenarioOptions = {},
): Scenario & { target: NonNullable<Scenario['target']> } {
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
      io_engine: 'auto',
      seed: 42,
      repeat: 1,
    },
    scaling: { mode: 'FIXED', worker_count: 2, per_worker_capacity: Math.ceil((more.connections ?? 16) / 2) },
    find_max: {
      enabled: false,
      unit: 'connections',
      start_concurrency: 4,
      concurrency_increment: 8,
      max_concurrency: null,
      start_rate: null,
      rate_increment: null,
      max_rate: null,
      step_duration_seconds: 30,
      max_duration_seconds: 3600,
      qps_stability_pct: 5,
      latency_stability_pct: 20,
      max_error_rate_pct: 1,
    },
    guardrails: more.guardrails ?? {},
    ...(more.rules && { rules: more.rules }),
    thresholds: more.thresholds ?? ['p95_ms < 250', 'error_rate < 0.001'],
    tags: more.tags ?? { example: 'first-run' },
  };
}

export const valid: Validity = {
  verdict: 'VALID',
  causes: [],
  notes: ['The target runs on the same machine as the generator.'],
};

/** Loaded is a second of load with its phase. */
export type Loaded = Second & { phase: Phase };

/** curve generates the seconds of a run, as load and as history points. */
export function curve({
  seed,
  start,
  warmup,
  duration,
  connections,
  errors = 0,
  gap,
}: {
  seed: number;
  start: number;
  warmup: number;
  duration: number;
  connections: number;
  errors?: number;
  gap?: [number, number];
}) {
  const rnd = random(seed);
  const seconds: Loaded[] = [];
  const points: Point[] = [];
  const classes: Record<string, number> = {};
  let total = 0;
  let failed = 0;
  for (let t = 1; t <= warmup + duration; t++) {
    const phase = t <= warmup ? 'WARMUP' : 'MEASUREMENT';
    if (t === warmup + 1) {
      total = 0;
      failed = 0;
      for (const k of Object.keys(classes)) delete classes[k];
    }
    const s: Loaded = { ...second(rnd, { t, connections, errors: phase === 'MEASUREMENT' ? errors : 0 }), phase };
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

/** closedLoop has nulls for fields of an open loop. */
export const closedLoop = {
  target_qps: null,
  in_flight: 0,
  waiting: 0,
  dropped_per_sec: 0,
  service: summarise([]),
  schedule_lag: summarise([]),
  latency_split: null,
};

/** openLoop adds an open loop's schedule and latency split to a second. */
export function openLoop(s: Second, connections: number): Pick<Point, keyof typeof closedLoop> {
  const service = summarise(s.latencies);
  const late = 0.2 * (service.p50 ?? 0);
  return {
    // The target does not follow what is achieved: the page would take a change for a user's.
    target_qps: 400 * connections,
    in_flight: Math.round(1.4 * connections),
    waiting: Math.round(0.4 * connections),
    dropped_per_sec: 0,
    service,
    schedule_lag: summarise(s.latencies.map((l) => 0.2 * l)),
    latency_split: {
      round_trip_ms: service.avg ?? 0,
      decode_ms: 0.04 * (service.avg ?? 0),
      pool_wait_ms: 0.3 * late,
      schedule_lag_ms: late,
    },
  };
}

export function point(
  s: Second,
  {
    loop = closedLoop,
    at,
    t,
    phase,
    connections,
    total,
    failed,
    classes,
  }: {
    loop?: Pick<Point, keyof typeof closedLoop>;
    at: number;
    t: number;
    phase: Phase;
    connections: number;
    total: number;
    failed: number;
    classes: Record<string, number>;
  },
): Point {
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
    ...loop,
  };
}

export function emptyRun(name: string, sc: Scenario, more: { template_id?: string } = {}): Run {
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
    executions_deleted_at: null,
  };
}

export const notEnriched = (status: Enrichment['status']): Enrichment => ({
  status,
  ratio: null,
  executions: 0,
  matched: 0,
  without_id: 0,
  polls: 0,
  pages: 0,
  started_at: null,
  ended_at: null,
  next_poll_at: null,
  retryable: false,
  by_kind: null,
  total: null,
  aggregate: null,
});

/** StoredRun is what the mock keeps of a run. */
export interface StoredRun {
  run: Run & { simulated?: boolean; emulated?: boolean };
  summary: Summary | null;
  plan: Plan | null;
  points: Point[];
  logs: LogEntry[];
  artifacts: Artifact[];
}

export interface Ending {
  seed?: number;
  start?: number;
  errors?: number;
  status?: Status;
  reason?: string | null;
  lost?: number;
  degraded?: boolean;
  gap?: [number, number];
  seconds?: Loaded[];
  points?: Point[];
}

/** finish completes a run with figures. */
export function finish(
  run: Run,
  {
    seed = 7,
    start = Date.now(),
    errors = 0,
    status = 'COMPLETED',
    reason = null,
    lost = 0,
    degraded = false,
    gap,
    seconds: given,
    points: had = [],
  }: Ending,
): StoredRun & { summary: Summary } {
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
  const f = figures(random(seed), { seconds: made.seconds, errors, lost });
  const judged = (run.scenario_config.thresholds ?? []).map((t): ThresholdResult => {
    const [name = '', , limit] = t.split(' ');
    const actual =
      name === 'error_rate'
        ? f.errors.rate
        : name === 'qps'
          ? f.qps
          : ((f.latency_ms as Record<string, number> | null)?.[name.replace('_ms', '')] ?? null);
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
  const validity: Validity = degraded
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
  const exactly = f.latency_ms;
  const summary: Summary = {
    verdict: passed ? 'PASSED' : 'FAILED',
    find_max: null,
    setup: null,
    simulated: false,
    emulated: false,
    cost: null,
    run_id: run.run_id,
    test_name: run.test_name,
    status,
    cancellation_reason: reason,
    validity: validity.verdict,
    validity_detail: validity,
    start_time: run.start_time,
    end_time: run.end_time,
    ...f,
    live_percentiles: exactly
      ? ([50, 95, 99] as const).map((percentile) => {
          const exact_ms = exactly[`p${percentile}`];
          return { percentile, live_ms: exact_ms * 1.002, exact_ms, error_pct: 0.2 };
        })
      : null,
    thresholds: judged,
    passed,
    plugins: pluginRefs,
    environment: {
      loadstone_version: '0.2.0',
      go_version: 'go1.26.0',
      os: 'linux',
      arch: 'amd64',
      cpus: 2,
      cpu_model: 'AMD EPYC 7B13',
      memory_bytes: 25_000_000_000,
      hostname: 'bench-1',
      io_engine: 'events',
      io_engine_reason: 'io_uring cannot be used: a seccomp profile refuses io_uring_setup',
      driver: 'postgres',
      server_version: '15.14',
      target_is_local: true,
      target_max_connections: 100,
      simulated: false,
      emulated: false,
      nodes: 1,
      calibration: {
        at: run.start_time,
        machine_fingerprint: '5f1c0a9be2d34477',
        loadstone_version: '0.2.0',
        automatic: true,
        cpus: 2,
        schedule_lag_p50_ms: 0.03,
        schedule_lag_max_ms: 0.4,
        io_engine: 'events',
        connections: 16,
        cost_ns_per_operation: 9600,
        max_qps: 98_000,
        machine_busy_pct: 12,
        threads_waited_pct: 1,
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
    min_ts: run.start_time,
    max_ts: run.end_time,
    created_at: run.end_time,
  }));
  return { run, summary, plan, points: made.points, artifacts, logs: logsOf(run, start, made.points.length, reason) };
}

export function logsOf(run: Run, start: number, seconds: number, reason: string | null = null): LogEntry[] {
  const lines: [number, LogLevel, string, string][] = [
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

/** relations are the tables of every connection. */
export const relations = ['orders', 'accounts', 'items'].map((name) => ({
  schema: 'public',
  name: name,
  columns: [
    { name: 'id', type: 'bigint' },
    { name: 'note', type: 'text' },
  ],
}));
