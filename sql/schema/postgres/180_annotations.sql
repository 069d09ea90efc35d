-- What users add to runs: marks, notes, baselines of templates, and links to reports.

-- run_marks has notes at moments of a run, such as "index created".
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

-- run_notes has one note per run.
CREATE TABLE IF NOT EXISTS run_notes (
    run_id      text PRIMARY KEY REFERENCES run_status ON DELETE CASCADE,
    note        text NOT NULL CONSTRAINT run_note_length CHECK (length(note) <= 10000),
    version     bigint NOT NULL DEFAULT 1 CHECK (version > 0),
    updated_by  text NOT NULL DEFAULT '',
    updated_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- template_baselines has the run with which later runs of a template are compared.
CREATE TABLE IF NOT EXISTS template_baselines (
    template_id  text PRIMARY KEY REFERENCES test_templates ON DELETE CASCADE,
    run_id       text NOT NULL REFERENCES run_status ON DELETE CASCADE,
    set_by       text NOT NULL DEFAULT '',
    set_at       timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE INDEX IF NOT EXISTS template_baselines_run ON template_baselines (run_id);

-- run_shares has links to the reports of runs. A link stays when its run is deleted, so that whoever opens it is told
-- so.
CREATE TABLE IF NOT EXISTS run_shares (
    share_id       text PRIMARY KEY CHECK (share_id <> ''),
    run_id         text NOT NULL CHECK (run_id <> ''),
    run_name       text NOT NULL DEFAULT '',
    -- The secret of the link itself is stored nowhere: this and hash_key are as in api_tokens.
    secret_sha256  bytea NOT NULL UNIQUE CONSTRAINT share_secret_hash CHECK (octet_length(secret_sha256) = 32),
    created_by     text NOT NULL DEFAULT '',
    created_by_id  text NOT NULL DEFAULT '',
    created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at     timestamptz NOT NULL,
    used_at        timestamptz,
    use_count      bigint NOT NULL DEFAULT 0 CHECK (use_count >= 0),
    hash_key       integer NOT NULL DEFAULT 0
);

ALTER TABLE run_shares ADD COLUMN IF NOT EXISTS hash_key integer NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS created_by_id text NOT NULL DEFAULT '';

CREATE INDEX IF NOT EXISTS run_shares_run ON run_shares (run_id);
