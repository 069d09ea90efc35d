-- Changes of rights: servers judge again what goes on for users when there is another row here.

-- rights_changes has a row for each change. Nobody locks a row that others write, so that changes do not wait for each
-- other; servers compare how many there are and which is the last, and remove old ones.
CREATE TABLE IF NOT EXISTS rights_changes (
    change_id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    of_table    text NOT NULL,
    changed_at  timestamptz NOT NULL DEFAULT now()
);

-- note_rights_change takes the columns that rights follow from; without any, each deletion is a change.
CREATE OR REPLACE FUNCTION note_rights_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND NOT EXISTS (SELECT FROM unnest(TG_ARGV) AS col
        WHERE to_jsonb(OLD) -> col IS DISTINCT FROM to_jsonb(NEW) -> col)
    THEN
        RETURN NULL;
    END IF;
    INSERT INTO rights_changes (of_table) VALUES (TG_TABLE_NAME);
    PERFORM pg_notify('loadstone_rights', '');
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER note_rights_change AFTER UPDATE OR DELETE ON users
    FOR EACH ROW EXECUTE FUNCTION note_rights_change('role', 'disabled_at');
CREATE OR REPLACE TRIGGER note_rights_change AFTER UPDATE OR DELETE ON connections
    FOR EACH ROW EXECUTE FUNCTION note_rights_change('access', 'production');
CREATE OR REPLACE TRIGGER note_rights_change AFTER UPDATE OR DELETE ON test_templates
    FOR EACH ROW EXECUTE FUNCTION note_rights_change('access');
CREATE OR REPLACE TRIGGER note_rights_change AFTER DELETE ON api_tokens
    FOR EACH ROW EXECUTE FUNCTION note_rights_change();
