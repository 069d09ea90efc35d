-- Derived tables: SQL definitions over results that are refreshed as runs end. The tables themselves are in the
-- results database; their definitions, state and history are here.

-- dynamic_tables has one row per derived table. Refreshes update it all the time, hence the settings of autovacuum.
CREATE TABLE IF NOT EXISTS dynamic_tables (
    name                text PRIMARY KEY CONSTRAINT dynamic_table_name CHECK (name <> '' AND octet_length(name) <= 63),
    -- SQL: the rows of a SELECT, the definition. INGEST: what is taken in of finished runs; each run is a subtask.
    kind                text NOT NULL CHECK (kind IN ('SQL', 'INGEST')),
    definition          text NOT NULL DEFAULT '',
    description         text NOT NULL DEFAULT '',
    bundled             boolean NOT NULL DEFAULT false,
    target_lag_seconds  double precision NOT NULL CHECK (target_lag_seconds > 0 AND target_lag_seconds <= 31622400),
    refresh_mode        text NOT NULL DEFAULT 'AUTO' CHECK (refresh_mode IN ('FULL', 'INCREMENTAL', 'AUTO')),
    partition_by        text NOT NULL DEFAULT '' CHECK (partition_by IN ('', 'RUN', 'DAY')),
    -- Into how many parts a refresh divides the runs or days to compute; 0 decides by their number.
    partitions          integer NOT NULL DEFAULT 0
                            CHECK (partitions BETWEEN 0 AND 64 AND (partitions < 2 OR partition_by <> '')),
    priority            integer NOT NULL DEFAULT 0,
    status              text NOT NULL DEFAULT 'ACTIVE' CHECK (status IN ('ACTIVE', 'SUSPENDED', 'FAILED')),
    -- Rises with each change of the definition; an editor names the version that was read.
    version             bigint NOT NULL DEFAULT 1 CHECK (version > 0),
    -- When a source of the table last changed, and when it first changed after the last refresh.
    changed_at          timestamptz,
    behind_since        timestamptz,
    -- When the last successful refresh began: the table has all changes before that.
    as_of               timestamptz,
    next_refresh_due    timestamptz,
    last_seconds        double precision NOT NULL DEFAULT 0 CHECK (last_seconds >= 0),
    -- How long refreshes waited for a worker after they were due: the longest wait lately.
    wait_seconds        double precision NOT NULL DEFAULT 0 CHECK (wait_seconds >= 0),
    failures            integer NOT NULL DEFAULT 0 CHECK (failures >= 0),
    error               text NOT NULL DEFAULT '',
    created_by          text NOT NULL DEFAULT '',
    -- The user whose work the refreshes are: who created the table, changed its definition last, or resumed it last. When
    -- this user is locked out, deleted or a viewer, the table is suspended, with the reason.
    -- Bundled tables, and those of versions before 18, have none.
    owner_id            text NOT NULL DEFAULT '',
    owner               text NOT NULL DEFAULT '',
    suspended_reason    text NOT NULL DEFAULT '',
    updated_by          text NOT NULL DEFAULT '',
    created_at          timestamptz NOT NULL DEFAULT now(),
    updated_at          timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT dynamic_table_definition CHECK ((kind = 'SQL') = (definition <> ''))
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 100, autovacuum_vacuum_scale_factor = 0.1);

ALTER TABLE dynamic_tables ADD COLUMN IF NOT EXISTS owner_id text NOT NULL DEFAULT '',
    ADD COLUMN IF NOT EXISTS owner text NOT NULL DEFAULT '',
    ADD COLUMN IF NOT EXISTS suspended_reason text NOT NULL DEFAULT '';

-- dynamic_table_sources says which tables a table reads. A table cannot be dropped while another one reads it.
CREATE TABLE IF NOT EXISTS dynamic_table_sources (
    dynamic_table  text NOT NULL REFERENCES dynamic_tables ON DELETE CASCADE,
    source         text NOT NULL REFERENCES dynamic_tables,
    PRIMARY KEY (dynamic_table, source),
    CONSTRAINT dynamic_table_reads_itself CHECK (dynamic_table <> source)
);

CREATE INDEX IF NOT EXISTS dynamic_table_readers ON dynamic_table_sources (source);

-- guard_dynamic_table_sources refuses a cycle of sources. The lock makes transactions that could close one together
-- wait for each other.
CREATE OR REPLACE FUNCTION guard_dynamic_table_sources() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(1818321522);
    IF EXISTS (
        WITH RECURSIVE below AS (
            SELECT NEW.source AS name
            UNION
            SELECT s.source FROM dynamic_table_sources s JOIN below b ON s.dynamic_table = b.name)
        SELECT FROM below WHERE name = NEW.dynamic_table)
    THEN
        RAISE EXCEPTION 'dynamic table % would read itself through %', NEW.dynamic_table, NEW.source
            USING ERRCODE = 'LS005';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER guard_dynamic_table_sources BEFORE INSERT OR UPDATE ON dynamic_table_sources
    FOR EACH ROW EXECUTE FUNCTION guard_dynamic_table_sources();

-- refresh_subtasks has the parts of a table that are refreshed separately: the runs of an INGEST table, and ranges of
-- runs or days of an SQL table that is divided.
CREATE TABLE IF NOT EXISTS refresh_subtasks (
    dynamic_table  text NOT NULL REFERENCES dynamic_tables ON DELETE CASCADE,
    subtask        text NOT NULL CHECK (subtask <> ''),
    status         text NOT NULL CHECK (status IN ('PENDING', 'DONE', 'FAILED')),
    as_of          timestamptz,
    -- When a user asked to take in a run again that has not changed.
    asked_at       timestamptz,
    failures       integer NOT NULL DEFAULT 0 CHECK (failures >= 0),
    error          text NOT NULL DEFAULT '',
    updated_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (dynamic_table, subtask)
) WITH (fillfactor = 70);

CREATE INDEX IF NOT EXISTS refresh_subtasks_failing ON refresh_subtasks (dynamic_table) WHERE failures > 0;

CREATE TABLE IF NOT EXISTS refresh_history (
    seq            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    dynamic_table  text NOT NULL REFERENCES dynamic_tables ON DELETE CASCADE,
    subtask        text NOT NULL DEFAULT '',
    worker_id      text NOT NULL,
    epoch          bigint NOT NULL UNIQUE,
    started_at     timestamptz NOT NULL,
    ended_at       timestamptz NOT NULL CHECK (ended_at >= started_at),
    refresh_mode   text NOT NULL DEFAULT '' CHECK (refresh_mode IN ('', 'FULL', 'INCREMENTAL')),
    -- Why this mode was chosen, or what was left out.
    note           text NOT NULL DEFAULT '',
    row_count      bigint NOT NULL DEFAULT 0 CHECK (row_count >= 0),
    byte_count     bigint NOT NULL DEFAULT 0 CHECK (byte_count >= 0),
    -- The age of the oldest change in the refresh; NULL when it had none.
    lag_seconds    double precision,
    error          text NOT NULL DEFAULT ''
);

CREATE INDEX IF NOT EXISTS refresh_history_newest ON refresh_history (dynamic_table, seq);

-- refresh_workers has the processes that refresh tables. Each writes seen_at every few seconds. One that was not seen
-- for half a minute is ignored, and its claims expire.
CREATE TABLE IF NOT EXISTS refresh_workers (
    worker_id  text PRIMARY KEY CHECK (worker_id <> ''),
    role       text NOT NULL CHECK (role IN ('SERVER', 'NODE')),
    host       text NOT NULL DEFAULT '',
    kinds      text[] NOT NULL,
    slots      integer NOT NULL CHECK (slots > 0),
    -- Why it takes no work now.
    waits_for  text NOT NULL DEFAULT '',
    seen_at    timestamptz NOT NULL
) WITH (fillfactor = 50);
