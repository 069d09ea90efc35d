-- Segments: the file with the seconds of a run, beside the Parquet files of the run. The row is replaced in the
-- transaction that replaces the roll-ups. A reader whose file is gone reads the row again.

CREATE TABLE IF NOT EXISTS rollup.segments (
    run_id      text PRIMARY KEY REFERENCES rollup.runs ON DELETE CASCADE,
    name        text NOT NULL,
    sha256      text NOT NULL,
    size_bytes  bigint NOT NULL CHECK (size_bytes > 0),
    row_count   bigint NOT NULL CHECK (row_count >= 0),
    -- The version of the format. Runs with an older version are taken in again.
    version     integer NOT NULL DEFAULT 1
);
