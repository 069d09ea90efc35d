-- One row for each run: what it was, and its exact figures.
SELECT run_id, run_name, template, adapter, connection, table_name, status, verdict, passed, simulated, load_mode, started_at,
    ended_at, duration_seconds, operations, reads, writes, errors, error_rate, qps, p50_ms, p95_ms, p99_ms, avg_ms, max_ms,
    warehouse, warehouse_size, credits, price, currency, price_per_million, tags, created_by, executions,
    cardinality(part_problems) AS unreadable_parts
FROM rollup.runs
