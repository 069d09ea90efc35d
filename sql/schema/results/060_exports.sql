-- What of finished runs is in the account of a results connection, as the last attempt left it.

CREATE TABLE IF NOT EXISTS rollup.exports (
    run_id      text PRIMARY KEY,
    connection  text NOT NULL,
    -- The schema in which it is, DATABASE.SCHEMA; empty when the account could not be asked.
    place       text NOT NULL,
    status      text NOT NULL CHECK (status IN ('DONE', 'FAILED')),
    executions  bigint NOT NULL CHECK (executions >= 0),
    views       text[] NOT NULL,
    -- What is missing and why, or why the attempt failed; empty when nothing is.
    problem     text NOT NULL,
    noted_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);
-- Nothing is owed of the run: of what an earlier version has taken there, its row in TEST_RESULTS may be.
ALTER TABLE rollup.exports ADD COLUMN IF NOT EXISTS whole boolean NOT NULL DEFAULT false;
