-- Each results database has a number of its own, by which a reader's URL is known to lead to the same one.
DO $$
BEGIN
    IF obj_description('rollup'::regnamespace, 'pg_namespace') IS NULL THEN
        EXECUTE format('COMMENT ON SCHEMA rollup IS %L', 'Loadstone results ' || gen_random_uuid());
    END IF;
END $$;
