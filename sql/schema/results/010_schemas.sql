-- The results database: what runs gave, for people who query it with SQL. These files can be applied again and again.
-- The database belongs to Loadstone. Readers see the schemas "rollup" and "tables", and nothing of "staging".
--
-- The database uses error codes of its own: LS006 says that it is of an older Loadstone.

-- CREATE TABLE IF NOT EXISTS leaves a table without columns that came later as it is, so that a database of before
-- the first release is refused. It is known by the column that came last.
DO $$
BEGIN
    IF to_regclass('rollup.runs') IS NOT NULL AND NOT EXISTS (SELECT FROM pg_attribute
            WHERE attrelid = to_regclass('rollup.exports') AND attname = 'whole' AND NOT attisdropped) THEN
        RAISE EXCEPTION USING ERRCODE = 'LS006', MESSAGE = 'The results database is of an older Loadstone and cannot '
            'be upgraded: drop its schemas (DROP SCHEMA rollup, tables, staging CASCADE), and it is filled again from '
            'the files of runs.';
    END IF;
END $$;

CREATE SCHEMA IF NOT EXISTS rollup;
CREATE SCHEMA IF NOT EXISTS tables;
CREATE SCHEMA IF NOT EXISTS staging;

-- Each results database has an id, so that the URL of a reader can be compared with that of the owner.
DO $$
BEGIN
    IF obj_description('rollup'::regnamespace, 'pg_namespace') IS NULL THEN
        EXECUTE format('COMMENT ON SCHEMA rollup IS %L', 'Loadstone results ' || gen_random_uuid());
    END IF;
END $$;
