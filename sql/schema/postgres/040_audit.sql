-- The audit log: who did what, from where, with which token, and with what outcome.

CREATE TABLE IF NOT EXISTS audit_log (
    audit_id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- No foreign key: a line stays when its user is deleted.
    user_id     text NOT NULL DEFAULT '',
    user_name   text NOT NULL DEFAULT '',
    address     text NOT NULL DEFAULT '',
    token_id    text NOT NULL DEFAULT '',
    token_name  text NOT NULL DEFAULT '',
    action      text NOT NULL CHECK (action <> ''),
    object      text NOT NULL DEFAULT '',
    detail      text NOT NULL DEFAULT '',
    outcome     text NOT NULL DEFAULT 'done' CHECK (outcome IN ('done', 'refused', 'failed'))
);

CREATE INDEX IF NOT EXISTS audit_log_by_user ON audit_log (user_id, audit_id);
CREATE INDEX IF NOT EXISTS audit_log_by_action ON audit_log (action, audit_id);
CREATE INDEX IF NOT EXISTS audit_log_by_time ON audit_log (at);

-- audit_retention has one row at most: for how many days lines are kept.
CREATE TABLE IF NOT EXISTS audit_retention (
    singleton  boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    -- 0 keeps lines forever. Fewer than 30 days are refused, so that nobody hides what was done recently.
    keep_days  integer NOT NULL CHECK (keep_days = 0 OR keep_days >= 30)
);

-- refuse_audit_change keeps the log append-only. It lets lines be deleted only when they are older than
-- audit_retention says.
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

CREATE OR REPLACE TRIGGER refuse_change BEFORE UPDATE OR DELETE ON audit_log
    FOR EACH ROW EXECUTE FUNCTION refuse_audit_change();
CREATE OR REPLACE TRIGGER refuse_truncate BEFORE TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();
