-- One row for each statement of a run, over its measurement.
SELECT run_id, statement_id, kind, in_transaction, operations, errors, row_count,
    rollup.histogram_mean_ms(latency) AS avg_ms, rollup.histogram_quantile_ms(latency, 0.5) AS p50_ms,
    rollup.histogram_quantile_ms(latency, 0.95) AS p95_ms, rollup.histogram_quantile_ms(latency, 0.99) AS p99_ms,
    latency[5] / 1e6::double precision AS max_ms
FROM (
    SELECT run_id, statement_id, kind, in_transaction, sum(operations)::bigint AS operations, sum(errors)::bigint AS errors,
        sum(row_count)::bigint AS row_count, rollup.histogram_merge(latency) AS latency
    FROM rollup.statement_seconds WHERE NOT warmup GROUP BY run_id, statement_id, kind, in_transaction) s
