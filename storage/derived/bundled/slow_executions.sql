-- The 100 slowest executions of each run, over its measurement. Needs --ingest executions: without it there are none.
SELECT r.run_id, slowest.*
FROM rollup.execution_runs r
CROSS JOIN LATERAL (
    SELECT row_number() OVER (ORDER BY e.app_elapsed_ms DESC, e.worker_id, e.connection_id, e.seq) AS place, e.app_elapsed_ms, e.due_at,
        e.kind, e.statement_id, e.worker_id, e.connection_id, e.seq, e.row_count, e.success, e.error_class, e.server_query_id
    FROM rollup.executions e WHERE e.run_id = r.run_id AND e.position = 0 AND NOT e.warmup
    ORDER BY e.app_elapsed_ms DESC, e.worker_id, e.connection_id, e.seq LIMIT 100) slowest
