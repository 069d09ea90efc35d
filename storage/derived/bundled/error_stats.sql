-- One row for each kind of error of a run, over its measurement: how many, first and last.
SELECT run_id, error_class, error_code, kind, sum(errors)::bigint AS errors, min(second) AS first_second,
    max(second) AS last_second
FROM rollup.error_seconds WHERE NOT warmup GROUP BY run_id, error_class, error_code, kind
