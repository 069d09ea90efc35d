-- Connections: the databases that runs measure.

CREATE TABLE IF NOT EXISTS connections (
    connection_id    text PRIMARY KEY CHECK (connection_id <> ''),
    connection_name  text NOT NULL UNIQUE CHECK (connection_name <> ''),
    driver           text NOT NULL CHECK (driver <> ''),
    -- The DSN without its secrets, to be shown, and the whole DSN encrypted with the servers' key.
    dsn_redacted     text NOT NULL,
    dsn_sealed       text NOT NULL CHECK (dsn_sealed <> ''),
    description      text NOT NULL DEFAULT '',
    builtin          boolean NOT NULL DEFAULT false,
    -- Who may use it: owner_id, owner, restricted, users (user_id, name). '{}' means no owner and no restriction.
    access           jsonb NOT NULL DEFAULT '{}',
    -- A run on a production connection has to be confirmed by typing the connection's name.
    production       boolean NOT NULL DEFAULT false,
    -- Rises with each change; an editor names the version that was read.
    version          bigint NOT NULL DEFAULT 1 CHECK (version > 0),
    created_at       timestamptz NOT NULL DEFAULT now(),
    updated_at       timestamptz NOT NULL DEFAULT now()
);
