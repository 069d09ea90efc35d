-- The control state of runs. The database refuses what the contract forbids,
-- whoever writes. Its own error codes: LS001 forbidden transition, LS002
-- append-only or unchangeable, LS003 fenced, LS004 no such run, LS005 out of order.

CREATE TABLE IF NOT EXISTS run_status (
    run_id                  text PRIMARY KEY CHECK (run_id <> ''),
    test_id                 text NOT NULL CHECK (test_id = run_id),
    template_id             text REFERENCES test_templates ON DELETE SET NULL,
    test_name               text NOT NULL DEFAULT '',
    scenario_config         jsonb NOT NULL,
    status                  text NOT NULL DEFAULT 'PREPARED' CONSTRAINT run_status_known CHECK (status IN
                                ('PREPARED', 'RUNNING', 'STOPPING', 'CANCELLING', 'COMPLETED', 'FAILED', 'CANCELLED')),
    -- NULL when nothing is left to do.
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
    next_sequence_id        bigint NOT NULL DEFAULT 1 CHECK (next_sequence_id > 0),
    find_max_state          jsonb,
    stop_reason             text CHECK (stop_reason IN
                                ('duration_elapsed', 'user_requested', 'guardrail', 'worker_failure', 'setup_failure')),
    cancellation_reason     text,
    created_by              text NOT NULL DEFAULT '',
    -- Rises each time a server takes the run over; writers name the one they hold.
    owner_epoch             bigint NOT NULL DEFAULT 0 CHECK (owner_epoch >= 0),
    created_at              timestamptz NOT NULL DEFAULT now(),
    updated_at              timestamptz NOT NULL DEFAULT now()
);

-- The scenario as lists show it, without the parts that may have megabytes.
ALTER TABLE run_status ADD COLUMN IF NOT EXISTS scenario_overview jsonb
    GENERATED ALWAYS AS (scenario_config #- '{workload,feed}' #- '{workload,params}' #- '{target,params}' #- '{matrix}') STORED;

-- Who carries the run, and until when nobody else may; a row without a lease has
-- that of its last change.
ALTER TABLE run_status ADD COLUMN IF NOT EXISTS owner text NOT NULL DEFAULT '';
ALTER TABLE run_status ADD COLUMN IF NOT EXISTS lease_until timestamptz;

-- The rules of the run with what they gave; NULL without any.
ALTER TABLE run_status ADD COLUMN IF NOT EXISTS rules_state jsonb;

CREATE INDEX IF NOT EXISTS run_status_newest ON run_status (created_at DESC, run_id DESC);
CREATE INDEX IF NOT EXISTS run_status_template ON run_status (template_id);
CREATE INDEX IF NOT EXISTS run_status_live ON run_status (status)
    WHERE status IN ('RUNNING', 'STOPPING', 'CANCELLING') OR phase = 'PROCESSING';

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

-- fence_run locks a run for the transaction and refuses a writer that no longer owns it.
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

CREATE TABLE IF NOT EXISTS run_control_events (
    event_id     text PRIMARY KEY,
    run_id       text NOT NULL REFERENCES run_status ON DELETE CASCADE,
    event_type   text NOT NULL,
    event_data   jsonb NOT NULL,
    sequence_id  bigint NOT NULL CHECK (sequence_id > 0),
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (run_id, sequence_id),
    CONSTRAINT event_scope_known CHECK (coalesce(event_data ->> 'scope', '') IN ('RUN', 'WORKER_GROUP', 'WORKER')),
    CONSTRAINT event_scope_complete CHECK (CASE event_data ->> 'scope'
        WHEN 'WORKER' THEN coalesce(event_data ->> 'worker_id', '') <> ''
        WHEN 'WORKER_GROUP' THEN event_data ? 'worker_group_id'
        ELSE true END)
);

-- An event's id was taken from next_sequence_id, and is higher than those before it.
CREATE OR REPLACE FUNCTION guard_control_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.sequence_id >= (SELECT next_sequence_id FROM run_status WHERE run_id = NEW.run_id) THEN
        RAISE EXCEPTION 'sequence id % of run % was not taken from next_sequence_id', NEW.sequence_id, NEW.run_id
            USING ERRCODE = 'LS005';
    END IF;
    IF NEW.sequence_id < (SELECT max(sequence_id) FROM run_control_events WHERE run_id = NEW.run_id) THEN
        RAISE EXCEPTION 'sequence id % of run % is not the highest', NEW.sequence_id, NEW.run_id USING ERRCODE = 'LS005';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER guard_control_event BEFORE INSERT ON run_control_events
    FOR EACH ROW EXECUTE FUNCTION guard_control_event();

-- refuse_change keeps a table append-only. Rows go with the run they belong to:
-- a cascade runs inside another trigger.
CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND pg_trigger_depth() > 1 THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'LS002';
END $$;

CREATE OR REPLACE TRIGGER refuse_change BEFORE UPDATE OR DELETE ON run_control_events
    FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE TABLE IF NOT EXISTS worker_heartbeats (
    run_id           text NOT NULL REFERENCES run_status ON DELETE CASCADE,
    worker_id        text NOT NULL CHECK (worker_id <> ''),
    worker_group_id  integer NOT NULL DEFAULT 0 CHECK (worker_group_id >= 0),
    node_id          text NOT NULL DEFAULT '',
    test_id          text NOT NULL DEFAULT '',
    status           text NOT NULL CONSTRAINT worker_status_known CHECK (status IN
                         ('STARTING', 'READY', 'RUNNING', 'DRAINING', 'COMPLETED', 'FAILED', 'DEAD')),
    phase            text CHECK (phase IN ('PREPARING', 'WARMUP', 'MEASUREMENT', 'COOLDOWN', 'PROCESSING')),
    last_heartbeat   timestamptz NOT NULL DEFAULT now(),
    error            text NOT NULL DEFAULT '',
    created_at       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (run_id, worker_id)
);

-- One workload on several targets: what its runs have in common. Each run names
-- its matrix and its place in it.
CREATE TABLE IF NOT EXISTS matrices (
    matrix_id        text PRIMARY KEY CHECK (matrix_id <> ''),
    matrix_name      text NOT NULL DEFAULT '',
    template_id      text REFERENCES test_templates ON DELETE SET NULL,
    labels           jsonb NOT NULL DEFAULT '[]',
    stop_on_failure  boolean NOT NULL DEFAULT false,
    status           text NOT NULL DEFAULT 'PREPARED' CHECK (status IN
                         ('PREPARED', 'RUNNING', 'CANCELLING', 'COMPLETED', 'FAILED', 'CANCELLED')),
    start_time       timestamptz,
    end_time         timestamptz,
    created_by       text NOT NULL DEFAULT '',
    created_at       timestamptz NOT NULL DEFAULT now()
);
-- Who makes its runs one after another, and until when nobody else may.
ALTER TABLE matrices ADD COLUMN IF NOT EXISTS owner text NOT NULL DEFAULT '';
ALTER TABLE matrices ADD COLUMN IF NOT EXISTS lease_until timestamptz;
CREATE INDEX IF NOT EXISTS matrices_newest ON matrices (created_at DESC, matrix_id DESC);

ALTER TABLE run_status ADD COLUMN IF NOT EXISTS matrix_id text REFERENCES matrices ON DELETE SET NULL;
ALTER TABLE run_status ADD COLUMN IF NOT EXISTS matrix_index integer NOT NULL DEFAULT 0 CHECK (matrix_index >= 0);
ALTER TABLE run_status ADD COLUMN IF NOT EXISTS matrix_label text NOT NULL DEFAULT '';
CREATE INDEX IF NOT EXISTS run_status_matrix ON run_status (matrix_id, matrix_index) WHERE matrix_id IS NOT NULL;
