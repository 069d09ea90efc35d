-- Users of a sign-in provider: its address and what it calls them.
ALTER TABLE users ADD COLUMN IF NOT EXISTS external_id text CHECK (external_id <> '');
CREATE UNIQUE INDEX IF NOT EXISTS users_external_id_key ON users (external_id);
