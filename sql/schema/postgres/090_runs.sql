-- Runs: their control state, who may write it, who started them and what was asked of them.
--
-- The database itself refuses what the contract of the control store forbids, whoever writes. It uses error codes of
-- its own: LS001 forbidden transition, LS002 append-only or unchangeable, LS003 fenced, LS004 no such run, LS005 out
-- of order.

-- run_status has one row per run.
CREATE TABLE IF NOT EXISTS run_status (
    run_id                  text PRIMARY KEY CHECK (run_id <> ''),
    test_id                 text NOT NULL CHECK (test_id = run_id),
    template_id             text REFERENCES test_templates ON DELETE SET NULL,
    test_name               text NOT NULL DEFAULT '',
    scenario_config         jsonb NOT NULL,
    -- The scenario for lists: without the parts that can have megabytes.
    scenario_overview       jsonb GENERATED ALWAYS AS (scenario_config #- '{workload,feed}' #- '{workload,params}'
                                #- '{target,params}' #- '{matrix}') STORED,
    status                  text NOT NULL DEFAULT 'PREPARED' CONSTRAINT run_status_known CHECK (status IN
                                ('PREPARED', 'RUNNING', 'STOPPING', 'CANCELLING', 'COMPLETED', 'FAILED', 'CANCELLED')),
    -- NULL once nothing is left to do.
    phase                   text DEFAULT 'PREPARING' CONSTRAINT run_phase_known CHECK (phase IN
                                ('PREPARING', 'WARMUP', 'MEASUREMENT', 'COOLDOWN', 'PROCESSING')),
    start_time              timestamptz,
    warmup_start_time       timestamptz,
    warmup_end_time         timestamptz,
    measurement_end_time    timestamptz,
    end_time                timestamptz,
    total_workers_expected  integer NOT NULL DEFAULT 0 CHECK (total_workers_expected >= 0),
    workers_registered      integer NOT NULL DEFAULT 0 CHECK (workers_registered >= 0),
    workers_active          integer NOT NULL DEFAULT 0 CHECK (workers_active >= 0),
    workers_completed       integer NOT NULL DEFAULT 0 CHECK (workers_completed >= 0),
    total_ops               bigint NOT NULL DEFAULT 0 CHECK (total_ops >= 0),
    error_count             bigint NOT NULL DEFAULT 0 CHECK (error_count >= 0),
    current_qps             double precision NOT NULL DEFAULT 0,
    worker_targets          jsonb NOT NULL DEFAULT '{}',
    -- The sequence_id of the next control event.
    next_sequence_id        bigint NOT NULL DEFAULT 1 CHECK (next_sequence_id > 0),
    find_max_state          jsonb,
    -- The rules of the run and their results; NULL for a run without rules.
    rules_state             jsonb,
    stop_reason             text CHECK (stop_reason IN
                                ('duration_elapsed', 'user_requested', 'guardrail', 'worker_failure', 'setup_failure')),
    cancellation_reason     text,
    matrix_id               text REFERENCES matrices ON DELETE SET NULL,
    matrix_index            integer NOT NULL DEFAULT 0 CHECK (matrix_index >= 0),
    matrix_label            text NOT NULL DEFAULT '',
    -- The server that owns the run. After lease_until another server may take it over; where lease_until is NULL, the
    -- lease counts from updated_at.
    owner                   text NOT NULL DEFAULT '',
    lease_until             timestamptz,
    -- The fencing token: it rises with each takeover, and a writer names the epoch that it holds.
    owner_epoch             bigint NOT NULL DEFAULT 0 CHECK (owner_epoch >= 0),
    -- When retention or a user deleted the single executions of the run; its figures, seconds and log are still there.
    executions_deleted_at   timestamptz,
    executions_deleted_by   text NOT NULL DEFAULT '',
    -- The name of who made the run, and the user, by whose id rights are judged; a process has no id.
    created_by              text NOT NULL DEFAULT '',
    created_by_id           text NOT NULL DEFAULT '',
    created_at              timestamptz NOT NULL DEFAULT now(),
    updated_at              timestamptz NOT NULL DEFAULT now()
);

ALTER TABLE run_status ADD COLUMN IF NOT EXISTS created_by_id text NOT NULL DEFAULT '';

CREATE INDEX IF NOT EXISTS run_status_newest ON run_status (created_at DESC, run_id DESC);
CREATE INDEX IF NOT EXISTS run_status_template ON run_status (template_id);
CREATE INDEX IF NOT EXISTS run_status_live ON run_status (status)
    WHERE status IN ('RUNNING', 'STOPPING', 'CANCELLING') OR phase = 'PROCESSING';
CREATE INDEX IF NOT EXISTS run_status_matrix ON run_status (matrix_id, matrix_index) WHERE matrix_id IS NOT NULL;

-- guard_run_status allows only the transitions of the contract, and numbers that must rise to rise only.
CREATE OR REPLACE FUNCTION guard_run_status() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.status <> 'PREPARED' THEN
            RAISE EXCEPTION 'a run begins PREPARED, not %', NEW.status USING ERRCODE = 'LS001';
        END IF;
        RETURN NEW;
    END IF;
    IF TG_OP = 'DELETE' THEN
        IF OLD.status IN ('RUNNING', 'STOPPING', 'CANCELLING') THEN
            RAISE EXCEPTION 'run % is %: a live run is not deleted', OLD.run_id, OLD.status USING ERRCODE = 'LS001';
        END IF;
        RETURN OLD;
    END IF;
    IF NEW.run_id <> OLD.run_id THEN
        RAISE EXCEPTION 'a run keeps its id' USING ERRCODE = 'LS002';
    END IF;
    IF NEW.owner_epoch < OLD.owner_epoch THEN
        RAISE EXCEPTION 'the owner epoch of run % only rises', OLD.run_id USING ERRCODE = 'LS005';
    END IF;
    IF NEW.next_sequence_id < OLD.next_sequence_id THEN
        RAISE EXCEPTION 'the sequence of run % only rises', OLD.run_id USING ERRCODE = 'LS005';
    END IF;
    IF NEW.status <> OLD.status AND (OLD.status, NEW.status) NOT IN (
        ('PREPARED', 'RUNNING'), ('PREPARED', 'CANCELLED'),
        ('RUNNING', 'STOPPING'), ('RUNNING', 'CANCELLING'),
        ('STOPPING', 'COMPLETED'), ('STOPPING', 'CANCELLING'),
        ('CANCELLING', 'CANCELLED'), ('CANCELLING', 'FAILED'))
    THEN
        RAISE EXCEPTION 'run % is % and cannot become %', OLD.run_id, OLD.status, NEW.status USING ERRCODE = 'LS001';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER guard_run_status BEFORE INSERT OR UPDATE OR DELETE ON run_status
    FOR EACH ROW EXECUTE FUNCTION guard_run_status();

-- fence_run locks the row of a run until the end of the transaction, and refuses a writer that no longer owns the
-- run.
CREATE OR REPLACE FUNCTION fence_run(run text, epoch bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    current_epoch bigint;
BEGIN
    SELECT owner_epoch INTO current_epoch FROM run_status WHERE run_id = run FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no run %', run USING ERRCODE = 'LS004';
    END IF;
    IF current_epoch <> epoch THEN
        RAISE EXCEPTION 'run % is owned at epoch %, not %', run, current_epoch, epoch USING ERRCODE = 'LS003';
    END IF;
END $$;

-- start_grants records who started a run or a matrix, and the ids of the production connections confirmed then.
CREATE TABLE IF NOT EXISTS start_grants (
    grant_id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id      text UNIQUE REFERENCES run_status ON DELETE CASCADE,
    matrix_id   text UNIQUE REFERENCES matrices ON DELETE CASCADE,
    -- No foreign key: the row stays when the user is deleted, so that the lookup finds the user missing.
    user_id     text NOT NULL CHECK (user_id <> ''),
    user_name   text NOT NULL DEFAULT '',
    confirmed   text[] NOT NULL DEFAULT '{}',
    granted_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT start_grant_subject CHECK (num_nonnulls(run_id, matrix_id) = 1)
);

-- Until version 15 run_commands was called run_wishes.
ALTER TABLE IF EXISTS run_wishes RENAME TO run_commands;
ALTER INDEX IF EXISTS run_wishes_pkey RENAME TO run_commands_pkey;
ALTER SEQUENCE IF EXISTS run_wishes_seq_seq RENAME TO run_commands_seq_seq;
ALTER INDEX IF EXISTS run_wishes_open RENAME TO run_commands_open;

-- run_commands has commands for runs that another server owns. The owner is told by NOTIFY, and also polls the table.
CREATE TABLE IF NOT EXISTS run_commands (
    seq          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id       text NOT NULL REFERENCES run_status ON DELETE CASCADE,
    kind         text NOT NULL CHECK (kind IN ('STOP', 'STOP_ENRICHMENT')),
    asked_by     text NOT NULL DEFAULT '',
    server       text NOT NULL DEFAULT '',
    asked_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    answered_by  text CHECK (answered_by <> ''),
    answered_at  timestamptz,
    heard_by     text CHECK (heard_by <> '')
);

ALTER TABLE run_commands ADD COLUMN IF NOT EXISTS heard_by text CHECK (heard_by <> '');

-- A run has at most one open command of each kind.
CREATE UNIQUE INDEX IF NOT EXISTS run_commands_open ON run_commands (run_id, kind) WHERE answered_by IS NULL;
