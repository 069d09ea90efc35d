-- Which file holds the seconds of a run, beside its parts: replaced with the roll-ups, in the same transaction. Who
-- reads files takes the one that is named here, and looks again when it is gone.

CREATE TABLE IF NOT EXISTS rollup.segments (
    run_id      text PRIMARY KEY REFERENCES rollup.runs ON DELETE CASCADE,
    name        text NOT NULL,
    sha256      text NOT NULL,
    size_bytes  bigint NOT NULL CHECK (size_bytes > 0),
    row_count   bigint NOT NULL CHECK (row_count >= 0)
);
