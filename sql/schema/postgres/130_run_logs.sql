-- The logs of runs.

CREATE TABLE IF NOT EXISTS test_logs (
    log_id       text NOT NULL DEFAULT gen_random_uuid()::text,
    run_id       text NOT NULL REFERENCES run_status ON DELETE CASCADE,
    seq          bigint NOT NULL CHECK (seq > 0),
    test_id      text,
    worker_id    text,
    level        text NOT NULL CONSTRAINT log_level_known CHECK (level IN ('INFO', 'WARNING', 'ERROR', 'CRITICAL')),
    message      text NOT NULL,
    details      jsonb,
    "timestamp"  timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (run_id, seq)
);
