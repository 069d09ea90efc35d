-- The 100 slowest executions of each run, over its measurement. Needs --ingest executions: without it there are none.
SELECT run_id, place, app_elapsed_ms, due_at, kind, statement_id, worker_id, connection_id, seq, row_count, success,
    error_class, server_query_id
FROM rollup.slow_executions
