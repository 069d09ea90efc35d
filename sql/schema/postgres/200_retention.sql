-- Retention: the places where servers keep files of runs, and the files that are still to be deleted there.

-- Until version 15 result_stores was called result_places, pending_file_deletions was run_leftovers, and
-- queue_file_deletion was leave_over.
ALTER TABLE IF EXISTS result_places RENAME TO result_stores;
ALTER INDEX IF EXISTS result_places_pkey RENAME TO result_stores_pkey;
ALTER TABLE IF EXISTS run_leftovers RENAME TO pending_file_deletions;
ALTER INDEX IF EXISTS run_leftovers_pkey RENAME TO pending_file_deletions_pkey;
DROP FUNCTION IF EXISTS leave_over(text, boolean);

-- result_stores has the folders and buckets that servers use. Servers that share one use the same name for it.
CREATE TABLE IF NOT EXISTS result_stores (
    place    text PRIMARY KEY CHECK (place <> ''),
    label    text NOT NULL DEFAULT '',
    seen_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- pending_file_deletions has files to delete. The rows of a run are deleted first, in one transaction; its files are not in
-- this database, and are deleted later by a server that reaches their place.
CREATE TABLE IF NOT EXISTS pending_file_deletions (
    run_id    text NOT NULL CHECK (run_id <> ''),
    -- '' is a place that had no name yet.
    place     text NOT NULL DEFAULT '',
    -- The name of a single file; '' for all files that "whole" says.
    part      text NOT NULL DEFAULT '',
    -- True: all files of the run. False: only those with executions.
    whole     boolean NOT NULL,
    -- The size of the executions.
    bytes     bigint NOT NULL DEFAULT 0,
    since     timestamptz NOT NULL DEFAULT clock_timestamp(),
    tried_at  timestamptz,
    -- Why the last attempt failed.
    problem   text NOT NULL DEFAULT '',
    PRIMARY KEY (run_id, place, part)
);

-- queue_file_deletion notes that files of a run are to be deleted in every place, because nobody knows which places have some.
CREATE OR REPLACE FUNCTION queue_file_deletion(run text, everything boolean) RETURNS void LANGUAGE sql AS $$
    INSERT INTO pending_file_deletions (run_id, whole, place, bytes)
    SELECT run, everything, p.place, coalesce((SELECT sum(artifact_size_bytes)::bigint FROM query_execution_artifacts a
        WHERE a.run_id = run AND a.kind IN ('executions', 'binds')), 0)
    FROM (SELECT place FROM result_stores UNION ALL SELECT '' WHERE NOT EXISTS (SELECT FROM result_stores)) p
    ON CONFLICT (run_id, place, part) DO UPDATE SET whole = pending_file_deletions.whole OR excluded.whole,
        bytes = greatest(pending_file_deletions.bytes, excluded.bytes)
$$;
