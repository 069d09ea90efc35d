-- What is measured and said while a run goes on. One row for each second.

CREATE TABLE IF NOT EXISTS worker_metrics_snapshots (
    run_id              text NOT NULL REFERENCES run_status ON DELETE CASCADE,
    worker_id           text NOT NULL CHECK (worker_id <> ''),
    -- Numbers the snapshots of one run worker; the same tick again is ignored.
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
    cpu_pct             double precision NOT NULL DEFAULT 0,
    memory_pct          double precision NOT NULL DEFAULT 0,
    host_cpu_pct        double precision NOT NULL DEFAULT 0,
    host_memory_pct     double precision NOT NULL DEFAULT 0,
    PRIMARY KEY (run_id, "timestamp")
);

-- How an open loop kept its schedule, and where the time of the executions went.
ALTER TABLE metrics_snapshots ADD COLUMN IF NOT EXISTS load_detail jsonb;

-- Stretches of ten seconds of a run, one row for each phase in it: what the curve of a
-- long run is drawn from. Written with the points.
CREATE TABLE IF NOT EXISTS metrics_rollups (
    run_id          text NOT NULL REFERENCES run_status ON DELETE CASCADE,
    stretch         bigint NOT NULL, -- elapsed seconds / 10
    phase           text NOT NULL DEFAULT '',
    last_at         timestamptz NOT NULL,
    points          bigint NOT NULL,
    qps_sum         double precision NOT NULL,
    reads_sum       double precision NOT NULL,
    writes_sum      double precision NOT NULL,
    errors_sum      double precision NOT NULL,
    -- Points without an execution have no latency.
    latencies       bigint NOT NULL,
    p50_sum         double precision NOT NULL,
    avg_sum         double precision NOT NULL,
    p95_max         double precision,
    p99_max         double precision,
    max_max         double precision,
    PRIMARY KEY (run_id, stretch, phase)
);

-- Rolls up the points of runs that have no roll-ups.
CREATE OR REPLACE FUNCTION roll_up_points() RETURNS void LANGUAGE sql AS $$
    INSERT INTO metrics_rollups
    SELECT run_id, floor(elapsed_seconds / 10)::bigint, coalesce(phase, ''), max("timestamp"), count(*), sum(qps), sum(reads_per_sec), sum(writes_per_sec), sum(errors_per_sec),
        count(p50_latency_ms), coalesce(sum(p50_latency_ms), 0), coalesce(sum(avg_latency_ms), 0), max(p95_latency_ms), max(p99_latency_ms), max(max_latency_ms)
    FROM metrics_snapshots m WHERE NOT EXISTS (SELECT FROM metrics_rollups r WHERE r.run_id = m.run_id)
    GROUP BY 1, 2, 3
$$;

SELECT roll_up_points();

CREATE TABLE IF NOT EXISTS test_logs (
    log_id       text NOT NULL DEFAULT gen_random_uuid()::text,
    run_id       text NOT NULL REFERENCES run_status ON DELETE CASCADE,
    seq          bigint NOT NULL CHECK (seq > 0),
    test_id      text,
    worker_id    text,
    level        text NOT NULL CONSTRAINT log_level_known CHECK (level IN ('INFO', 'WARNING', 'ERROR', 'CRITICAL')),
    message      text NOT NULL,
    details      jsonb,
    "timestamp"  timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (run_id, seq)
);

CREATE TABLE IF NOT EXISTS warehouse_poll_snapshots (
    snapshot_id        text PRIMARY KEY DEFAULT gen_random_uuid()::text,
    run_id             text NOT NULL REFERENCES run_status ON DELETE CASCADE,
    "timestamp"        timestamptz NOT NULL,
    elapsed_seconds    double precision,
    warehouse_name     text NOT NULL,
    started_clusters   integer,
    running            integer,
    queued             integer,
    min_cluster_count  integer,
    max_cluster_count  integer,
    scaling_policy     text,
    raw_result         jsonb,
    created_at         timestamptz NOT NULL DEFAULT now()
);

ALTER TABLE warehouse_poll_snapshots ADD COLUMN IF NOT EXISTS state text NOT NULL DEFAULT '';
ALTER TABLE warehouse_poll_snapshots ADD COLUMN IF NOT EXISTS warehouse_type text NOT NULL DEFAULT '';
ALTER TABLE warehouse_poll_snapshots ADD COLUMN IF NOT EXISTS warehouse_size text NOT NULL DEFAULT '';
ALTER TABLE warehouse_poll_snapshots ADD COLUMN IF NOT EXISTS generation text NOT NULL DEFAULT '';
ALTER TABLE warehouse_poll_snapshots ADD COLUMN IF NOT EXISTS fallback_warehouse text NOT NULL DEFAULT '';

CREATE INDEX IF NOT EXISTS warehouse_poll_snapshots_by_run ON warehouse_poll_snapshots (run_id, "timestamp");

CREATE TABLE IF NOT EXISTS find_max_step_history (
    step_id                   text PRIMARY KEY DEFAULT gen_random_uuid()::text,
    run_id                    text NOT NULL REFERENCES run_status ON DELETE CASCADE,
    step_number               integer NOT NULL CHECK (step_number > 0),
    total_target_connections  integer NOT NULL CHECK (total_target_connections >= 0),
    step_start_time           timestamptz NOT NULL,
    step_end_time             timestamptz,
    step_duration_seconds     double precision,
    total_queries             bigint,
    qps                       double precision,
    p50_latency_ms            double precision,
    p95_latency_ms            double precision,
    p99_latency_ms            double precision,
    error_count               bigint,
    error_rate                double precision,
    qps_vs_prior_pct          double precision,
    p95_vs_baseline_pct       double precision,
    queue_detected            boolean NOT NULL DEFAULT false,
    outcome                   text CHECK (outcome IN
                                  ('STABLE', 'DEGRADED', 'ERROR_THRESHOLD', 'QUEUE_DETECTED', 'PLATEAU')),
    stop_reason               text,
    created_at                timestamptz NOT NULL DEFAULT now(),
    UNIQUE (run_id, step_number)
);
ALTER TABLE find_max_step_history ADD COLUMN IF NOT EXISTS stage text NOT NULL DEFAULT 'STEPPING';
ALTER TABLE find_max_step_history ADD COLUMN IF NOT EXISTS target_qps double precision;
ALTER TABLE find_max_step_history ADD COLUMN IF NOT EXISTS dropped_count bigint NOT NULL DEFAULT 0;
-- Which search of a repeated one the step belongs to.
ALTER TABLE find_max_step_history ADD COLUMN IF NOT EXISTS repetition integer NOT NULL DEFAULT 1 CHECK (repetition > 0);

-- A run's warehouse in slots of five seconds, from the run's start to its end: what
-- history draws. A slot has the latest poll that is at most ten seconds old at its end, the
-- most queries that were seen waiting in it, and the run's own throughput. One without a poll is a gap.
CREATE OR REPLACE VIEW v_warehouse_timeseries AS
SELECT r.run_id, s.slot, r.start_time + s.slot * interval '5 seconds' AS slot_start, s.slot * 5.0::double precision AS elapsed_seconds,
    p.warehouse_name, p.state, p.warehouse_type, p.warehouse_size, p.generation, p.started_clusters, p.min_cluster_count, p.max_cluster_count, p.running,
    greatest(p.queued, q.queued) AS queued, coalesce(q.polls, 0) AS polls, m.qps
FROM run_status r
CROSS JOIN LATERAL generate_series(0, ceil(extract(epoch FROM coalesce(r.end_time, now()) - r.start_time) / 5)::bigint - 1) AS s(slot)
LEFT JOIN LATERAL (SELECT * FROM warehouse_poll_snapshots w WHERE w.run_id = r.run_id
        AND w."timestamp" < r.start_time + (s.slot + 1) * interval '5 seconds' AND w."timestamp" >= r.start_time + (s.slot - 1) * interval '5 seconds'
    ORDER BY w."timestamp" DESC LIMIT 1) p ON true
LEFT JOIN LATERAL (SELECT max(w.queued) AS queued, count(*) AS polls FROM warehouse_poll_snapshots w WHERE w.run_id = r.run_id
        AND w."timestamp" >= r.start_time + s.slot * interval '5 seconds' AND w."timestamp" < r.start_time + (s.slot + 1) * interval '5 seconds') q ON true
LEFT JOIN LATERAL (SELECT avg(t.qps) AS qps FROM metrics_snapshots t WHERE t.run_id = r.run_id
        AND t."timestamp" >= r.start_time + s.slot * interval '5 seconds' AND t."timestamp" < r.start_time + (s.slot + 1) * interval '5 seconds') m ON true
WHERE r.start_time IS NOT NULL;
