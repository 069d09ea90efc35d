// What a live run tells once a second, and the history of it.
import type { ExecutionError, GuardrailName, Health, Instant, LogLevel, Phase, Status, Verdict } from './types';

export interface HistogramData {
  schema: number;
  offset: number;
  counts: number[] | null;
  sum_ns: number;
  min_ns: number;
  max_ns: number;
}

export interface Point {
  timestamp: string;
  elapsed_seconds: number;
  phase: Phase;
  qps: number;
  p50_latency_ms: number | null;
  p95_latency_ms: number | null;
  p99_latency_ms: number | null;
  errors_per_sec: number;
  active_connections: number;
  target_connections: number;
  qps_by_kind: Record<string, number> | null;
  errors_by_class: Record<string, number> | null;
  histogram: HistogramData | null;
  cpu_pct: number;
  memory_pct?: number;
  host_cpu_pct?: number;
  host_memory_pct?: number;
  target_qps?: number | null;
  in_flight?: number;
  waiting?: number;
  service?: Latency;
  schedule_lag?: Latency;
  latency_split?: LatencySplit | null;
}

/** The mean parts of a second's latencies; they add up to the mean. */
export interface LatencySplit {
  schedule_lag_ms: number;
  pool_wait_ms: number;
  round_trip_ms: number;
  decode_ms: number;
}

/** One second of one run worker. */
export interface WorkerPoint {
  timestamp: string;
  elapsed_seconds: number;
  worker_id: string;
  phase: Phase;
  qps: number;
  p95_latency_ms: number | null;
}

export interface Latency {
  p50: number | null;
  p95: number | null;
  p99: number | null;
  avg: number | null;
  min: number | null;
  max: number | null;
}

export interface Timing {
  elapsed_display_seconds: number;
  phase_elapsed_seconds: number | null;
  phase_remaining_seconds: number | null;
  start_time: Instant;
  warmup_start_time: Instant;
  warmup_end_time: Instant;
  measurement_start_time: Instant;
  measurement_end_time: Instant;
  end_time: Instant;
  warmup_seconds: number;
  duration_seconds: number;
  expected_seconds_total: number;
}

export interface PayloadWorker {
  worker_id: string;
  worker_group_id: number;
  node_id: string;
  status: string;
  phase: Phase;
  health: Health;
  last_heartbeat: Instant;
  metrics: {
    qps: number;
    p50_latency_ms: number | null;
    p95_latency_ms: number | null;
    p99_latency_ms: number | null;
    total_queries: number;
    error_count: number;
    active_connections: number;
    target_connections: number;
    cpu_pct: number;
  };
}

export interface Validity {
  verdict: Verdict;
  causes: { cause: string; detail: string; from: Instant; to: Instant }[] | null;
  notes: string[] | null;
}

export interface GuardrailState {
  name: GuardrailName;
  limit: number;
  value: number | null;
  held_seconds: number;
  hold_seconds: number;
}

export interface PrepareProgress {
  step: string;
  message: string;
  rows_done: number;
  rows_total: number;
  rows_per_second: number;
  remaining_seconds: number | null;
}

export interface FindMaxStep {
  step_number: number;
  /** Which search of a repeated one, from 1. */
  repetition?: number;
  stage: 'STEPPING' | 'BISECTING' | 'CONFIRMING' | 'DONE';
  total_target_connections: number;
  target_qps: number | null;
  qps: number;
  p50_latency_ms: number | null;
  p95_latency_ms: number | null;
  p99_latency_ms: number | null;
  error_count: number;
  p95_vs_baseline_pct: number | null;
  outcome: 'STABLE' | 'DEGRADED' | 'ERROR_THRESHOLD' | 'QUEUE_DETECTED' | 'PLATEAU';
  stop_reason?: string;
}

export interface FindMaxState {
  unit: 'connections' | 'rate';
  current_step: number;
  /** The level in connections; target_qps is set instead when the search varies the rate. */
  target_workers: number;
  target_qps: number | null;
  status: FindMaxStep['stage'];
  step_elapsed_seconds: number;
  step_duration_seconds: number;
  upper_bound: number;
  last_stable: number | null;
  first_unstable: number | null;
  steps: FindMaxStep[] | null;
  repetition?: number;
  repeat?: number;
  repetitions?: FindMaxRepetition[] | null;
  result: FindMaxResult | null;
}

/** The answer of one search of a repeated one. */
export interface FindMaxRepetition {
  repetition: number;
  found: boolean;
  level: number | null;
  confirmed: boolean;
  qps: number;
  p50_latency_ms: number | null;
  p95_latency_ms: number | null;
  p99_latency_ms: number | null;
  steps: number;
  reason: string;
}

export interface Dispersion {
  median: number;
  min: number;
  max: number;
  cv_pct: number | null;
}

export interface FindMaxResult {
  unit: FindMaxState['unit'];
  found: boolean;
  max_connections: number | null;
  max_target_qps: number | null;
  qps: number;
  p50_latency_ms: number | null;
  p95_latency_ms: number | null;
  p99_latency_ms: number | null;
  error_rate: number;
  confirmed: boolean;
  reason: string;
  history: FindMaxStep[] | null;
  repetitions?: FindMaxRepetition[] | null;
  spread?: {
    asked: number;
    finished: number;
    found: number;
    level: Dispersion | null;
    qps: Dispersion | null;
  } | null;
}

export interface LogEntry {
  seq: number;
  worker_id?: string;
  level: LogLevel;
  message: string;
  details?: unknown;
  timestamp: string;
}

export type EnrichmentStatus = 'PENDING' | 'RUNNING' | 'COMPLETED' | 'PARTIAL' | 'SKIPPED' | 'FAILED';

export interface PercentilesMs {
  p50: number;
  p90: number;
  p95: number;
  p99: number;
  p999: number;
  avg: number;
  min: number;
  max: number;
}

/** Means of the parts of the client's latency; they add up to its mean. */
export interface ServerSplit {
  compilation_ms: number;
  queued_ms: number;
  queued_overload_ms: number;
  queued_provisioning_ms: number;
  queued_repair_ms: number;
  blocked_ms: number;
  execution_ms: number;
  other_ms: number;
  overhead_ms: number;
}

/** Client and server over the same executions. */
export interface ServerFigures {
  matched: number;
  client_ms: PercentilesMs;
  server_ms: PercentilesMs;
  split: ServerSplit;
}

export interface AggregateStatements {
  statement_id: string;
  kind: string | null;
  query_type: string;
  calls: number;
  throttled: number;
  avg_ms: number;
  p50_ms: number;
  p90_ms: number;
  p99_ms: number;
  p999_ms: number;
  max_ms: number;
  client_ms: { avg: number; p50: number; p95: number; p99: number; max: number } | null;
}

/** What the target's own query history told of a run. */
export interface Enrichment {
  status: EnrichmentStatus;
  ratio: number | null;
  reason?: string;
  executions: number;
  matched: number;
  without_id: number;
  polls: number;
  pages: number;
  started_at: string | null;
  ended_at: string | null;
  next_poll_at: string | null;
  retryable: boolean;
  by_kind: Record<string, { executions: number; matched: number; ratio: number; figures: ServerFigures | null }> | null;
  total: ServerFigures | null;
  aggregate: {
    status: EnrichmentStatus;
    reason?: string;
    available_at: string | null;
    /** When they are asked for again; null or absent when not any more. */
    next_poll_at?: string | null;
    polls?: number;
    calls: number;
    expected: number;
    throttled: number;
    rows: AggregateStatements[] | null;
  } | null;
  notes?: string[];
}

/** What the run's queries execute on, as it was polled last. */
export interface Warehouse {
  name: string;
  state: string;
  type: string;
  size: string;
  /** Of a standard warehouse, 1 or 2; empty when the account does not tell. */
  generation?: string;
  /** Executes again what takes too long on an interactive warehouse. */
  fallback_warehouse?: string;
  started_clusters: number;
  min_cluster_count: number;
  max_cluster_count: number;
  scaling_policy: string;
  running: number;
  queued: number;
  /** Why the latest poll failed; the figures are then older. */
  error?: string;
  polled_at: string | null;
}

/** Five seconds of a run's warehouse; null where nothing was polled. */
export interface WarehouseSlot {
  slot_start: string;
  elapsed_seconds: number;
  started_clusters: number | null;
  running: number | null;
  queued: number | null;
  qps: number | null;
}

export interface WarehousePoint extends Warehouse {
  timestamp: string;
  elapsed_seconds: number;
}

export interface Payload {
  simulated?: boolean;
  emulated?: boolean;
  test_id: string;
  run_id: string;
  test_name: string;
  status: Status;
  phase: Phase | null;
  timestamp: string;
  elapsed: number;
  timing: Timing;
  ops: { total: number; current_per_sec: number };
  operations: { reads: number; writes: number; reads_per_sec: number; writes_per_sec: number };
  latency: Latency;
  latency_total: Latency;
  latency_by_kind: Record<string, Latency> | null;
  latency_aggregation_method: string | null;
  latency_histogram: HistogramData | null;
  ops_by_kind: Record<string, { total: number; errors: number; per_sec: number }> | null;
  errors: {
    count: number;
    rate: number;
    per_sec: number;
    by_class: Record<string, number> | null;
    recent: ExecutionError[] | null;
    dropped: number;
    /** Repetitions of failed operations; absent from older servers. */
    retries?: number;
  };
  /** Missing have not been open for over a second; the others count since the load began. Older servers tell the first two. */
  connections: { active: number; target: number; missing?: number; lost?: number; refused?: number; reopened?: number };
  /** The rate that the schedule of an open loop asks for now; null otherwise. */
  target_qps?: number | null;
  /** Operations that are due and not finished, and those of them that wait for a connection. */
  in_flight?: number;
  waiting?: number;
  service?: Latency;
  service_total?: Latency;
  schedule_lag?: Latency;
  latency_split?: LatencySplit | null;
  workers: PayloadWorker[] | null;
  custom_metrics: {
    resources: {
      cpu_pct: number;
      memory_pct: number;
      memory_bytes: number;
      host_cpu_pct: number;
      host_memory_pct?: number;
    };
  };
  /** The state of a search for the limit; null or absent in any other run. */
  find_max?: FindMaxState | null;
  cancellation_reason: string | null;
  validity: Validity;
  /** How the run stands to its limits; absent from older servers. */
  guardrails?: GuardrailState[] | null;
  prepare: PrepareProgress | null;
  enrichment?: Enrichment;
  /** null or absent where there is none, and before the first poll. */
  warehouse?: Warehouse | null;
  logs: LogEntry[] | null;
  logs_dropped: number;
}
