-- The results of runs, and the index of their Parquet files.

-- test_results has one row for the run (test_id = run_id) and one row for each of its workers.
CREATE TABLE IF NOT EXISTS test_results (
    test_id            text PRIMARY KEY CHECK (test_id <> ''),
    run_id             text NOT NULL REFERENCES run_status ON DELETE CASCADE,
    worker_id          text,
    worker_group_id    integer CHECK (worker_group_id >= 0),
    test_name          text NOT NULL DEFAULT '',
    status             text NOT NULL DEFAULT 'PREPARED' CONSTRAINT result_status_known CHECK (status IN
                           ('PREPARED', 'RUNNING', 'STOPPING', 'CANCELLING', 'COMPLETED', 'FAILED', 'CANCELLED')),
    start_time         timestamptz,
    end_time           timestamptz,
    figures            jsonb,
    validity           jsonb,
    thresholds         jsonb,
    passed             boolean,
    plan               jsonb,
    environment        jsonb,
    find_max_result    jsonb,
    enrichment_status  text NOT NULL DEFAULT '' CONSTRAINT enrichment_known CHECK (enrichment_status IN
                           ('', 'PENDING', 'RUNNING', 'COMPLETED', 'PARTIAL', 'SKIPPED', 'FAILED')),
    -- What the query history of the target says about the executions.
    enrichment         jsonb,
    failure_reason     text NOT NULL DEFAULT '',
    -- Lists and comparisons read these columns and do not open the documents.
    total_operations   bigint GENERATED ALWAYS AS ((figures ->> 'operations')::bigint) STORED,
    read_operations    bigint GENERATED ALWAYS AS ((figures ->> 'reads')::bigint) STORED,
    write_operations   bigint GENERATED ALWAYS AS ((figures ->> 'writes')::bigint) STORED,
    failed_operations  bigint GENERATED ALWAYS AS ((figures -> 'errors' ->> 'count')::bigint) STORED,
    qps                double precision GENERATED ALWAYS AS ((figures ->> 'qps')::double precision) STORED,
    p50_latency_ms     double precision GENERATED ALWAYS AS ((figures -> 'latency_ms' ->> 'p50')::double precision) STORED,
    p95_latency_ms     double precision GENERATED ALWAYS AS ((figures -> 'latency_ms' ->> 'p95')::double precision) STORED,
    p99_latency_ms     double precision GENERATED ALWAYS AS ((figures -> 'latency_ms' ->> 'p99')::double precision) STORED,
    avg_latency_ms     double precision GENERATED ALWAYS AS ((figures -> 'latency_ms' ->> 'avg')::double precision) STORED,
    min_latency_ms     double precision GENERATED ALWAYS AS ((figures -> 'latency_ms' ->> 'min')::double precision) STORED,
    max_latency_ms     double precision GENERATED ALWAYS AS ((figures -> 'latency_ms' ->> 'max')::double precision) STORED,
    error_rate         double precision GENERATED ALWAYS AS ((figures -> 'errors' ->> 'rate')::double precision) STORED,
    verdict            text GENERATED ALWAYS AS (validity ->> 'verdict') STORED,
    created_at         timestamptz NOT NULL DEFAULT now(),
    updated_at         timestamptz NOT NULL DEFAULT now(),
    -- The row of a worker needs the row of its run. The row of the run is its own parent.
    CONSTRAINT result_parent FOREIGN KEY (run_id) REFERENCES test_results (test_id) ON DELETE CASCADE,
    CONSTRAINT result_worker CHECK ((test_id = run_id) = (worker_id IS NULL))
);

CREATE INDEX IF NOT EXISTS test_results_enriching ON test_results (run_id)
    WHERE enrichment_status IN ('PENDING', 'RUNNING');
CREATE UNIQUE INDEX IF NOT EXISTS test_results_worker ON test_results (run_id, worker_id);

-- query_execution_artifacts has one row per Parquet file. Rows are never updated.
CREATE TABLE IF NOT EXISTS query_execution_artifacts (
    artifact_id             text PRIMARY KEY,
    run_id                  text NOT NULL REFERENCES run_status ON DELETE CASCADE,
    test_id                 text NOT NULL,
    worker_id               text NOT NULL DEFAULT '',
    -- binds: the parameters of a few executions that failed or were slow. server: what the target's server was seen to do.
    kind                    text NOT NULL CHECK (kind IN ('executions', 'enrichment', 'binds', 'server')),
    name                    text NOT NULL CHECK (name <> ''),
    artifact_size_bytes     bigint NOT NULL CHECK (artifact_size_bytes >= 0),
    artifact_checksum       text NOT NULL CHECK (artifact_checksum <> ''),
    row_count               bigint NOT NULL CHECK (row_count >= 0),
    min_ts                  timestamptz,
    max_ts                  timestamptz,
    parquet_schema_version  integer NOT NULL DEFAULT 1,
    created_at              timestamptz NOT NULL DEFAULT now(),
    UNIQUE (run_id, name)
);

-- Until version 19 nobody looked at the server.
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = to_regclass('query_execution_artifacts')
        AND pg_get_constraintdef(oid) LIKE '%server%') THEN
        ALTER TABLE query_execution_artifacts DROP CONSTRAINT query_execution_artifacts_kind_check,
            ADD CONSTRAINT query_execution_artifacts_kind_check
            CHECK (kind IN ('executions', 'enrichment', 'binds', 'server'));
    END IF;
END $$;

CREATE OR REPLACE TRIGGER refuse_change BEFORE UPDATE ON query_execution_artifacts
    FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- The plans whose sampled rows are in plain: those of earlier versions, until a server has sealed them.
CREATE INDEX IF NOT EXISTS test_results_plain_pools ON test_results (test_id) WHERE plan ? 'pools';
