-- Whose connections and templates are, who may use them, and which targets are production.

-- access: owner_id, owner, restricted, users (user_id, name). What is older than owners belongs to nobody.
ALTER TABLE connections ADD COLUMN IF NOT EXISTS access jsonb NOT NULL DEFAULT '{}';
ALTER TABLE connections ADD COLUMN IF NOT EXISTS production boolean NOT NULL DEFAULT false;
ALTER TABLE test_templates ADD COLUMN IF NOT EXISTS access jsonb NOT NULL DEFAULT '{}';
