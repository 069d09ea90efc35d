-- Runs, one row each, and the writers of runs that still go on.

CREATE SEQUENCE IF NOT EXISTS staging.run_versions;

-- A row with "provisional" belongs to a run that still goes on, here and in the tables of seconds. When the run is
-- taken in all its rows are replaced in one transaction.
CREATE TABLE IF NOT EXISTS rollup.runs (
    run_id             text PRIMARY KEY,
    run_name           text NOT NULL,
    template           text NOT NULL,
    adapter            text NOT NULL,
    connection         text NOT NULL,
    table_name         text NOT NULL,
    status             text NOT NULL,
    verdict            text NOT NULL,
    passed             boolean,
    simulated          boolean NOT NULL,
    load_mode          text NOT NULL,
    started_at         timestamptz,
    ended_at           timestamptz,
    duration_seconds   double precision,
    operations         bigint,
    reads              bigint,
    writes             bigint,
    errors             bigint,
    error_rate         double precision,
    qps                double precision,
    p50_ms             double precision,
    p95_ms             double precision,
    p99_ms             double precision,
    avg_ms             double precision,
    max_ms             double precision,
    warehouse          text NOT NULL,
    warehouse_size     text NOT NULL,
    credits            double precision,
    price              double precision,
    currency           text NOT NULL,
    price_per_million  double precision,
    tags               jsonb NOT NULL,
    created_by         text NOT NULL,
    -- How many Parquet files of the run are in the roll-ups, and which could not be read and why.
    parts              integer NOT NULL,
    part_problems      text[] NOT NULL,
    executions         bigint NOT NULL,
    fingerprint        text NOT NULL,
    version            bigint NOT NULL,
    taken_in_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- The run still goes on.
    provisional        boolean NOT NULL DEFAULT false
);

-- live_runs has the server that writes the seconds of a run that goes on, by the epoch in which it owns the run. The
-- transactions of an epoch are numbered, so that one whose answer was lost is not applied twice. ticks has the last
-- snapshot written of each worker of the run, for a server that takes the run over.
CREATE TABLE IF NOT EXISTS staging.live_runs (
    run_id  text PRIMARY KEY,
    epoch   bigint NOT NULL,
    batch   bigint NOT NULL,
    ticks   jsonb NOT NULL DEFAULT '{}',
    -- The run was taken in or deleted.
    closed  boolean NOT NULL DEFAULT false
);
