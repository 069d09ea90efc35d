-- What is made of runs that are over: links to their reports, notes, and the baselines of templates.

-- A link is known by the SHA-256 of its secret. It outlives its run, so that who opens it is told what became of that.
CREATE TABLE IF NOT EXISTS run_shares (
    share_id       text PRIMARY KEY CHECK (share_id <> ''),
    run_id         text NOT NULL CHECK (run_id <> ''),
    run_name       text NOT NULL DEFAULT '',
    secret_sha256  bytea NOT NULL UNIQUE CONSTRAINT share_secret_hash CHECK (octet_length(secret_sha256) = 32),
    created_by     text NOT NULL DEFAULT '',
    created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at     timestamptz NOT NULL,
    used_at        timestamptz,
    use_count      bigint NOT NULL DEFAULT 0 CHECK (use_count >= 0)
);
CREATE INDEX IF NOT EXISTS run_shares_run ON run_shares (run_id);

CREATE TABLE IF NOT EXISTS run_notes (
    run_id      text PRIMARY KEY REFERENCES run_status ON DELETE CASCADE,
    note        text NOT NULL CONSTRAINT run_note_length CHECK (length(note) <= 10000),
    version     bigint NOT NULL DEFAULT 1 CHECK (version > 0),
    updated_by  text NOT NULL DEFAULT '',
    updated_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE IF NOT EXISTS template_baselines (
    template_id  text PRIMARY KEY REFERENCES test_templates ON DELETE CASCADE,
    run_id       text NOT NULL REFERENCES run_status ON DELETE CASCADE,
    set_by       text NOT NULL DEFAULT '',
    set_at       timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX IF NOT EXISTS template_baselines_run ON template_baselines (run_id);
