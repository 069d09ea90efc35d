import type { Enrichment, FindMaxResult, Payload, Validity } from './live';

// The server's documents, named as in the engine. Times are RFC 3339 in UTC, or null.

export type Status = 'PREPARED' | 'RUNNING' | 'STOPPING' | 'CANCELLING' | 'COMPLETED' | 'FAILED' | 'CANCELLED';
export type Phase = '' | 'PREPARING' | 'WARMUP' | 'MEASUREMENT' | 'COOLDOWN' | 'PROCESSING';
export type Health = 'HEALTHY' | 'STALE' | 'DEAD';
/** NONE: the run ended before its measurement. */
export type Verdict = 'VALID' | 'DEGRADED' | 'NONE';
export type LogLevel = 'INFO' | 'WARNING' | 'ERROR' | 'CRITICAL';
export type Instant = string | null;

export type {
  AggregateStatements,
  Dispersion,
  Enrichment,
  FindMaxRepetition,
  FindMaxResult,
  FindMaxState,
  FindMaxStep,
  HistogramData,
  LogEntry,
  Payload,
  PayloadWorker,
  PercentilesMs,
  Point,
  PrepareProgress,
  ServerFigures,
  ServerSplit,
  Validity,
  Warehouse,
  WarehousePoint,
  WarehouseSlot,
  WorkerPoint,
  LatencySplit,
} from './live';

export const kinds = [
  'POINT_LOOKUP',
  'RANGE_SCAN',
  'INSERT',
  'UPDATE',
  'DELETE',
  'GENERIC_SQL',
  'TRANSACTION',
] as const;

export interface Prepare {
  /** Left out when the workload's parameters decide it. */
  rows?: number;
  if_exists: 'use' | 'recreate' | 'fail';
}

export type ConnectionRef = string | { driver?: string; dsn?: string; dsn_sealed?: string };

export interface Scenario {
  template_id?: string;
  template_name?: string;
  name: string;
  description?: string;
  target: {
    connection: ConnectionRef;
    adapter: string;
    table_name?: string;
    prepare?: Prepare | null;
    [more: string]: unknown;
  };
  /** In place of target, which is absent then; the run of each target has one. */
  matrix?: { targets: { label: string; [more: string]: unknown }[]; stop_on_failure?: boolean } | null;
  workload: {
    plugin: string;
    params?: Record<string, unknown> | null;
    load_mode: 'CONCURRENCY' | 'QPS' | 'FIND_MAX_CONCURRENCY';
    concurrent_connections: number;
    target_qps?: number | null;
    arrival?: 'constant' | 'poisson' | 'workload';
    max_in_flight?: number;
    stages?: Stage[] | null;
    duration_seconds: number;
    warmup_seconds: number;
    think_time_ms: number;
    seed: number;
    statement_timeout_ms?: number;
    [more: string]: unknown;
  };
  scaling: {
    mode: 'FIXED' | 'BOUNDED' | 'AUTO';
    worker_count: number;
    per_worker_capacity: number;
    min_workers?: number;
    max_workers?: number;
    [more: string]: unknown;
  };
  find_max?: { enabled: boolean; [more: string]: unknown };
  guardrails?: Partial<Record<GuardrailName | 'hold_seconds', number | null>>;
  thresholds?: string[] | null;
  tags?: Record<string, string> | null;
}

export type GuardrailName =
  | 'max_cpu_percent'
  | 'max_memory_percent'
  | 'max_host_cpu_percent'
  | 'max_host_memory_percent'
  | 'max_error_rate_pct'
  | 'max_p95_ms'
  | 'max_p99_ms';

export interface Run {
  run_id: string;
  test_id: string;
  template_id?: string;
  test_name: string;
  scenario_config: Scenario;
  status: Status;
  phase: Phase;
  start_time: Instant;
  warmup_start_time: Instant;
  warmup_end_time: Instant;
  measurement_end_time: Instant;
  end_time: Instant;
  total_workers_expected: number;
  workers_registered: number;
  workers_active: number;
  total_ops: number;
  error_count: number;
  current_qps: number;
  stop_reason?: string;
  cancellation_reason: string | null;
  created_by?: string;
  /** The place of a run in a matrix; the index is absent for the first. */
  matrix_id?: string;
  matrix_index?: number;
  matrix_label?: string;
  created_at: Instant;
  updated_at: Instant;
}

/** One workload on several targets, with a run for each. */
export interface Matrix {
  matrix_id: string;
  name: string;
  template_id?: string;
  labels: string[] | null;
  stop_on_failure: boolean;
  status: Status;
  start_time: Instant;
  end_time: Instant;
  created_by?: string;
  created_at: Instant;
  runs: RunRow[] | null;
}

export interface RunRow extends Run {
  simulated?: boolean;
  emulated?: boolean;
  qps: number | null;
  p50_ms: number | null;
  p95_ms: number | null;
  p99_ms: number | null;
  error_rate: number | null;
  validity: Verdict | null;
  passed: boolean | null;
}

export interface RunList {
  runs: RunRow[] | null;
  next_cursor?: string;
  total: number;
}

export interface LatencyMs {
  p50: number;
  p90: number;
  p95: number;
  p99: number;
  p999: number;
  avg: number;
  min: number;
  max: number;
  stddev: number;
}

export interface KindFigures {
  count: number;
  errors: number;
  qps: number;
  rows: number;
  /** Succeeded and found or changed no row; absent in older runs. */
  no_rows?: number;
  latency_ms: LatencyMs | null;
}

export interface Accounting {
  scheduled: number;
  dropped: number;
  /** Adds up to dropped; absent in older runs, as are the two of the warm-up. */
  dropped_by_reason?: { max_in_flight: number; stopped: number; not_dispatched: number };
  started: number;
  succeeded: number;
  failed: number;
  recorded: number;
  warmup: number;
  warmup_scheduled?: number;
  warmup_dropped?: number;
  /** Statements of transactions, recorded beside the executions; absent in older runs. */
  statements?: number;
  balanced: boolean;
  problems?: string[] | null;
}

export interface ExecutionError {
  error_class: string;
  error_code: string;
  error_message: string;
}

export interface HistogramBucket {
  from_ms: number;
  to_ms: number;
  count: number;
}

export interface SlowExecution {
  worker_id: string;
  connection_id: number;
  seq: number;
  kind: string;
  statement_id: string;
  started_at: Instant;
  app_elapsed_ms: number;
  rows: number;
  success: boolean;
  error_class?: string;
  error_message?: string;
  /** The database's name for the query; empty when it gave none, absent in runs of older versions. */
  server_query_id?: string;
}

/** One statement alone or inside transactions, or the transactions of one name. */
export interface StatementFigures {
  statement_id: string;
  kind: string;
  in_transaction: boolean;
  count: number;
  errors: number;
  retries: number;
  rows: number;
  qps: number;
  latency_ms: { avg: number; p50: number; p95: number; p99: number; max: number };
}

export interface TransactionFigures {
  count: number;
  committed: number;
  rolled_back: number;
  failed: number;
}

/** A stretch of the measurement with a rate or a number of connections of its own. */
export interface Stage {
  duration_seconds: number;
  target_qps?: number | null;
  connections?: number | null;
  ramp?: 'linear' | 'step';
}

/** Latencies as they would be if users had come in a closed loop's stalls too: lower bounds. */
export interface Omission {
  stalled_seconds: number;
  missed_operations: number;
  p50_ms: number;
  p95_ms: number;
  p99_ms: number;
  p999_ms: number;
}

export interface Figures {
  operations: number;
  reads: number;
  writes: number;
  duration_seconds: number;
  qps: number;
  /** Operations that ended after the measurement, how long the last of them took beyond it; absent in older runs. */
  finished_late?: number;
  drain_seconds?: number;
  /** Null unless parts of the record are lost: rates are over so many seconds, and with 0 there are none. */
  covered_seconds?: number | null;
  /** What a closed loop hides of its stalls; null without one. */
  coordinated_omission?: Omission | null;
  latency_ms: LatencyMs | null;
  by_kind: Record<string, KindFigures> | null;
  /** Of an open loop: from when an operation was begun; by how much the generator was late; the rate asked for. */
  service_ms?: LatencyMs | null;
  schedule_lag_ms?: LatencyMs | null;
  target_qps?: number | null;
  /** Absent in runs of older versions, as are the two below. */
  by_statement?: StatementFigures[] | null;
  transactions?: TransactionFigures | null;
  retries?: number;
  errors: {
    count: number;
    rate: number;
    by_class: Record<string, number> | null;
    top: (ExecutionError & { count: number })[] | null;
  };
  /** How the connections held over the whole run; null or absent where no run worker told. */
  connections?: { lost: number; refused: number; reopened: number; most_missing: number } | null;
  accounting: Accounting;
  histogram: HistogramBucket[] | null;
  slowest: SlowExecution[] | null;
}

export interface ThresholdResult {
  threshold: string;
  passed: boolean;
  actual: number | null;
  reason?: string;
}

/** What the generator was measured to cost and to err by, on the server's machine with its version. */
export interface Calibration {
  at: Instant;
  machine_fingerprint: string;
  loadstone_version: string;
  automatic: boolean;
  io_engine: string;
  connections: number;
  cost_ns_per_operation: number;
  max_qps: number;
  schedule_rate: number;
  schedule_lag_p99_ms: number;
  rate_error_pct: number;
  percentiles: { percentile: number; target_ms: number; measured_ms: number; error_ms: number }[] | null;
}

/** A percentile as it was shown live at the end, beside that of all recorded executions. */
export interface LivePercentile {
  percentile: number;
  live_ms: number;
  exact_ms: number;
  error_pct: number | null;
}

export interface Environment {
  loadstone_version: string;
  go_version: string;
  os: string;
  arch: string;
  cpus: number;
  cpu_model: string;
  memory_bytes: number;
  hostname: string;
  io_engine: string;
  driver: string;
  server_version: string;
  target_is_local: boolean;
  /** A stand-in that models a database answered; absent in runs of older versions. */
  simulated?: boolean;
  emulated?: boolean;
  nodes: number;
  /** The accuracy certificate; null or absent while there is none. */
  calibration?: Calibration | null;
}

export interface PluginRef {
  kind: string;
  name: string;
  version: string;
  sha256: string;
}

export interface Summary extends Figures {
  run_id: string;
  test_name: string;
  status: Status;
  cancellation_reason: string | null;
  validity: Verdict;
  validity_detail: Validity;
  start_time: Instant;
  end_time: Instant;
  /** The answer of a search for the limit; null or absent in any other run. */
  find_max?: FindMaxResult | null;
  thresholds: ThresholdResult[] | null;
  passed: boolean;
  plugins: PluginRef[] | null;
  environment: Environment;
  /** What the live percentiles were off by; null or absent where none were shown. */
  live_percentiles?: LivePercentile[] | null;
  simulated?: boolean;
  emulated?: boolean;
  cost?: Cost | null;
  tags?: Record<string, string>;
}

/** What the measurement used of a warehouse that is paid by the hour. */
export interface Cost {
  warehouse: string;
  warehouse_type: string;
  warehouse_size: string;
  warehouse_generation?: string;
  clusters: number;
  credits_per_hour: number;
  credits: number;
  run_credits: number;
  credit_price: number;
  currency: string;
  price: number;
  run_price: number;
  price_per_million_operations: number | null;
  price_list: string;
  notes: string[] | null;
}

export interface Statement {
  id: string;
  kind: string;
  table?: string;
  sql: string;
  binds: { name: string; type: string; column?: string }[] | null;
  writes: boolean;
}

export interface Table {
  name: string;
  physical_name: string;
  columns: { name: string; type: string; db_type: string; nullable: boolean }[] | null;
  key: string[] | null;
  rows: number;
  rows_exact: boolean;
}

export interface Plan {
  driver: string;
  workload: PluginRef;
  adapter: PluginRef;
  session?: string[];
  statements: Statement[] | null;
  tables: Table[] | null;
}

export interface Artifact {
  artifact_id: string;
  worker_id: string;
  kind: string;
  name: string;
  artifact_size_bytes: number;
  artifact_checksum: string;
  row_count: number;
}

export interface TestResult {
  test_id: string;
  worker_id?: string;
  worker_group_id?: number;
  status: Status;
  figures: Figures | null;
  failure_reason?: string;
}

export interface RunEvent {
  event_type: string;
  sequence_id: number;
  event_data: { scope: string; phase?: Phase; reason?: string; detail?: string; worker_id?: string };
  created_at: Instant;
}

export interface RunDetail extends Run {
  summary: Summary | null;
  plan: Plan | null;
  workers: TestResult[] | null;
  /** The first of them; artifacts_total says how many there are. */
  artifacts: Artifact[] | null;
  artifacts_total?: number;
  events: RunEvent[] | null;
  enrichment: Enrichment;
  simulated?: boolean;
  emulated?: boolean;
  live: Payload | null;
}

export interface Template {
  template_id: string;
  name: string;
  description?: string;
  config: Scenario;
  source?: string;
  version: number;
  created_by?: string;
  created_at: Instant;
  updated_at: Instant;
}

export interface FieldError {
  field: string;
  message: string;
  hint?: string;
  /** The line of the YAML document, from 1; absent when it has none. */
  line?: number;
}

export interface Validation {
  valid: boolean;
  errors: FieldError[] | null;
  config: Scenario | null;
  source: string | null;
}

export interface Connection {
  connection_id: string;
  name: string;
  driver: string;
  dsn: string;
  description?: string;
  builtin: boolean;
  created_at: Instant;
  updated_at: Instant;
}

export interface ConnectionCheck {
  ok: boolean;
  server: {
    version: string;
    database: string;
    user: string;
    local: boolean;
    max_connections: number;
    simulated?: boolean;
    emulated?: boolean;
    /** What is remarkable and no failure. */
    notes?: string[] | null;
  };
  round_trip_ms: number;
}

/** A statement as a plugin declares it; the SQL is by dialect, "*" for any. */
export interface PluginStatement {
  id: string;
  kind: string;
  table?: string;
  binds?: { name: string; type: string; column?: string }[] | null;
  columns?: string[] | null;
  writes?: boolean;
  sql?: Record<string, string>;
}

export interface Plugin extends PluginRef {
  size_bytes: number;
  abi: string;
  imports: string[] | null;
  exports: string[] | null;
  manifest: {
    kind: string;
    name: string;
    version: string;
    title?: string;
    description?: string;
    author?: string;
    parameters?: unknown;
    /** A workload that issues the operations of workload.feed. */
    feed?: boolean;
    tables?: {
      name: string;
      columns: { name: string; type: string; db_type?: Record<string, string> }[];
      key: string[];
      rows?: number;
      empty?: boolean;
      options?: Record<string, string>;
    }[];
    statements?: PluginStatement[] | null;
    driver?: string;
    dialect?: string;
    kinds?: string[];
    /** The SQL that an adapter may send, as patterns. */
    sends?: { query?: string[] | null; ddl?: string[] | null; session?: string[] | null };
    /** What an adapter's table type can do. */
    supports?: {
      read_only: boolean;
      enforced_keys: boolean;
      indexes: boolean;
      clustering: boolean;
      transactions: boolean;
      generates_rows: boolean;
      reason?: string;
      instead?: string;
    };
  };
  enabled: boolean;
  bundled: boolean;
  state: 'enabled' | 'disabled' | 'damaged';
  origin: 'bundled' | 'uploaded' | 'command_line';
  /** Why it is damaged. */
  problem?: string;
  /** Whether the bare name means this version. */
  default: boolean;
  uploaded_by?: string;
  uploaded_at: Instant;
  enabled_by?: string;
  enabled_at: Instant;
  templates: PluginUse[] | null;
  live_runs: PluginUse[] | null;
}

export interface PluginUse {
  id: string;
  name: string;
}

export interface User {
  user_id: string;
  name: string;
  role: string;
}

export interface Token {
  token_id: string;
  name: string;
  /** What it may do; absent from older servers. */
  scope?: 'read' | 'write' | 'admin';
  expires_at: Instant;
  last_used_at: Instant;
  created_at: Instant;
}

export interface Info {
  version: string;
  go_version: string;
  started_at: Instant;
  data_dir_free_bytes: number;
  control_store: string;
  playground: boolean;
  nodes: number;
}

/** Whether a run has rates: it has, unless its record is lost. */
export function isRated(f: Pick<Figures, 'covered_seconds'>): boolean {
  return f.covered_seconds !== 0;
}

export function isTerminal(s: Status): boolean {
  return s === 'COMPLETED' || s === 'FAILED' || s === 'CANCELLED';
}

/** Reports whether figures of this run may still change: it has load, or its figures are being computed. */
export function isLive(run: { status: Status; phase: Phase | null }): boolean {
  return run.status !== 'PREPARED' && (!isTerminal(run.status) || run.phase === 'PROCESSING');
}
