-- Matrices: one workload on several targets, one run after another. Each run names its matrix and its place in it.

CREATE TABLE IF NOT EXISTS matrices (
    matrix_id        text PRIMARY KEY CHECK (matrix_id <> ''),
    matrix_name      text NOT NULL DEFAULT '',
    template_id      text REFERENCES test_templates ON DELETE SET NULL,
    labels           jsonb NOT NULL DEFAULT '[]',
    stop_on_failure  boolean NOT NULL DEFAULT false,
    status           text NOT NULL DEFAULT 'PREPARED' CHECK (status IN
                         ('PREPARED', 'RUNNING', 'CANCELLING', 'COMPLETED', 'FAILED', 'CANCELLED')),
    start_time       timestamptz,
    end_time         timestamptz,
    -- The server that makes the runs. After lease_until another server may take over.
    owner            text NOT NULL DEFAULT '',
    lease_until      timestamptz,
    created_by       text NOT NULL DEFAULT '',
    created_at       timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX IF NOT EXISTS matrices_newest ON matrices (created_at DESC, matrix_id DESC);
