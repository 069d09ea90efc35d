-- Every five seconds of the runs that have a warehouse: its clusters and queries, beside the throughput of the run.
SELECT coalesce(w.run_id, r.run_id) AS run_id, coalesce(w.slot, r.slot) AS second, w.at AS polled_at, w.warehouse, w.state,
    w.warehouse_size, w.started_clusters, w.running, w.queued, r.operations / 5.0::double precision AS qps
FROM (
    SELECT DISTINCT ON (run_id, second / 5) run_id, second / 5 * 5 AS slot, at, warehouse, state, warehouse_size,
        started_clusters, running, queued
    FROM rollup.warehouse_seconds ORDER BY run_id, second / 5, second DESC) w
FULL JOIN (
    SELECT run_id, second / 5 * 5 AS slot, sum(operations)::double precision AS operations FROM rollup.run_seconds
    WHERE run_id IN (SELECT run_id FROM rollup.warehouse_seconds) GROUP BY 1, 2) r
ON r.run_id = w.run_id AND r.slot = w.slot
