-- Admission: the connections that runs reserve on nodes that servers share, and the queue of runs that wait for them.

-- Until version 15 run_reservations was called run_rooms, run_queue.demands was works, run_admission_lock was
-- run_rooms_turn, and release_reservations was release_room.
ALTER TABLE IF EXISTS run_rooms RENAME TO run_reservations;
ALTER INDEX IF EXISTS run_rooms_pkey RENAME TO run_reservations_pkey;
ALTER TABLE IF EXISTS run_rooms_turn RENAME TO run_admission_lock;
DROP FUNCTION IF EXISTS release_room() CASCADE;
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass('run_queue') AND attname = 'works') THEN
        ALTER TABLE run_queue RENAME works TO demands;
    END IF;
END $$;

-- run_reservations has one reservation per run and worker.
CREATE TABLE IF NOT EXISTS run_reservations (
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
    demands    jsonb NOT NULL,
    asked_by   text NOT NULL DEFAULT '',
    since      timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- When a server last knew nodes that could take the run if they were free. Runs behind a run that no node could
    -- take for a while may overtake it.
    fitted_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- run_admission_lock has no rows. Whoever places a run locks this table first, so that waiting servers queue up and need
-- not retry.
CREATE TABLE IF NOT EXISTS run_admission_lock (nothing boolean);

-- release_reservations takes a run out of the queue when it starts, and frees its reservations when it ends, whoever ends it.
CREATE OR REPLACE FUNCTION release_reservations() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM run_queue WHERE run_id = NEW.run_id;
    IF NEW.status <> 'RUNNING' THEN
        DELETE FROM run_reservations WHERE run_id = NEW.run_id;
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER release_reservations AFTER UPDATE OF status ON run_status FOR EACH ROW
    WHEN (NEW.status IN ('RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED') AND NEW.status <> OLD.status)
    EXECUTE FUNCTION release_reservations();
