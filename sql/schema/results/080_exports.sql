-- Exports: what of finished runs is in the Snowflake account of a results connection, after the last attempt.

CREATE TABLE IF NOT EXISTS rollup.exports (
    run_id      text PRIMARY KEY,
    connection  text NOT NULL,
    -- DATABASE.SCHEMA of the export; empty when the account could not be reached.
    place       text NOT NULL,
    status      text NOT NULL CHECK (status IN ('DONE', 'FAILED')),
    executions  bigint NOT NULL CHECK (executions >= 0),
    views       text[] NOT NULL,
    -- What is missing and why, or why the attempt failed; else empty.
    problem     text NOT NULL,
    noted_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- Nothing of the run is missing in the account. False when its row in TEST_RESULTS may be.
    whole       boolean NOT NULL DEFAULT false
);
