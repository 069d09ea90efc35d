-- Settings that hold for all servers of a control store, and the leases of jobs that one server does for all.

-- server_settings has one row per setting: notifications, retention, price list.
CREATE TABLE IF NOT EXISTS server_settings (
    setting_name   text PRIMARY KEY CHECK (setting_name <> '' AND length(setting_name) <= 100),
    setting_value  jsonb NOT NULL,
    -- The secret part of the setting, encrypted with the servers' key; NULL if there is none. It is never shown.
    secret_sealed  text,
    -- Rises with each change; an editor names the version that was read.
    version        bigint NOT NULL DEFAULT 1 CHECK (version > 0),
    updated_by     text NOT NULL DEFAULT '',
    updated_at     timestamptz NOT NULL DEFAULT now()
);

-- server_turns has one lease per job that only one server does at a time. After "until" another server may take it.
CREATE TABLE IF NOT EXISTS server_turns (
    turn_name  text PRIMARY KEY CHECK (turn_name <> '' AND length(turn_name) <= 100),
    owner      text NOT NULL CHECK (owner <> ''),
    until      timestamptz NOT NULL
);
