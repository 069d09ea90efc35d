-- Users with roles, passwords and invitations.

-- Before there were roles, who was no admin could do what an operator does.
ALTER TABLE users DROP CONSTRAINT IF EXISTS users_role_check;
UPDATE users SET role = 'operator' WHERE role = 'user';
ALTER TABLE users ADD CONSTRAINT users_role_check CHECK (role IN ('admin', 'operator', 'viewer'));

-- The hash of the password with its salt and its cost (argon2id), empty without one.
ALTER TABLE users ADD COLUMN IF NOT EXISTS password_hash text NOT NULL DEFAULT '';
ALTER TABLE users ADD COLUMN IF NOT EXISTS disabled_at timestamptz;

-- Ada and ada are one; of letters beyond ASCII the case counts, whatever the database's locale.
CREATE UNIQUE INDEX IF NOT EXISTS users_lower_name_key ON users (lower(user_name COLLATE "C"));

ALTER TABLE api_tokens DROP CONSTRAINT IF EXISTS api_tokens_kind_check;
ALTER TABLE api_tokens ADD CONSTRAINT api_tokens_kind_check CHECK (kind IN ('api', 'session', 'signin', 'invite'));
