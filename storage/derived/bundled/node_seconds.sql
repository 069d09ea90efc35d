-- One row for each second of a run and run worker.
SELECT run_id, second, at, warmup, worker_id, operations, errors, row_count, rated,
    rollup.histogram_quantile_ms(latency, 0.5) AS p50_ms, rollup.histogram_quantile_ms(latency, 0.95) AS p95_ms,
    rollup.histogram_quantile_ms(latency, 0.99) AS p99_ms, latency[5] / 1e6::double precision AS max_ms
FROM rollup.worker_seconds
