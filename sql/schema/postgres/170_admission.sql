-- Admission: the connections that runs reserve on nodes that servers share, and the queue of runs that wait for them.

-- run_rooms has one reservation per run and worker.
CREATE TABLE IF NOT EXISTS run_rooms (
    run_id       text NOT NULL REFERENCES run_status ON DELETE CASCADE,
    worker_id    text NOT NULL CHECK (worker_id <> ''),
    -- The node of a server itself has the name of the server appended.
    node_id      text NOT NULL CHECK (node_id <> ''),
    connections  integer NOT NULL CHECK (connections >= 0),
    PRIMARY KEY (run_id, worker_id)
);

CREATE TABLE IF NOT EXISTS run_queue (
    place      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id     text NOT NULL UNIQUE REFERENCES run_status ON DELETE CASCADE,
    -- The only node that can take the run; empty when any node can.
    pool       text NOT NULL DEFAULT '',
    -- What each worker of the run needs.
    works      jsonb NOT NULL,
    asked_by   text NOT NULL DEFAULT '',
    since      timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- When a server last knew nodes that could take the run if they were free. Runs behind a run that no node could
    -- take for a while may overtake it.
    fitted_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- run_rooms_turn has no rows. Whoever places a run locks this table first, so that waiting servers queue up and need
-- not retry.
CREATE TABLE IF NOT EXISTS run_rooms_turn (nothing boolean);

-- release_room takes a run out of the queue when it starts, and frees its reservations when it ends, whoever ends it.
CREATE OR REPLACE FUNCTION release_room() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM run_queue WHERE run_id = NEW.run_id;
    IF NEW.status <> 'RUNNING' THEN
        DELETE FROM run_rooms WHERE run_id = NEW.run_id;
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER release_room AFTER UPDATE OF status ON run_status FOR EACH ROW
    WHEN (NEW.status IN ('RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED') AND NEW.status <> OLD.status)
    EXECUTE FUNCTION release_room();
