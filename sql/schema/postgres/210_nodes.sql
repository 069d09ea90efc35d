-- Nodes: their addresses, certificates and join tokens, what operators want of them, and what happened to them. All
-- servers of the control store share this.

-- node_addresses has the nodes that every server dials, besides those of its own flags.
CREATE TABLE IF NOT EXISTS node_addresses (
    address   text PRIMARY KEY CHECK (address <> ''),
    added_by  text NOT NULL DEFAULT '',
    added_at  timestamptz NOT NULL DEFAULT now()
);

-- joined_node_addresses has the addresses of a server's own machine at which a node with a certificate has answered:
-- none without one is dialled there afterwards.
CREATE TABLE IF NOT EXISTS joined_node_addresses (
    server     text NOT NULL CHECK (server <> ''),
    address    text NOT NULL CHECK (address <> ''),
    joined_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (server, address)
);

-- node_authority has the certificate authority that signs the certificates of nodes.
CREATE TABLE IF NOT EXISTS node_authority (
    singleton    boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    certificate  bytea NOT NULL,
    -- The private key, encrypted with the servers' key.
    key_sealed   text NOT NULL CHECK (key_sealed <> ''),
    created_at   timestamptz NOT NULL DEFAULT now()
);

-- node_tokens has the tokens with which nodes join.
CREATE TABLE IF NOT EXISTS node_tokens (
    token_id       text PRIMARY KEY CHECK (token_id <> ''),
    -- The token itself is stored nowhere: this and hash_key are as in api_tokens.
    secret_sha256  bytea NOT NULL UNIQUE CHECK (length(secret_sha256) = 32),
    uses           integer NOT NULL CHECK (uses > 0),
    used           integer NOT NULL DEFAULT 0 CHECK (used BETWEEN 0 AND uses),
    created_by     text NOT NULL DEFAULT '',
    created_by_id  text NOT NULL DEFAULT '',
    created_at     timestamptz NOT NULL DEFAULT now(),
    expires_at     timestamptz NOT NULL,
    hash_key       integer NOT NULL DEFAULT 0
);

ALTER TABLE node_tokens ADD COLUMN IF NOT EXISTS hash_key integer NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS created_by_id text NOT NULL DEFAULT '';

CREATE TABLE IF NOT EXISTS node_certificates (
    serial      text PRIMARY KEY CHECK (serial <> ''),
    node_id     text NOT NULL CHECK (node_id <> ''),
    key_sha256  bytea NOT NULL CHECK (length(key_sha256) = 32),
    -- The token with which the node joined; empty for a renewed certificate. No foreign key: the certificate outlives
    -- the token.
    token_id    text NOT NULL DEFAULT '',
    issued_at   timestamptz NOT NULL DEFAULT now(),
    expires_at  timestamptz NOT NULL,
    revoked_at  timestamptz,
    revoked_by  text NOT NULL DEFAULT ''
);

CREATE INDEX IF NOT EXISTS node_certificates_by_node ON node_certificates (node_id);
CREATE INDEX IF NOT EXISTS node_certificates_revoked ON node_certificates (expires_at) WHERE revoked_at IS NOT NULL;

-- Until version 15 node_intents was called node_wishes, and its desired_state was wish.
ALTER TABLE IF EXISTS node_wishes RENAME TO node_intents;
ALTER INDEX IF EXISTS node_wishes_pkey RENAME TO node_intents_pkey;
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass('node_intents') AND attname = 'wish') THEN
        ALTER TABLE node_intents RENAME wish TO desired_state;
    END IF;
END $$;

-- node_intents has the state that operators want a node to be in. Every server reads it.
CREATE TABLE IF NOT EXISTS node_intents (
    node_id        text PRIMARY KEY CHECK (node_id <> ''),
    desired_state  text NOT NULL CHECK (desired_state IN ('DRAIN', 'REMOVE')),
    asked_by       text NOT NULL DEFAULT '',
    asked_at       timestamptz NOT NULL DEFAULT now()
);

-- node_events is the history of nodes. Each server that notices something writes a row of its own; old rows are
-- deleted.
CREATE TABLE IF NOT EXISTS node_events (
    seq         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at          timestamptz NOT NULL,
    node_id     text NOT NULL CHECK (node_id <> ''),
    server      text NOT NULL DEFAULT '',
    kind        text NOT NULL CHECK (kind IN ('STATE', 'OPERATOR', 'REFUSED')),
    from_state  text NOT NULL DEFAULT '',
    to_state    text NOT NULL DEFAULT '',
    reason      text NOT NULL DEFAULT '',
    asked_by    text NOT NULL DEFAULT ''
);

CREATE INDEX IF NOT EXISTS node_events_by_node ON node_events (node_id, seq);
