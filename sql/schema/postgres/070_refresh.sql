-- Derived tables and who refreshes them. The tables themselves are in the results database; here
-- stand their definitions, what is to be refreshed, who does it, and what became of it.

CREATE TABLE IF NOT EXISTS dynamic_tables (
    name                text PRIMARY KEY CONSTRAINT dynamic_table_name CHECK (name <> '' AND octet_length(name) <= 63),
    kind                text NOT NULL CHECK (kind IN ('SQL', 'INGEST')),
    definition          text NOT NULL DEFAULT '',
    description         text NOT NULL DEFAULT '',
    bundled             boolean NOT NULL DEFAULT false,
    target_lag_seconds  double precision NOT NULL CHECK (target_lag_seconds > 0 AND target_lag_seconds <= 31622400),
    refresh_mode        text NOT NULL DEFAULT 'AUTO' CHECK (refresh_mode IN ('FULL', 'INCREMENTAL', 'AUTO')),
    partition_by        text NOT NULL DEFAULT '' CHECK (partition_by IN ('', 'RUN', 'DAY')),
    priority            integer NOT NULL DEFAULT 0,
    status              text NOT NULL DEFAULT 'ACTIVE' CHECK (status IN ('ACTIVE', 'SUSPENDED', 'FAILED')),
    -- Rises with each change of the definition; an editor names the one that was edited.
    version             bigint NOT NULL DEFAULT 1 CHECK (version > 0),
    -- What a table reads changed last, and for the first time since it was refreshed; as_of is when the
    -- last refresh began that succeeded: what changed until then is in the table.
    changed_at          timestamptz,
    behind_since        timestamptz,
    as_of               timestamptz,
    next_refresh_due    timestamptz,
    last_seconds        double precision NOT NULL DEFAULT 0 CHECK (last_seconds >= 0),
    failures            integer NOT NULL DEFAULT 0 CHECK (failures >= 0),
    error               text NOT NULL DEFAULT '',
    created_by          text NOT NULL DEFAULT '',
    created_at          timestamptz NOT NULL DEFAULT now(),
    updated_at          timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT dynamic_table_definition CHECK ((kind = 'SQL') = (definition <> ''))
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 100, autovacuum_vacuum_scale_factor = 0.1);

ALTER TABLE dynamic_tables DROP CONSTRAINT IF EXISTS dynamic_tables_partition_by_check;
ALTER TABLE dynamic_tables ADD CONSTRAINT dynamic_tables_partition_by_check CHECK (partition_by IN ('', 'RUN', 'DAY'));
ALTER TABLE dynamic_tables ADD COLUMN IF NOT EXISTS updated_by text NOT NULL DEFAULT '';
-- Into how many parts a refresh divides the runs or days that it makes anew; 0 leaves that to how many they are.
ALTER TABLE dynamic_tables ADD COLUMN IF NOT EXISTS partitions integer NOT NULL DEFAULT 0
    CHECK (partitions BETWEEN 0 AND 64 AND (partitions < 2 OR partition_by <> ''));
-- How long refreshes have waited for a worker since they were due: the longest lately.
ALTER TABLE dynamic_tables ADD COLUMN IF NOT EXISTS wait_seconds double precision NOT NULL DEFAULT 0
    CHECK (wait_seconds >= 0);

-- What a table reads. A table is not dropped while another one reads it.
CREATE TABLE IF NOT EXISTS dynamic_table_sources (
    dynamic_table  text NOT NULL REFERENCES dynamic_tables ON DELETE CASCADE,
    source         text NOT NULL REFERENCES dynamic_tables,
    PRIMARY KEY (dynamic_table, source),
    CONSTRAINT dynamic_table_reads_itself CHECK (dynamic_table <> source)
);
CREATE INDEX IF NOT EXISTS dynamic_table_readers ON dynamic_table_sources (source);

-- Dependencies have no circle. The lock makes two transactions that would close one wait for each other.
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

-- The parts of a table that are refreshed each by itself: of an INGEST table the runs, of an SQL table that is divided
-- ranges of runs or days.
CREATE TABLE IF NOT EXISTS refresh_subtasks (
    dynamic_table  text NOT NULL REFERENCES dynamic_tables ON DELETE CASCADE,
    subtask        text NOT NULL CHECK (subtask <> ''),
    status         text NOT NULL CHECK (status IN ('PENDING', 'DONE', 'FAILED')),
    as_of          timestamptz,
    failures       integer NOT NULL DEFAULT 0 CHECK (failures >= 0),
    error          text NOT NULL DEFAULT '',
    updated_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (dynamic_table, subtask)
) WITH (fillfactor = 70);
-- When somebody asked to take a run in once more, though nothing of it has changed.
ALTER TABLE refresh_subtasks ADD COLUMN IF NOT EXISTS asked_at timestamptz;
DROP INDEX IF EXISTS refresh_subtasks_failed;
CREATE INDEX IF NOT EXISTS refresh_subtasks_failing ON refresh_subtasks (dynamic_table) WHERE failures > 0;

-- The queue: one entry at most for a table, or for a part of it. The subtask '' is all of the table.
-- Rows come and go all the time, so that dead ones are to be cleared early and space is left for them.
CREATE TABLE IF NOT EXISTS pending_refreshes (
    dynamic_table     text NOT NULL REFERENCES dynamic_tables ON DELETE CASCADE,
    subtask           text NOT NULL DEFAULT '',
    priority          integer NOT NULL DEFAULT 0,
    next_refresh_due  timestamptz NOT NULL,
    enqueued_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (dynamic_table, subtask)
) WITH (fillfactor = 70, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0,
    autovacuum_analyze_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX IF NOT EXISTS pending_refreshes_order
    ON pending_refreshes (priority DESC, next_refresh_due, dynamic_table, subtask);

-- The claims, of which expires_at alone decides. Epochs of one table only rise: a claim is made while the row of
-- pending_refreshes is locked, and takes the next number then.
CREATE SEQUENCE IF NOT EXISTS refresh_epochs;
CREATE TABLE IF NOT EXISTS refresh_claims (
    dynamic_table  text NOT NULL,
    subtask        text NOT NULL DEFAULT '',
    worker_id      text NOT NULL CHECK (worker_id <> ''),
    epoch          bigint NOT NULL UNIQUE CHECK (epoch > 0),
    claimed_at     timestamptz NOT NULL,
    heartbeat_at   timestamptz NOT NULL CHECK (heartbeat_at >= claimed_at),
    expires_at     timestamptz NOT NULL CHECK (expires_at > heartbeat_at),
    PRIMARY KEY (dynamic_table, subtask),
    FOREIGN KEY (dynamic_table, subtask) REFERENCES pending_refreshes ON DELETE CASCADE
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0,
    autovacuum_analyze_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE IF NOT EXISTS refresh_history (
    seq            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    dynamic_table  text NOT NULL REFERENCES dynamic_tables ON DELETE CASCADE,
    subtask        text NOT NULL DEFAULT '',
    worker_id      text NOT NULL,
    epoch          bigint NOT NULL UNIQUE,
    started_at     timestamptz NOT NULL,
    ended_at       timestamptz NOT NULL CHECK (ended_at >= started_at),
    refresh_mode   text NOT NULL DEFAULT '' CHECK (refresh_mode IN ('', 'FULL', 'INCREMENTAL')),
    -- Why that mode, or what was left out.
    note           text NOT NULL DEFAULT '',
    row_count      bigint NOT NULL DEFAULT 0 CHECK (row_count >= 0),
    byte_count     bigint NOT NULL DEFAULT 0 CHECK (byte_count >= 0),
    -- How old the oldest change was that the refresh brought in; NULL when it brought in none.
    lag_seconds    double precision,
    error          text NOT NULL DEFAULT ''
);
CREATE INDEX IF NOT EXISTS refresh_history_newest ON refresh_history (dynamic_table, seq);

-- Whoever waits for something to refresh is told when a run has ended or is gone.
CREATE OR REPLACE FUNCTION tell_refresh() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('loadstone_refresh', '');
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER tell_refresh_of_end AFTER UPDATE ON run_status FOR EACH ROW
    WHEN (NEW.phase IS NULL AND OLD.phase IS NOT NULL) EXECUTE FUNCTION tell_refresh();
-- A deleted run may have left its seconds in the results database, from while it went on, and may never have been taken
-- in: it is noted as if it had been, so that somebody looks and removes what is there.
CREATE OR REPLACE FUNCTION tell_refresh_of_deletion() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO refresh_subtasks (dynamic_table, subtask, status)
        SELECT t.name, g.run_id, 'DONE' FROM gone g, dynamic_tables t
        WHERE t.name = 'runs' AND t.kind = 'INGEST' AND g.start_time IS NOT NULL
        ORDER BY g.run_id ON CONFLICT (dynamic_table, subtask) DO UPDATE SET updated_at = clock_timestamp();
    -- What could not be taken in may well be removed.
    UPDATE refresh_subtasks u SET status = 'DONE', failures = 0, error = '' FROM gone g
        WHERE u.subtask = g.run_id AND u.status = 'FAILED';
    PERFORM pg_notify('loadstone_refresh', '');
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER tell_refresh_of_deletion AFTER DELETE ON run_status REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION tell_refresh_of_deletion();
CREATE OR REPLACE TRIGGER tell_refresh_of_work AFTER INSERT ON pending_refreshes
    FOR EACH STATEMENT EXECUTE FUNCTION tell_refresh();
