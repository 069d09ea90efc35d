-- What is wanted of a run, asked at a server that does not carry it. The one that carries the run
-- hears of it by NOTIFY, and reads it again and again besides.

CREATE TABLE IF NOT EXISTS run_wishes (
    seq          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id       text NOT NULL REFERENCES run_status ON DELETE CASCADE,
    kind         text NOT NULL CHECK (kind IN ('STOP', 'STOP_ENRICHMENT')),
    asked_by     text NOT NULL DEFAULT '',
    server       text NOT NULL DEFAULT '',
    asked_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    answered_by  text CHECK (answered_by <> ''),
    answered_at  timestamptz
);

-- Nobody has to be asked the same thing twice at a time.
CREATE UNIQUE INDEX IF NOT EXISTS run_wishes_open ON run_wishes (run_id, kind) WHERE answered_by IS NULL;
