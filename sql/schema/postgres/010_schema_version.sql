-- The version of this schema. Whoever applies these files writes the row afterwards.

CREATE TABLE IF NOT EXISTS schema_version (
    singleton   boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    version     integer NOT NULL,
    -- The hash of the text of all files: it differs when a file was edited without a new version.
    hash        text NOT NULL,
    applied_at  timestamptz NOT NULL DEFAULT now()
);
