-- What users note at moments of runs, such as "index created".

CREATE TABLE IF NOT EXISTS run_marks (
    mark_id     text PRIMARY KEY,
    run_id      text NOT NULL REFERENCES run_status ON DELETE CASCADE,
    at          timestamptz NOT NULL,
    mark_text   text NOT NULL CONSTRAINT run_mark_text CHECK (mark_text <> '' AND length(mark_text) <= 200),
    made_by     text NOT NULL DEFAULT '',
    made_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_by  text NOT NULL DEFAULT '',
    changed_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE INDEX IF NOT EXISTS run_marks_of_run ON run_marks (run_id, at);

-- Users may change the load of a run while it goes on.
ALTER TABLE run_control_events DROP CONSTRAINT IF EXISTS event_type_known;
ALTER TABLE run_control_events ADD CONSTRAINT event_type_known CHECK (event_type IN
    ('START', 'STOP', 'SET_PHASE', 'SET_WORKER_TARGET', 'LOAD_CHANGED'));
