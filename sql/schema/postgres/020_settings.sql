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

-- Until version 15 server_leases was called server_turns.
ALTER TABLE IF EXISTS server_turns RENAME TO server_leases;
ALTER INDEX IF EXISTS server_turns_pkey RENAME TO server_leases_pkey;
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass('server_leases') AND attname = 'turn_name') THEN
        ALTER TABLE server_leases RENAME turn_name TO lease_name;
    END IF;
END $$;

-- server_leases has one lease per job that only one server does at a time. After "until" another server may take it.
CREATE TABLE IF NOT EXISTS server_leases (
    lease_name  text PRIMARY KEY CHECK (lease_name <> '' AND length(lease_name) <= 100),
    owner       text NOT NULL CHECK (owner <> ''),
    until       timestamptz NOT NULL
);
