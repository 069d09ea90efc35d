-- Keys: those of keyed hashes, and which of the servers' keys seals secrets.

-- hash_keys has the keys under which the hashes of tokens and links are computed. Each is encrypted with the servers'
-- key, so that whoever has a copy of the database alone cannot compare guesses with the hashes.
CREATE TABLE IF NOT EXISTS hash_keys (
    hash_key    integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key_sealed  text NOT NULL CHECK (key_sealed <> ''),
    created_at  timestamptz NOT NULL DEFAULT now()
);

-- key_rotation has one row, made by the first server. Keys are named by 8 hexadecimal digits, as in the texts that are
-- sealed under them.
CREATE TABLE IF NOT EXISTS key_rotation (
    singleton    boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    -- The key that seals, in every server that has it.
    sealing_key  text NOT NULL CHECK (sealing_key ~ '^[0-9a-f]{8}$'),
    -- The key that is to seal; NULL while none is being replaced.
    next_key     text CHECK (next_key ~ '^[0-9a-f]{8}$'),
    started_at   timestamptz,
    finished_at  timestamptz,
    -- Keys that were replaced: nothing is sealed under them, and nothing may be.
    retired_keys text[] NOT NULL DEFAULT '{}'
);

ALTER TABLE key_rotation ADD COLUMN IF NOT EXISTS retired_keys text[] NOT NULL DEFAULT '{}';

-- server_keyrings says which keys each server has; the one that it seals with comes first. Old rows are of servers that
-- have ended.
CREATE TABLE IF NOT EXISTS server_keyrings (
    server   text PRIMARY KEY CHECK (server <> ''),
    keys     text[] NOT NULL,
    seen_at  timestamptz NOT NULL
);
