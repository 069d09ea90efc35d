-- The metrics of runs as a whole, from which their charts are drawn.

-- metrics_snapshots has one point per run and second.
CREATE TABLE IF NOT EXISTS metrics_snapshots (
    run_id              text NOT NULL REFERENCES run_status ON DELETE CASCADE,
    "timestamp"         timestamptz NOT NULL,
    elapsed_seconds     double precision NOT NULL DEFAULT 0,
    phase               text,
    qps                 double precision NOT NULL DEFAULT 0,
    reads_per_sec       double precision NOT NULL DEFAULT 0,
    writes_per_sec      double precision NOT NULL DEFAULT 0,
    p50_latency_ms      double precision,
    p95_latency_ms      double precision,
    p99_latency_ms      double precision,
    avg_latency_ms      double precision,
    max_latency_ms      double precision,
    errors_per_sec      double precision NOT NULL DEFAULT 0,
    total_queries       bigint NOT NULL DEFAULT 0,
    error_count         bigint NOT NULL DEFAULT 0,
    active_connections  integer NOT NULL DEFAULT 0,
    target_connections  integer NOT NULL DEFAULT 0,
    qps_by_kind         jsonb,
    errors_by_class     jsonb,
    histogram           jsonb,
    -- How an open loop kept its schedule, and how the latency splits into pool wait, first byte and decoding.
    load_detail         jsonb,
    cpu_pct             double precision NOT NULL DEFAULT 0,
    memory_pct          double precision NOT NULL DEFAULT 0,
    host_cpu_pct        double precision NOT NULL DEFAULT 0,
    host_memory_pct     double precision NOT NULL DEFAULT 0,
    PRIMARY KEY (run_id, "timestamp")
);

-- metrics_rollups has one row per ten seconds and phase. It is written together with the points, and the charts of
-- long runs are drawn from it.
CREATE TABLE IF NOT EXISTS metrics_rollups (
    run_id      text NOT NULL REFERENCES run_status ON DELETE CASCADE,
    -- Elapsed seconds / 10, rounded down.
    stretch     bigint NOT NULL,
    phase       text NOT NULL DEFAULT '',
    last_at     timestamptz NOT NULL,
    points      bigint NOT NULL,
    qps_sum     double precision NOT NULL,
    reads_sum   double precision NOT NULL,
    writes_sum  double precision NOT NULL,
    errors_sum  double precision NOT NULL,
    -- How many points have a latency; a point without executions has none.
    latencies   bigint NOT NULL,
    p50_sum     double precision NOT NULL,
    avg_sum     double precision NOT NULL,
    p95_max     double precision,
    p99_max     double precision,
    max_max     double precision,
    PRIMARY KEY (run_id, stretch, phase)
);
