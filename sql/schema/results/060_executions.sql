-- Single executions, of runs that were taken in with --ingest executions. Each run is a partition: it is filled
-- first, then attached, and dropped as a whole. Partitions are in the schema "staging", where readers do not see
-- them. Columns mean the same as in the Parquet files; columns of 8 bytes come first, which saves space.

CREATE TABLE IF NOT EXISTS rollup.executions (
    run_id           text NOT NULL,
    seq              bigint NOT NULL,
    due_at           timestamptz NOT NULL,
    started_at       timestamptz NOT NULL,
    app_elapsed_ms   double precision NOT NULL,
    schedule_lag_ms  double precision NOT NULL,
    pool_wait_ms     double precision NOT NULL,
    decode_ns        bigint NOT NULL,
    connection_id    bigint NOT NULL,
    step             integer NOT NULL,
    row_count        integer NOT NULL,
    retries          integer NOT NULL,
    -- 0 for an execution; above 0 for a statement inside the transaction with the same connection_id and seq.
    position         integer NOT NULL,
    warmup           boolean NOT NULL,
    success          boolean NOT NULL,
    rolled_back      boolean NOT NULL,
    worker_id        text NOT NULL,
    kind             text NOT NULL,
    statement_id     text NOT NULL,
    error_class      text,
    error_code       text,
    error_message    text,
    server_query_id  text
) PARTITION BY LIST (run_id);

-- execution_runs says which runs have their executions here, and from which Parquet files (fingerprint). The
-- executions stay when something else of the run changes.
CREATE TABLE IF NOT EXISTS rollup.execution_runs (
    run_id       text PRIMARY KEY,
    partition    text NOT NULL UNIQUE,
    fingerprint  text NOT NULL,
    row_count    bigint NOT NULL CHECK (row_count >= 0)
);

-- slow_executions has the 100 slowest executions in the measurement of each run. They are found when the run is taken
-- in, because a statement over the partitions of several runs has to open all partitions.
CREATE TABLE IF NOT EXISTS rollup.slow_executions (
    run_id           text NOT NULL,
    place            bigint NOT NULL,
    app_elapsed_ms   double precision NOT NULL,
    due_at           timestamptz NOT NULL,
    kind             text NOT NULL,
    statement_id     text NOT NULL,
    worker_id        text NOT NULL,
    connection_id    bigint NOT NULL,
    seq              bigint NOT NULL,
    row_count        integer NOT NULL,
    success          boolean NOT NULL,
    error_class      text,
    server_query_id  text,
    PRIMARY KEY (run_id, place)
);
