-- The 100 slowest executions of each run, over its measurement. Needs --ingest executions: without it there are none.
SELECT run_id, place, app_elapsed_ms, due_at, kind, statement_id, worker_id, connection_id, seq, row_count, success, error_class,
    server_query_id
FROM rollup.execution_runs
CROSS JOIN LATERAL (
    SELECT row_number() OVER (ORDER BY e.app_elapsed_ms DESC, e.worker_id, e.connection_id, e.seq) AS place, e.app_elapsed_ms, e.due_at,
        e.kind, e.statement_id, e.worker_id, e.connection_id, e.seq, e.row_count, e.success, e.error_class, e.server_query_id
    FROM rollup.executions e WHERE e.run_id = execution_runs.run_id AND e.position = 0 AND NOT e.warmup
    ORDER BY e.app_elapsed_ms DESC, e.worker_id, e.connection_id, e.seq LIMIT 100) slowest
