-- Each run of a template against the median of the up to ten valid ones before it, simulated ones apart.
SELECT r.run_id, r.template, r.adapter, r.simulated, r.started_at, r.qps, r.p95_ms, b.runs AS baseline_runs,
    b.qps AS baseline_qps, b.p95_ms AS baseline_p95_ms, 100 * (r.qps / nullif(b.qps, 0) - 1) AS qps_change_pct,
    100 * (r.p95_ms / nullif(b.p95_ms, 0) - 1) AS p95_change_pct
FROM rollup.runs r
CROSS JOIN LATERAL (
    SELECT count(*) AS runs, percentile_cont(0.5) WITHIN GROUP (ORDER BY o.qps) AS qps,
        percentile_cont(0.5) WITHIN GROUP (ORDER BY o.p95_ms) AS p95_ms
    FROM (
        SELECT qps, p95_ms FROM rollup.runs e WHERE e.template = r.template AND e.adapter = r.adapter
            AND e.simulated = r.simulated AND e.verdict LIKE 'VALID%'
            AND (e.started_at, e.run_id) < (r.started_at, r.run_id)
        ORDER BY e.started_at DESC, e.run_id DESC LIMIT 10) o) b
WHERE r.template <> '' AND r.verdict LIKE 'VALID%' AND b.runs > 0
