-- What admins decide for all servers of a control store: notifications, retention.

CREATE TABLE IF NOT EXISTS server_settings (
    setting_name  text PRIMARY KEY CHECK (setting_name <> '' AND length(setting_name) <= 100),
    setting_value jsonb NOT NULL,
    -- What nobody is shown, sealed under the servers' key; null where there is none.
    secret_sealed text,
    version       bigint NOT NULL DEFAULT 1 CHECK (version > 0),
    updated_by    text NOT NULL DEFAULT '',
    updated_at    timestamptz NOT NULL DEFAULT now()
);

-- What one server at a time does for all: until when it is whose turn.
CREATE TABLE IF NOT EXISTS server_turns (
    turn_name  text PRIMARY KEY CHECK (turn_name <> '' AND length(turn_name) <= 100),
    owner      text NOT NULL CHECK (owner <> ''),
    until      timestamptz NOT NULL
);
