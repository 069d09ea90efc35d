-- Changes of rights: servers judge again what goes on for users when a number here has risen.

-- rights_revision counts the transactions that have changed rights, and those that have ended tokens and sessions.
CREATE TABLE IF NOT EXISTS rights_revision (
    singleton  boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    rights     bigint NOT NULL DEFAULT 0,
    tokens     bigint NOT NULL DEFAULT 0,
    -- The transactions that have counted last: each counts once, however many rows it changes.
    rights_by  bigint NOT NULL DEFAULT 0,
    tokens_by  bigint NOT NULL DEFAULT 0
);
INSERT INTO rights_revision (singleton) VALUES (true) ON CONFLICT DO NOTHING;

-- note_rights_change takes the columns that rights follow from; without any, each deletion is a change. Its triggers
-- are deferred: the row that all changes write is the last that a transaction locks, and is locked until its commit
-- alone.
CREATE OR REPLACE FUNCTION note_rights_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND NOT EXISTS (SELECT FROM unnest(TG_ARGV) AS col
        WHERE to_jsonb(OLD) -> col IS DISTINCT FROM to_jsonb(NEW) -> col)
    THEN
        RETURN NULL;
    END IF;
    IF TG_TABLE_NAME = 'api_tokens' THEN
        UPDATE rights_revision SET tokens = tokens + 1, tokens_by = txid_current() WHERE tokens_by <> txid_current();
    ELSE
        UPDATE rights_revision SET rights = rights + 1, rights_by = txid_current() WHERE rights_by <> txid_current();
    END IF;
    IF FOUND THEN
        PERFORM pg_notify('loadstone_rights', '');
    END IF;
    RETURN NULL;
END $$;

DO $$
DECLARE
    one record;
BEGIN
    FOR one IN SELECT * FROM (VALUES
        ('users', 'UPDATE OR DELETE', $a$'role', 'disabled_at'$a$),
        ('connections', 'UPDATE OR DELETE', $a$'access', 'production'$a$),
        ('test_templates', 'UPDATE OR DELETE', $a$'access'$a$),
        ('api_tokens', 'DELETE', '')) AS t (of_table, events, columns)
    LOOP
        IF NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = to_regclass(one.of_table)
            AND tgname = 'note_rights_change' AND tgdeferrable) THEN
            EXECUTE format('DROP TRIGGER IF EXISTS note_rights_change ON %I', one.of_table);
            EXECUTE format('CREATE CONSTRAINT TRIGGER note_rights_change AFTER %s ON %I DEFERRABLE INITIALLY DEFERRED '
                'FOR EACH ROW EXECUTE FUNCTION note_rights_change(%s)', one.events, one.of_table, one.columns);
        END IF;
    END LOOP;
END $$;
DROP TABLE IF EXISTS rights_changes;
