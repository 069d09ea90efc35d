-- Single executions, of runs that were taken in with --ingest executions. Each run is a partition, which is filled by
-- itself and attached as a whole, and goes as a whole; partitions are in the schema "staging", where readers do not see
-- them. Columns mean what they mean in the record (Parquet); those of 8 bytes come first, which saves space.

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
    -- 0 for an execution; other rows are statements inside the transaction of the same connection and seq.
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

-- Which runs have their executions there, and of which parts: they are kept while other things of the run change.
CREATE TABLE IF NOT EXISTS rollup.execution_runs (
    run_id       text PRIMARY KEY,
    partition    text NOT NULL UNIQUE,
    fingerprint  text NOT NULL,
    row_count    bigint NOT NULL CHECK (row_count >= 0)
);

-- The 100 slowest of each run's measurement. They are found when the run is taken in: a statement that looks at the
-- partitions of several runs has to open those of all.
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
