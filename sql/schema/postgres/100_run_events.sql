-- The control events of runs: an append-only sequence for each run.

CREATE TABLE IF NOT EXISTS run_control_events (
    event_id     text PRIMARY KEY,
    run_id       text NOT NULL REFERENCES run_status ON DELETE CASCADE,
    event_type   text NOT NULL CONSTRAINT event_type_known CHECK (event_type IN
                     ('START', 'STOP', 'SET_PHASE', 'SET_WORKER_TARGET', 'LOAD_CHANGED')),
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

-- guard_control_event allows only sequence ids that were taken from next_sequence_id and are the highest of their
-- run.
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

-- refuse_change keeps a table append-only. Rows are still deleted with their run: a cascade runs inside another
-- trigger.
CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND pg_trigger_depth() > 1 THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'LS002';
END $$;

CREATE OR REPLACE TRIGGER refuse_change BEFORE UPDATE OR DELETE ON run_control_events
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
