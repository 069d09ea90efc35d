-- Which schema this is; the row is written by whoever applied the files above.

CREATE TABLE IF NOT EXISTS schema_version (
    singleton   boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    version     integer NOT NULL,
    hash        text NOT NULL,
    applied_at  timestamptz NOT NULL DEFAULT now()
);
