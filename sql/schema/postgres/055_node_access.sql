-- How nodes and servers know each other, and where nodes are. All servers share it.

-- The key that signs, sealed under the servers' key.
CREATE TABLE IF NOT EXISTS node_authority (
    singleton    boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    certificate  bytea NOT NULL,
    key_sealed   text NOT NULL CHECK (key_sealed <> ''),
    created_at   timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE IF NOT EXISTS node_tokens (
    token_id       text PRIMARY KEY CHECK (token_id <> ''),
    -- The secret itself is nowhere.
    secret_sha256  bytea NOT NULL UNIQUE CHECK (length(secret_sha256) = 32),
    uses           integer NOT NULL CHECK (uses > 0),
    used           integer NOT NULL DEFAULT 0 CHECK (used BETWEEN 0 AND uses),
    created_by     text NOT NULL DEFAULT '',
    created_at     timestamptz NOT NULL DEFAULT now(),
    expires_at     timestamptz NOT NULL
);

CREATE TABLE IF NOT EXISTS node_certificates (
    serial      text PRIMARY KEY CHECK (serial <> ''),
    node_id     text NOT NULL CHECK (node_id <> ''),
    key_sha256  bytea NOT NULL CHECK (length(key_sha256) = 32),
    -- By which token the node has joined; empty where a certificate was renewed. It outlives the token.
    token_id    text NOT NULL DEFAULT '',
    issued_at   timestamptz NOT NULL DEFAULT now(),
    expires_at  timestamptz NOT NULL,
    revoked_at  timestamptz,
    revoked_by  text NOT NULL DEFAULT ''
);

CREATE INDEX IF NOT EXISTS node_certificates_by_node ON node_certificates (node_id);
CREATE INDEX IF NOT EXISTS node_certificates_revoked ON node_certificates (expires_at) WHERE revoked_at IS NOT NULL;

-- The catalog of nodes: every server dials these, beside those of its own flags.
CREATE TABLE IF NOT EXISTS node_addresses (
    address   text PRIMARY KEY CHECK (address <> ''),
    added_by  text NOT NULL DEFAULT '',
    added_at  timestamptz NOT NULL DEFAULT now()
);
