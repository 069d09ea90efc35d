-- Where servers keep files of runs, and what is still to be removed there.

-- A folder or a bucket, the same for all servers that share it.
CREATE TABLE IF NOT EXISTS result_places (
    place    text PRIMARY KEY CHECK (place <> ''),
    label    text NOT NULL DEFAULT '',
    seen_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Only a server that reaches the place can say that the files are gone; '' is of a time before places had names.
ALTER TABLE run_leftovers ADD COLUMN IF NOT EXISTS place text NOT NULL DEFAULT '';
-- One file alone; '' is all those that whole says.
ALTER TABLE run_leftovers ADD COLUMN IF NOT EXISTS part text NOT NULL DEFAULT '';
-- What the executions took.
ALTER TABLE run_leftovers ADD COLUMN IF NOT EXISTS bytes bigint NOT NULL DEFAULT 0;
ALTER TABLE run_leftovers ADD COLUMN IF NOT EXISTS tried_at timestamptz;
ALTER TABLE run_leftovers ADD COLUMN IF NOT EXISTS problem text NOT NULL DEFAULT '';
ALTER TABLE run_leftovers DROP CONSTRAINT IF EXISTS run_leftovers_pkey,
    ADD CONSTRAINT run_leftovers_pkey PRIMARY KEY (run_id, place, part);

-- leave_over notes that files of a run are to be removed wherever servers keep files: which of them have some is not known.
CREATE OR REPLACE FUNCTION leave_over(run text, everything boolean) RETURNS void LANGUAGE sql AS $$
    INSERT INTO run_leftovers (run_id, whole, place, bytes)
    SELECT run, everything, p.place, coalesce((SELECT sum(artifact_size_bytes)::bigint FROM query_execution_artifacts a
        WHERE a.run_id = run AND a.kind IN ('executions', 'binds')), 0)
    FROM (SELECT place FROM result_places UNION ALL SELECT '' WHERE NOT EXISTS (SELECT FROM result_places)) p
    ON CONFLICT (run_id, place, part) DO UPDATE SET whole = run_leftovers.whole OR excluded.whole,
        bytes = greatest(run_leftovers.bytes, excluded.bytes)
$$;
