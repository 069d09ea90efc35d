-- Every five seconds of the runs that have a warehouse: its latest poll, the longest queue, and what the run did a second.
SELECT w.run_id, s.slot * 5 AS second, r.started_at + s.slot * interval '5 seconds' AS at, p.at AS polled_at,
    coalesce(q.polls, 0) AS polls, p.warehouse, p.state, p.warehouse_type, p.warehouse_size, p.generation, p.started_clusters,
    p.min_cluster_count, p.max_cluster_count, p.running, greatest(p.queued, q.queued) AS queued,
    CASE WHEN s.slot * 5 + 5 > l.first AND s.slot * 5 <= l.last THEN coalesce(o.operations, 0) /
        (least(s.slot * 5 + 5, l.last + 1) - greatest(s.slot * 5, l.first))::double precision END AS qps
FROM (SELECT run_id, max(second) AS last FROM rollup.warehouse_seconds GROUP BY run_id) w
JOIN rollup.runs r ON r.run_id = w.run_id
-- The load lasts from the first second in which something ended to the last one.
CROSS JOIN LATERAL (SELECT min(second) AS first, max(second) AS last FROM rollup.run_seconds WHERE run_id = w.run_id) l
CROSS JOIN LATERAL generate_series(0, greatest(w.last, l.last) / 5) AS s (slot)
-- A poll that is missing is that of the slot before.
LEFT JOIN LATERAL (SELECT * FROM rollup.warehouse_seconds WHERE run_id = w.run_id AND second >= s.slot * 5 - 5
    AND second < s.slot * 5 + 5 ORDER BY second DESC LIMIT 1) p ON true
LEFT JOIN LATERAL (SELECT max(queued) AS queued, count(*) AS polls FROM rollup.warehouse_seconds WHERE run_id = w.run_id
    AND second >= s.slot * 5 AND second < s.slot * 5 + 5) q ON true
LEFT JOIN LATERAL (SELECT sum(operations)::bigint AS operations FROM rollup.run_seconds WHERE run_id = w.run_id
    AND second >= s.slot * 5 AND second < s.slot * 5 + 5) o ON true
