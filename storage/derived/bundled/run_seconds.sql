-- One row for each second of a run: operations, errors and percentiles of the latency.
SELECT run_id, second, at, warmup, operations, errors, row_count, rated, rollup.histogram_quantile_ms(latency, 0.5) AS p50_ms,
    rollup.histogram_quantile_ms(latency, 0.95) AS p95_ms, rollup.histogram_quantile_ms(latency, 0.99) AS p99_ms,
    latency[5] / 1e6::double precision AS max_ms
FROM rollup.run_seconds
