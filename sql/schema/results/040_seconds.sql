-- The seconds of runs. Second 0 begins with the run, and an execution counts in the second in which it ended. latency
-- is a histogram. A row with "provisional" belongs to a run that still goes on.

CREATE TABLE IF NOT EXISTS rollup.run_seconds (
    run_id       text NOT NULL REFERENCES rollup.runs ON DELETE CASCADE,
    second       integer NOT NULL,
    warmup       boolean NOT NULL,
    at           timestamptz NOT NULL,
    operations   bigint NOT NULL,
    errors       bigint NOT NULL,
    row_count    bigint NOT NULL,
    latency      bigint[] NOT NULL,
    provisional  boolean NOT NULL DEFAULT false,
    PRIMARY KEY (run_id, second, warmup)
);

CREATE TABLE IF NOT EXISTS rollup.kind_seconds (
    run_id       text NOT NULL REFERENCES rollup.runs ON DELETE CASCADE,
    second       integer NOT NULL,
    warmup       boolean NOT NULL,
    at           timestamptz NOT NULL,
    kind         text NOT NULL,
    operations   bigint NOT NULL,
    errors       bigint NOT NULL,
    row_count    bigint NOT NULL,
    latency      bigint[] NOT NULL,
    provisional  boolean NOT NULL DEFAULT false,
    PRIMARY KEY (run_id, second, warmup, kind)
);

-- Statements inside transactions are here too; they are no operations of the run.
CREATE TABLE IF NOT EXISTS rollup.statement_seconds (
    run_id          text NOT NULL REFERENCES rollup.runs ON DELETE CASCADE,
    second          integer NOT NULL,
    warmup          boolean NOT NULL,
    at              timestamptz NOT NULL,
    statement_id    text NOT NULL,
    kind            text NOT NULL,
    in_transaction  boolean NOT NULL,
    operations      bigint NOT NULL,
    errors          bigint NOT NULL,
    row_count       bigint NOT NULL,
    latency         bigint[] NOT NULL,
    provisional     boolean NOT NULL DEFAULT false,
    PRIMARY KEY (run_id, second, warmup, statement_id, kind, in_transaction)
);

CREATE TABLE IF NOT EXISTS rollup.error_seconds (
    run_id       text NOT NULL REFERENCES rollup.runs ON DELETE CASCADE,
    second       integer NOT NULL,
    warmup       boolean NOT NULL,
    at           timestamptz NOT NULL,
    error_class  text NOT NULL,
    error_code   text NOT NULL,
    kind         text NOT NULL,
    errors       bigint NOT NULL,
    provisional  boolean NOT NULL DEFAULT false,
    PRIMARY KEY (run_id, second, warmup, error_class, error_code, kind)
);

CREATE TABLE IF NOT EXISTS rollup.worker_seconds (
    run_id       text NOT NULL REFERENCES rollup.runs ON DELETE CASCADE,
    second       integer NOT NULL,
    warmup       boolean NOT NULL,
    at           timestamptz NOT NULL,
    worker_id    text NOT NULL,
    operations   bigint NOT NULL,
    errors       bigint NOT NULL,
    row_count    bigint NOT NULL,
    latency      bigint[] NOT NULL,
    provisional  boolean NOT NULL DEFAULT false,
    PRIMARY KEY (run_id, second, warmup, worker_id)
);

-- rated is how many of the operations count in the rates of the run's measurement: those that ended in it. Operations
-- that ended in the drain after it do not; those of the warm-up that ended in it do. It is NULL while the run goes on, of
-- runs that lost a part of their record, whose rates are over the rest of it, and of runs that an earlier version took in.
ALTER TABLE rollup.run_seconds ADD COLUMN IF NOT EXISTS rated bigint;
ALTER TABLE rollup.kind_seconds ADD COLUMN IF NOT EXISTS rated bigint;
ALTER TABLE rollup.statement_seconds ADD COLUMN IF NOT EXISTS rated bigint;
ALTER TABLE rollup.worker_seconds ADD COLUMN IF NOT EXISTS rated bigint;

-- load_seconds has what the workers of runs reported at the end of each second, and what their schedules made in it.
-- waiting is NULL when it is not known, target_operations_per_second when there is no target.
CREATE TABLE IF NOT EXISTS rollup.load_seconds (
    run_id                        text NOT NULL REFERENCES rollup.runs ON DELETE CASCADE,
    second                        integer NOT NULL,
    warmup                        boolean NOT NULL,
    at                            timestamptz NOT NULL,
    worker_id                     text NOT NULL,
    node_id                       text NOT NULL,
    scheduled                     bigint NOT NULL,
    dropped                       bigint NOT NULL,
    retries                       bigint NOT NULL,
    connections                   integer NOT NULL,
    target_connections            integer NOT NULL,
    waiting                       integer,
    target_operations_per_second  double precision,
    cpu_ratio                     double precision NOT NULL,
    memory_ratio                  double precision NOT NULL,
    memory_bytes                  bigint NOT NULL,
    host_cpu_ratio                double precision NOT NULL,
    host_memory_ratio             double precision NOT NULL,
    provisional                   boolean NOT NULL DEFAULT false,
    PRIMARY KEY (run_id, second, warmup, worker_id)
);

-- warehouse_seconds has the Snowflake warehouse of a run.
CREATE TABLE IF NOT EXISTS rollup.warehouse_seconds (
    run_id             text NOT NULL REFERENCES rollup.runs ON DELETE CASCADE,
    second             integer NOT NULL,
    at                 timestamptz NOT NULL,
    warehouse          text NOT NULL,
    state              text NOT NULL,
    warehouse_type     text NOT NULL,
    warehouse_size     text NOT NULL,
    -- The clusters are NULL where the account's edition does not tell them.
    started_clusters   integer,
    running            integer NOT NULL,
    queued             integer NOT NULL,
    generation         text NOT NULL DEFAULT '',
    min_cluster_count  integer,
    max_cluster_count  integer,
    -- The price of an hour in credits; NULL when the price list does not have it.
    credits_per_hour   double precision,
    provisional        boolean NOT NULL DEFAULT false,
    PRIMARY KEY (run_id, second)
);
ALTER TABLE rollup.warehouse_seconds
    ALTER COLUMN started_clusters DROP NOT NULL,
    ALTER COLUMN min_cluster_count DROP NOT NULL, ALTER COLUMN min_cluster_count DROP DEFAULT,
    ALTER COLUMN max_cluster_count DROP NOT NULL, ALTER COLUMN max_cluster_count DROP DEFAULT;

-- Derived tables are made of runs that have ended: the sessions that make them set loadstone.live to off and do not
-- see provisional rows; everybody else does. The block locks nothing where the policies exist already.
DO $$
DECLARE
    name  text;
    rel   regclass;
BEGIN
    FOREACH name IN ARRAY ARRAY['runs', 'run_seconds', 'kind_seconds', 'statement_seconds', 'error_seconds',
            'worker_seconds', 'load_seconds', 'warehouse_seconds'] LOOP
        rel := format('rollup.%I', name)::regclass;
        IF NOT EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = rel AND p.polname = 'live') THEN
            EXECUTE format('CREATE POLICY live ON %s FOR SELECT USING (
                NOT provisional OR coalesce(current_setting(''loadstone.live'', true), '''') <> ''off'')', rel);
        END IF;
        IF NOT (SELECT c.relrowsecurity FROM pg_class c WHERE c.oid = rel) THEN
            EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', rel);
        END IF;
    END LOOP;
END $$;
