-- The workers of runs: their state, and what each of them reports every second.

CREATE TABLE IF NOT EXISTS worker_heartbeats (
    run_id           text NOT NULL REFERENCES run_status ON DELETE CASCADE,
    worker_id        text NOT NULL CHECK (worker_id <> ''),
    worker_group_id  integer NOT NULL DEFAULT 0 CHECK (worker_group_id >= 0),
    node_id          text NOT NULL DEFAULT '',
    test_id          text NOT NULL DEFAULT '',
    status           text NOT NULL CONSTRAINT worker_status_known CHECK (status IN
                         ('STARTING', 'READY', 'RUNNING', 'DRAINING', 'COMPLETED', 'FAILED', 'DEAD')),
    phase            text CHECK (phase IN ('PREPARING', 'WARMUP', 'MEASUREMENT', 'COOLDOWN', 'PROCESSING')),
    last_heartbeat   timestamptz NOT NULL DEFAULT now(),
    error            text NOT NULL DEFAULT '',
    created_at       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (run_id, worker_id)
);

CREATE TABLE IF NOT EXISTS worker_metrics_snapshots (
    run_id              text NOT NULL REFERENCES run_status ON DELETE CASCADE,
    worker_id           text NOT NULL CHECK (worker_id <> ''),
    -- The number of the snapshot of this worker. A snapshot that is sent twice is written once.
    tick                bigint NOT NULL,
    test_id             text NOT NULL DEFAULT '',
    worker_group_id     integer NOT NULL DEFAULT 0,
    node_id             text NOT NULL DEFAULT '',
    "timestamp"         timestamptz NOT NULL,
    elapsed_seconds     double precision NOT NULL DEFAULT 0,
    phase               text,
    status              text NOT NULL DEFAULT '',
    qps                 double precision NOT NULL DEFAULT 0,
    p50_latency_ms      double precision,
    p95_latency_ms      double precision,
    p99_latency_ms      double precision,
    avg_latency_ms      double precision,
    max_latency_ms      double precision,
    -- Counters are cumulative over the phase.
    total_queries       bigint NOT NULL DEFAULT 0,
    read_count          bigint NOT NULL DEFAULT 0,
    write_count         bigint NOT NULL DEFAULT 0,
    error_count         bigint NOT NULL DEFAULT 0,
    active_connections  integer NOT NULL DEFAULT 0,
    target_connections  integer NOT NULL DEFAULT 0,
    cpu_pct             double precision NOT NULL DEFAULT 0,
    memory_pct          double precision NOT NULL DEFAULT 0,
    custom_metrics      jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (run_id, worker_id, tick)
);
