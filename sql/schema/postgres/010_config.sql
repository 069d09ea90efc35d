-- Templates, connections and plugins: what runs are made from.

CREATE TABLE IF NOT EXISTS test_templates (
    template_id    text PRIMARY KEY CHECK (template_id <> ''),
    template_name  text NOT NULL UNIQUE CHECK (template_name <> ''),
    description    text NOT NULL DEFAULT '',
    config         jsonb NOT NULL,
    -- The document as its author wrote it, without passwords.
    source         text NOT NULL DEFAULT '',
    version        bigint NOT NULL DEFAULT 1 CHECK (version > 0),
    created_by     text NOT NULL DEFAULT '',
    created_at     timestamptz NOT NULL DEFAULT now(),
    updated_at     timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE IF NOT EXISTS connections (
    connection_id    text PRIMARY KEY CHECK (connection_id <> ''),
    connection_name  text NOT NULL UNIQUE CHECK (connection_name <> ''),
    driver           text NOT NULL CHECK (driver <> ''),
    -- The DSN as it may be shown, and the whole of it under the server's key.
    dsn_redacted     text NOT NULL,
    dsn_sealed       text NOT NULL CHECK (dsn_sealed <> ''),
    description      text NOT NULL DEFAULT '',
    builtin          boolean NOT NULL DEFAULT false,
    created_at       timestamptz NOT NULL DEFAULT now(),
    updated_at       timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE IF NOT EXISTS plugins (
    sha256      text PRIMARY KEY CHECK (sha256 <> ''),
    kind        text NOT NULL CHECK (kind IN ('workload', 'adapter')),
    name        text NOT NULL CHECK (name <> ''),
    version     text NOT NULL,
    bundled     boolean NOT NULL DEFAULT false,
    enabled     boolean NOT NULL DEFAULT true,
    size_bytes  bigint NOT NULL DEFAULT 0 CHECK (size_bytes >= 0),
    -- json, not jsonb: kept as the plugin gave it.
    manifest    json,
    created_at  timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX IF NOT EXISTS plugins_by_name ON plugins (kind, name, version);

-- What inspecting an uploaded file told besides its manifest, who brought it, and
-- who enabled it last. One that has never been enabled may still be replaced.
ALTER TABLE plugins ADD COLUMN IF NOT EXISTS inspection json;
ALTER TABLE plugins ADD COLUMN IF NOT EXISTS uploaded_by text NOT NULL DEFAULT '';
ALTER TABLE plugins ADD COLUMN IF NOT EXISTS enabled_by text NOT NULL DEFAULT '';
ALTER TABLE plugins ADD COLUMN IF NOT EXISTS enabled_at timestamptz;

-- The bytes of uploaded plugins: every server on this store reads them here, and
-- keeps a copy by hash in its data directory.
CREATE TABLE IF NOT EXISTS plugin_files (
    sha256  text PRIMARY KEY REFERENCES plugins ON DELETE CASCADE,
    wasm    bytea NOT NULL
);

-- Wasm hardly compresses in the way that the database would try.
ALTER TABLE plugin_files ALTER COLUMN wasm SET STORAGE EXTERNAL;
