-- Who did what, from where, by which token, and what came of it; and how long that is kept.

ALTER TABLE audit_log ADD COLUMN IF NOT EXISTS user_name text NOT NULL DEFAULT '';
ALTER TABLE audit_log ADD COLUMN IF NOT EXISTS address text NOT NULL DEFAULT '';
ALTER TABLE audit_log ADD COLUMN IF NOT EXISTS token_id text NOT NULL DEFAULT '';
ALTER TABLE audit_log ADD COLUMN IF NOT EXISTS token_name text NOT NULL DEFAULT '';
ALTER TABLE audit_log ADD COLUMN IF NOT EXISTS outcome text NOT NULL DEFAULT 'done'
    CHECK (outcome IN ('done', 'refused', 'failed'));

CREATE INDEX IF NOT EXISTS audit_log_by_user ON audit_log (user_id, audit_id);
CREATE INDEX IF NOT EXISTS audit_log_by_action ON audit_log (action, audit_id);
CREATE INDEX IF NOT EXISTS audit_log_by_time ON audit_log (at);

CREATE TABLE IF NOT EXISTS audit_retention (
    singleton  boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    -- 0 keeps lines for ever. Nobody hides what was done of late by keeping it shortly.
    keep_days  integer NOT NULL CHECK (keep_days = 0 OR keep_days >= 30)
);

-- Lines are never changed. What is older than audit_retention says may be removed, and nothing else.
CREATE OR REPLACE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF EXISTS (SELECT FROM audit_retention
                WHERE keep_days >= 30 AND OLD.at < now() - make_interval(days => keep_days)) THEN
            RETURN OLD;
        END IF;
    END IF;
    RAISE EXCEPTION 'the audit log is append-only' USING ERRCODE = 'LS002';
END $$;
