-- One row for each statement of a run, over its measurement.
SELECT run_id, statement_id, kind, in_transaction, operations, errors, row_count, rated,
    rollup.histogram_mean_ms(latency) AS avg_ms, rollup.histogram_quantile_ms(latency, 0.5) AS p50_ms,
    rollup.histogram_quantile_ms(latency, 0.95) AS p95_ms, rollup.histogram_quantile_ms(latency, 0.99) AS p99_ms,
    latency[5] / 1e6::double precision AS max_ms
FROM (
    SELECT run_id, statement_id, kind, in_transaction, (sum(operations) FILTER (WHERE NOT warmup))::bigint AS operations,
        (sum(errors) FILTER (WHERE NOT warmup))::bigint AS errors,
        (sum(row_count) FILTER (WHERE NOT warmup))::bigint AS row_count, sum(rated)::bigint AS rated,
        rollup.histogram_merge(latency) FILTER (WHERE NOT warmup) AS latency
    FROM rollup.statement_seconds GROUP BY run_id, statement_id, kind, in_transaction) s
WHERE operations > 0
