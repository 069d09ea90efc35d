-- Retired keys: what is sealed under a key that was replaced may not be written any more, so that the key may go.

-- refuse_retired_key takes the column with sealed texts: one, or a document in whose members named …sealed they stand.
-- Its lock is held to the end of the transaction: a rotation ends after all that was written under the key before.
CREATE OR REPLACE FUNCTION refuse_retired_key() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    sealed  text := to_jsonb(NEW) ->> TG_ARGV[0];
    texts   text[];
    retired text[];
BEGIN
    IF sealed IS NULL OR TG_OP = 'UPDATE' AND sealed IS NOT DISTINCT FROM to_jsonb(OLD) ->> TG_ARGV[0] THEN
        RETURN NEW;
    END IF;
    -- The first eight signs are the version, the key's name and one byte more.
    IF sealed ~ '^[[{]' THEN
        SELECT array_agg(m[1]) INTO texts FROM regexp_matches(sealed, 'sealed": *"([A-Za-z0-9+/]{8})', 'g') AS m;
    ELSIF sealed ~ '^[A-Za-z0-9+/]{8}' THEN
        texts := ARRAY[left(sealed, 8)];
    END IF;
    IF texts IS NULL THEN
        RETURN NEW;
    END IF;
    SELECT retired_keys INTO retired FROM key_rotation FOR SHARE;
    IF EXISTS (SELECT FROM unnest(texts) AS t WHERE encode(substr(decode(t, 'base64'), 2, 4), 'hex') = ANY (retired)) THEN
        RAISE EXCEPTION 'a secret is sealed under a key that was replaced' USING ERRCODE = 'LS007';
    END IF;
    RETURN NEW;
END $$;

DO $$
DECLARE
    place record;
BEGIN
    FOR place IN SELECT * FROM (VALUES ('connections', 'dsn_sealed'), ('test_templates', 'config'),
        ('run_status', 'scenario_config'), ('test_results', 'plan'), ('server_settings', 'secret_sealed'),
        ('sinks', 'config'), ('node_authority', 'key_sealed'), ('hash_keys', 'key_sealed')) AS places (of_table, of_column)
    LOOP
        EXECUTE format('CREATE OR REPLACE TRIGGER refuse_retired_key BEFORE INSERT OR UPDATE OF %I ON %I
            FOR EACH ROW EXECUTE FUNCTION refuse_retired_key(%L)', place.of_column, place.of_table, place.of_column);
    END LOOP;
END $$;
