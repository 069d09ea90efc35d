-- Which runs were let go of, and what of their files is still to be removed.

-- The single executions of a run were deleted; its figures, seconds and log stay.
ALTER TABLE run_status ADD COLUMN IF NOT EXISTS executions_deleted_at timestamptz;
ALTER TABLE run_status ADD COLUMN IF NOT EXISTS executions_deleted_by text NOT NULL DEFAULT '';

-- Files are not in this database: what was forgotten here is removed there afterwards, by whoever is alive then.
CREATE TABLE IF NOT EXISTS run_leftovers (
    run_id  text PRIMARY KEY CHECK (run_id <> ''),
    -- All files of the run; else those with executions.
    whole   boolean NOT NULL,
    since   timestamptz NOT NULL DEFAULT clock_timestamp()
);
