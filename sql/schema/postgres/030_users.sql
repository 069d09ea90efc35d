-- Users and their tokens.

CREATE TABLE IF NOT EXISTS users (
    user_id        text PRIMARY KEY CHECK (user_id <> ''),
    user_name      text NOT NULL UNIQUE CHECK (user_name <> ''),
    role           text NOT NULL CHECK (role IN ('admin', 'operator', 'viewer')),
    -- The argon2id hash of the password, with salt and cost; empty for a user without a password.
    password_hash  text NOT NULL DEFAULT '',
    disabled_at    timestamptz,
    -- For users who sign in with OpenID Connect: the provider's address and its id of the user.
    external_id    text CHECK (external_id <> ''),
    created_at     timestamptz NOT NULL DEFAULT now()
);

-- User names differ by more than the case of ASCII letters. The C collation gives the same answer in every locale.
CREATE UNIQUE INDEX IF NOT EXISTS users_lower_name_key ON users (lower(user_name COLLATE "C"));
CREATE UNIQUE INDEX IF NOT EXISTS users_external_id_key ON users (external_id);

-- api_tokens has the API tokens of users, and also their browser sessions, one-time sign-in links and invitations.
CREATE TABLE IF NOT EXISTS api_tokens (
    token_id       text PRIMARY KEY CHECK (token_id <> ''),
    user_id        text NOT NULL REFERENCES users ON DELETE CASCADE,
    kind           text NOT NULL CHECK (kind IN ('api', 'session', 'signin', 'invite')),
    name           text NOT NULL DEFAULT '',
    -- The token itself is stored nowhere: this is the HMAC-SHA-256 of its SHA-256 under a key derived from hash_key.
    secret_sha256  bytea NOT NULL UNIQUE CHECK (length(secret_sha256) = 32),
    -- read: reads. run: also checks, starts, changes, marks and stops runs. metrics: reads metrics and nothing else.
    -- write: changes anything but tokens. admin: also makes and revokes tokens.
    scope          text NOT NULL DEFAULT 'write' CHECK (scope IN ('read', 'run', 'metrics', 'write', 'admin')),
    expires_at     timestamptz,
    last_used_at   timestamptz,
    created_at     timestamptz NOT NULL DEFAULT now(),
    -- The row of hash_keys; 0 where secret_sha256 is the SHA-256 alone, as before version 17. The next server that
    -- starts hashes it again, with its key.
    hash_key       integer NOT NULL DEFAULT 0
);

ALTER TABLE api_tokens ADD COLUMN IF NOT EXISTS hash_key integer NOT NULL DEFAULT 0;

CREATE INDEX IF NOT EXISTS api_tokens_by_user ON api_tokens (user_id, kind);

-- guess_counts has the wrong guesses of passwords, links and codes, for all servers. A row is of no use after
-- regained_at.
CREATE TABLE IF NOT EXISTS guess_counts (
    -- A keyed hash of the kind and of who guesses, or of whose password is guessed.
    caller       bytea PRIMARY KEY CHECK (octet_length(caller) = 32),
    -- When all guesses are regained: each wrong one moves it on.
    regained_at  timestamptz NOT NULL
);

CREATE INDEX IF NOT EXISTS guess_counts_by_time ON guess_counts (regained_at);
