-- A derived table that is refreshed in parts: what belongs to it, and which parts are gathered. A part's rows are in a
-- table of their own, and that is named here when it is whole; when all are there the rows go into the table at once.

ALTER TABLE staging.partitions ADD COLUMN IF NOT EXISTS day text NOT NULL DEFAULT '';

CREATE TABLE IF NOT EXISTS staging.plans (
    dynamic_table       text PRIMARY KEY,
    epoch               bigint NOT NULL,
    definition_version  bigint NOT NULL,
    columns             text NOT NULL,
    partition_by        text NOT NULL,
    refresh_mode        text NOT NULL,
    note                text NOT NULL,
    -- The partitions that are made anew, and the runs, with their versions, that the table takes account of by it.
    keys                text[] NOT NULL,
    run_ids             text[] NOT NULL,
    run_versions        bigint[] NOT NULL,
    run_days            text[] NOT NULL,
    gone                text[] NOT NULL
);
CREATE TABLE IF NOT EXISTS staging.parts (
    dynamic_table  text NOT NULL REFERENCES staging.plans ON DELETE CASCADE,
    part           text NOT NULL,
    epoch          bigint NOT NULL,
    condition      text NOT NULL,
    stage          text,
    row_count      bigint NOT NULL DEFAULT 0,
    byte_count     bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (dynamic_table, part)
);
