-- What the refreshes of derived tables keep for themselves.

-- fences has the highest epoch that has begun to write a table or a part of it. A writer locks the row and goes on
-- only when no higher epoch is there.
CREATE TABLE IF NOT EXISTS staging.fences (
    dynamic_table  text NOT NULL,
    subtask        text NOT NULL,
    epoch          bigint NOT NULL,
    PRIMARY KEY (dynamic_table, subtask)
);

-- partitions has the partitions of a derived table, each with the version of the run from which it was computed.
CREATE TABLE IF NOT EXISTS staging.partitions (
    dynamic_table  text NOT NULL,
    run_id         text NOT NULL,
    run_version    bigint NOT NULL,
    day            text NOT NULL DEFAULT '',
    PRIMARY KEY (dynamic_table, run_id)
);

-- contents has the version of the definition from which a derived table was computed.
CREATE TABLE IF NOT EXISTS staging.contents (
    dynamic_table       text PRIMARY KEY,
    definition_version  bigint NOT NULL,
    columns             text NOT NULL
);

-- plans and parts belong to a refresh that is divided. Each part is computed into a table of its own ("stage"), which
-- is named here when it is complete. When all parts are complete their rows go into the derived table at once.
CREATE TABLE IF NOT EXISTS staging.plans (
    dynamic_table       text PRIMARY KEY,
    epoch               bigint NOT NULL,
    definition_version  bigint NOT NULL,
    columns             text NOT NULL,
    partition_by        text NOT NULL,
    refresh_mode        text NOT NULL,
    note                text NOT NULL,
    -- The partitions to compute, and the runs with their versions and days that the table has afterwards.
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

-- waiting_queries are queries that wait for their turn: who cancels one, on whichever server, deletes its row.
CREATE TABLE IF NOT EXISTS staging.waiting_queries (
    session    text PRIMARY KEY,
    since      timestamptz NOT NULL DEFAULT now()
);
