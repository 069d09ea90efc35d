-- What runs hold on the nodes that servers share, and who waits for it.

CREATE TABLE IF NOT EXISTS run_rooms (
    run_id       text NOT NULL REFERENCES run_status ON DELETE CASCADE,
    worker_id    text NOT NULL CHECK (worker_id <> ''),
    -- A server's own node has the server's name behind it.
    node_id      text NOT NULL CHECK (node_id <> ''),
    connections  integer NOT NULL CHECK (connections >= 0),
    PRIMARY KEY (run_id, worker_id)
);

CREATE TABLE IF NOT EXISTS run_queue (
    place     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id    text NOT NULL UNIQUE REFERENCES run_status ON DELETE CASCADE,
    -- The one node that can carry the run, empty where any can.
    pool      text NOT NULL DEFAULT '',
    -- What each run worker needs.
    works     jsonb NOT NULL,
    asked_by  text NOT NULL DEFAULT '',
    since     timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- When a server last knew nodes that could carry the run, were they free: one that nobody could carry for long is
-- let by.
ALTER TABLE run_queue ADD COLUMN IF NOT EXISTS fitted_at timestamptz NOT NULL DEFAULT clock_timestamp();

-- Who places a run locks this table first, so that many at once wait and do not retry. It has no rows.
CREATE TABLE IF NOT EXISTS run_rooms_turn (nothing boolean);

-- A run that starts waits no longer, and one that is over holds nothing, whoever ended it.
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
