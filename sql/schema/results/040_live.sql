-- The seconds of runs that are still going on. They stand in the roll-ups among those of finished runs, marked
-- "provisional", and are replaced with the run as a whole when it is taken in, in that transaction.

-- Who writes them: the server that owns the run, in the epoch in which it does. Each of its transactions has a number,
-- which only rises, so that one whose answer was lost is not added twice; ticks are the last snapshot of each
-- run worker that is there, for a server that takes the run over. What is closed was taken in, or deleted.
CREATE TABLE IF NOT EXISTS staging.live_runs (
    run_id  text PRIMARY KEY,
    epoch   bigint NOT NULL,
    batch   bigint NOT NULL,
    ticks   jsonb NOT NULL DEFAULT '{}',
    closed  boolean NOT NULL DEFAULT false
);

-- Derived tables are made of what has ended: sessions that make them set loadstone.live to off, and do not see
-- provisional rows. Whoever queries sees them. Nothing is locked where all of this is there already.
DO $$
DECLARE
    name  text;
    rel   regclass;
BEGIN
    FOREACH name IN ARRAY ARRAY['runs', 'run_seconds', 'kind_seconds', 'statement_seconds', 'error_seconds',
            'worker_seconds', 'load_seconds', 'warehouse_seconds'] LOOP
        rel := format('rollup.%I', name)::regclass;
        IF NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = rel AND a.attname = 'provisional') THEN
            EXECUTE format('ALTER TABLE %s ADD COLUMN provisional boolean NOT NULL DEFAULT false', rel);
        END IF;
        IF NOT EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = rel AND p.polname = 'live') THEN
            EXECUTE format('CREATE POLICY live ON %s FOR SELECT USING (
                NOT provisional OR coalesce(current_setting(''loadstone.live'', true), '''') <> ''off'')', rel);
        END IF;
        IF NOT (SELECT c.relrowsecurity FROM pg_class c WHERE c.oid = rel) THEN
            EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', rel);
        END IF;
    END LOOP;
END $$;
