-- Plugins: Wasm modules with workloads and adapters.

CREATE TABLE IF NOT EXISTS plugins (
    sha256       text PRIMARY KEY CHECK (sha256 <> ''),
    kind         text NOT NULL CHECK (kind IN ('workload', 'adapter')),
    name         text NOT NULL CHECK (name <> ''),
    version      text NOT NULL,
    bundled      boolean NOT NULL DEFAULT false,
    enabled      boolean NOT NULL DEFAULT true,
    size_bytes   bigint NOT NULL DEFAULT 0 CHECK (size_bytes >= 0),
    -- json, not jsonb: the manifest is kept byte by byte as the plugin returned it.
    manifest     json,
    -- What the server found in an uploaded file besides its manifest.
    inspection   json,
    uploaded_by  text NOT NULL DEFAULT '',
    -- Who enabled it last. A plugin that was never enabled may still be replaced.
    enabled_by   text NOT NULL DEFAULT '',
    enabled_at   timestamptz,
    created_at   timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX IF NOT EXISTS plugins_by_name ON plugins (kind, name, version);

-- plugin_files has the bytes of uploaded plugins. Servers keep a copy by hash in their data directories.
CREATE TABLE IF NOT EXISTS plugin_files (
    sha256  text PRIMARY KEY REFERENCES plugins ON DELETE CASCADE,
    wasm    bytea NOT NULL
);

-- Postgres does not try to compress Wasm, which gains little. CREATE TABLE takes STORAGE only from Postgres 16 on.
ALTER TABLE plugin_files ALTER COLUMN wasm SET STORAGE EXTERNAL;
