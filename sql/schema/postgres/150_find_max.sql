-- The steps of runs that search for the limit of a target (find max).

CREATE TABLE IF NOT EXISTS find_max_step_history (
    step_id                   text PRIMARY KEY DEFAULT gen_random_uuid()::text,
    run_id                    text NOT NULL REFERENCES run_status ON DELETE CASCADE,
    step_number               integer NOT NULL CHECK (step_number > 0),
    -- Which search the step belongs to, when a run repeats the search.
    repetition                integer NOT NULL DEFAULT 1 CHECK (repetition > 0),
    stage                     text NOT NULL DEFAULT 'STEPPING',
    total_target_connections  integer NOT NULL CHECK (total_target_connections >= 0),
    target_qps                double precision,
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
    dropped_count             bigint NOT NULL DEFAULT 0,
    qps_vs_prior_pct          double precision,
    p95_vs_baseline_pct       double precision,
    queue_detected            boolean NOT NULL DEFAULT false,
    outcome                   text CHECK (outcome IN
                                  ('STABLE', 'DEGRADED', 'ERROR_THRESHOLD', 'QUEUE_DETECTED', 'PLATEAU')),
    stop_reason               text,
    created_at                timestamptz NOT NULL DEFAULT now(),
    UNIQUE (run_id, step_number)
);
