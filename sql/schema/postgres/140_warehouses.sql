-- The Snowflake warehouses of runs, as they were polled while the runs went on.

CREATE TABLE IF NOT EXISTS warehouse_poll_snapshots (
    snapshot_id         text PRIMARY KEY DEFAULT gen_random_uuid()::text,
    run_id              text NOT NULL REFERENCES run_status ON DELETE CASCADE,
    "timestamp"         timestamptz NOT NULL,
    elapsed_seconds     double precision,
    warehouse_name      text NOT NULL,
    state               text NOT NULL DEFAULT '',
    warehouse_type      text NOT NULL DEFAULT '',
    warehouse_size      text NOT NULL DEFAULT '',
    generation          text NOT NULL DEFAULT '',
    fallback_warehouse  text DEFAULT '',
    started_clusters    integer,
    running             integer,
    queued              integer,
    min_cluster_count   integer,
    max_cluster_count   integer,
    scaling_policy      text,
    raw_result          jsonb,
    created_at          timestamptz NOT NULL DEFAULT now()
);

-- Version 18: null where the account does not tell whether there is one.
ALTER TABLE warehouse_poll_snapshots ALTER COLUMN fallback_warehouse DROP NOT NULL;

CREATE INDEX IF NOT EXISTS warehouse_poll_snapshots_by_run ON warehouse_poll_snapshots (run_id, "timestamp");

-- v_warehouse_timeseries divides a run, from start to end, into slots of five seconds. A slot has the latest poll
-- that is at most ten seconds old at the end of the slot, the highest number of queued queries polled in the slot,
-- and the throughput of the run. A slot without a poll is a gap.
CREATE OR REPLACE VIEW v_warehouse_timeseries AS
SELECT r.run_id, s.slot, r.start_time + s.slot * interval '5 seconds' AS slot_start,
    s.slot * 5.0::double precision AS elapsed_seconds,
    p.warehouse_name, p.state, p.warehouse_type, p.warehouse_size, p.generation, p.started_clusters,
    p.min_cluster_count, p.max_cluster_count, p.running,
    greatest(p.queued, q.queued) AS queued, coalesce(q.polls, 0) AS polls, m.qps
FROM run_status r
CROSS JOIN LATERAL generate_series(0,
    ceil(extract(epoch FROM coalesce(r.end_time, now()) - r.start_time) / 5)::bigint - 1) AS s(slot)
LEFT JOIN LATERAL (
    SELECT w.warehouse_name, w.state, w.warehouse_type, w.warehouse_size, w.generation, w.started_clusters,
        w.min_cluster_count, w.max_cluster_count, w.running, w.queued
    FROM warehouse_poll_snapshots w WHERE w.run_id = r.run_id
        AND w."timestamp" < r.start_time + (s.slot + 1) * interval '5 seconds'
        AND w."timestamp" >= r.start_time + (s.slot - 1) * interval '5 seconds'
    ORDER BY w."timestamp" DESC LIMIT 1) p ON true
LEFT JOIN LATERAL (
    SELECT max(w.queued) AS queued, count(*) AS polls FROM warehouse_poll_snapshots w WHERE w.run_id = r.run_id
        AND w."timestamp" >= r.start_time + s.slot * interval '5 seconds'
        AND w."timestamp" < r.start_time + (s.slot + 1) * interval '5 seconds') q ON true
LEFT JOIN LATERAL (
    SELECT avg(t.qps) AS qps FROM metrics_snapshots t WHERE t.run_id = r.run_id
        AND t."timestamp" >= r.start_time + s.slot * interval '5 seconds'
        AND t."timestamp" < r.start_time + (s.slot + 1) * interval '5 seconds') m ON true
WHERE r.start_time IS NOT NULL;
