-- Rises with each change of a connection: who changes one says which it has read.
ALTER TABLE connections ADD COLUMN IF NOT EXISTS version bigint NOT NULL DEFAULT 1 CHECK (version > 0);
