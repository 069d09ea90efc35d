-- Who may do what, and who did.

CREATE TABLE IF NOT EXISTS users (
    user_id     text PRIMARY KEY CHECK (user_id <> ''),
    user_name   text NOT NULL UNIQUE CHECK (user_name <> ''),
    role        text NOT NULL CHECK (role IN ('admin', 'user')),
    created_at  timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE IF NOT EXISTS api_tokens (
    token_id       text PRIMARY KEY CHECK (token_id <> ''),
    user_id        text NOT NULL REFERENCES users ON DELETE CASCADE,
    kind           text NOT NULL CHECK (kind IN ('api', 'session', 'signin')),
    name           text NOT NULL DEFAULT '',
    -- The secret itself is nowhere.
    secret_sha256  bytea NOT NULL UNIQUE CHECK (length(secret_sha256) = 32),
    expires_at     timestamptz,
    last_used_at   timestamptz,
    created_at     timestamptz NOT NULL DEFAULT now()
);

-- What an API token may do: read, write too, or make and revoke tokens as well.
ALTER TABLE api_tokens ADD COLUMN IF NOT EXISTS scope text NOT NULL DEFAULT 'write' CHECK (scope IN ('read', 'write', 'admin'));

CREATE INDEX IF NOT EXISTS api_tokens_by_user ON api_tokens (user_id, kind);

CREATE TABLE IF NOT EXISTS audit_log (
    audit_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- No reference: the line outlives its user.
    user_id   text NOT NULL DEFAULT '',
    action    text NOT NULL CHECK (action <> ''),
    object    text NOT NULL DEFAULT '',
    detail    text NOT NULL DEFAULT ''
);

CREATE OR REPLACE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is append-only' USING ERRCODE = 'LS002';
END $$;

CREATE OR REPLACE TRIGGER refuse_change BEFORE UPDATE OR DELETE ON audit_log
    FOR EACH ROW EXECUTE FUNCTION refuse_audit_change();
CREATE OR REPLACE TRIGGER refuse_truncate BEFORE TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();
