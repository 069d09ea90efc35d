-- The results database: what runs gave, for people who ask with SQL. Rerunnable, like the control store's schema. It
-- belongs to Loadstone; readers see the schemas "rollup" and "tables", and nothing of "staging".

CREATE SCHEMA IF NOT EXISTS rollup;
CREATE SCHEMA IF NOT EXISTS tables;
CREATE SCHEMA IF NOT EXISTS staging;

-- The highest epoch that has begun to write something. A writer locks its row and goes on when no higher one is there.
CREATE TABLE IF NOT EXISTS staging.fences (
    dynamic_table  text NOT NULL,
    subtask        text NOT NULL,
    epoch          bigint NOT NULL,
    PRIMARY KEY (dynamic_table, subtask)
);

-- Which partitions a derived table has, each with the version of the run that it was made from, and from which version of
-- the definition.
CREATE TABLE IF NOT EXISTS staging.partitions (
    dynamic_table  text NOT NULL,
    run_id         text NOT NULL,
    run_version    bigint NOT NULL,
    PRIMARY KEY (dynamic_table, run_id)
);
CREATE TABLE IF NOT EXISTS staging.contents (
    dynamic_table       text PRIMARY KEY,
    definition_version  bigint NOT NULL,
    columns             text NOT NULL
);

CREATE SEQUENCE IF NOT EXISTS staging.run_versions;

CREATE TABLE IF NOT EXISTS rollup.runs (
    run_id             text PRIMARY KEY,
    run_name           text NOT NULL,
    template           text NOT NULL,
    adapter            text NOT NULL,
    connection         text NOT NULL,
    table_name         text NOT NULL,
    status             text NOT NULL,
    verdict            text NOT NULL,
    passed             boolean,
    simulated          boolean NOT NULL,
    load_mode          text NOT NULL,
    started_at         timestamptz,
    ended_at           timestamptz,
    duration_seconds   double precision,
    operations         bigint,
    reads              bigint,
    writes             bigint,
    errors             bigint,
    error_rate         double precision,
    qps                double precision,
    p50_ms             double precision,
    p95_ms             double precision,
    p99_ms             double precision,
    avg_ms             double precision,
    max_ms             double precision,
    warehouse          text NOT NULL,
    warehouse_size     text NOT NULL,
    credits            double precision,
    price              double precision,
    currency           text NOT NULL,
    price_per_million  double precision,
    tags               jsonb NOT NULL,
    created_by         text NOT NULL,
    -- What of the record is in the roll-ups, and what could not be read.
    parts              integer NOT NULL,
    part_problems      text[] NOT NULL,
    executions         bigint NOT NULL,
    fingerprint        text NOT NULL,
    version            bigint NOT NULL,
    taken_in_at        timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Second 0 begins with the run. Executions count in the second in which they ended. Histograms are mergeable:
-- {schema, offset, sum_ns, min_ns, max_ns, count of the bucket at the offset, of the next …}.
CREATE TABLE IF NOT EXISTS rollup.run_seconds (
    run_id      text NOT NULL REFERENCES rollup.runs ON DELETE CASCADE,
    second      integer NOT NULL,
    warmup      boolean NOT NULL,
    at          timestamptz NOT NULL,
    operations  bigint NOT NULL,
    errors      bigint NOT NULL,
    row_count   bigint NOT NULL,
    latency     bigint[] NOT NULL,
    PRIMARY KEY (run_id, second, warmup)
);

CREATE TABLE IF NOT EXISTS rollup.kind_seconds (
    run_id      text NOT NULL REFERENCES rollup.runs ON DELETE CASCADE,
    second      integer NOT NULL,
    warmup      boolean NOT NULL,
    at          timestamptz NOT NULL,
    kind        text NOT NULL,
    operations  bigint NOT NULL,
    errors      bigint NOT NULL,
    row_count   bigint NOT NULL,
    latency     bigint[] NOT NULL,
    PRIMARY KEY (run_id, second, warmup, kind)
);

-- Statements inside transactions are here, too; they are no operations of the run.
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
    PRIMARY KEY (run_id, second, warmup, error_class, error_code, kind)
);

CREATE TABLE IF NOT EXISTS rollup.worker_seconds (
    run_id      text NOT NULL REFERENCES rollup.runs ON DELETE CASCADE,
    second      integer NOT NULL,
    warmup      boolean NOT NULL,
    at          timestamptz NOT NULL,
    worker_id   text NOT NULL,
    operations  bigint NOT NULL,
    errors      bigint NOT NULL,
    row_count   bigint NOT NULL,
    latency     bigint[] NOT NULL,
    PRIMARY KEY (run_id, second, warmup, worker_id)
);

CREATE TABLE IF NOT EXISTS rollup.warehouse_seconds (
    run_id            text NOT NULL REFERENCES rollup.runs ON DELETE CASCADE,
    second            integer NOT NULL,
    at                timestamptz NOT NULL,
    warehouse         text NOT NULL,
    state             text NOT NULL,
    warehouse_type    text NOT NULL,
    warehouse_size    text NOT NULL,
    started_clusters  integer NOT NULL,
    running           integer NOT NULL,
    queued            integer NOT NULL,
    PRIMARY KEY (run_id, second)
);
ALTER TABLE rollup.warehouse_seconds ADD COLUMN IF NOT EXISTS generation text NOT NULL DEFAULT '',
    ADD COLUMN IF NOT EXISTS min_cluster_count integer NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS max_cluster_count integer NOT NULL DEFAULT 0;

-- histogram_count is how many values a histogram holds.
CREATE OR REPLACE FUNCTION rollup.histogram_count(h bigint[]) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT coalesce(sum(c), 0)::bigint FROM unnest(h[6:]) AS c
$$;

-- histogram_add merges two histograms of one schema, which is the only one that is written here.
CREATE OR REPLACE FUNCTION rollup.histogram_add(a bigint[], b bigint[]) RETURNS bigint[]
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    low bigint;
    counts bigint[];
BEGIN
    IF b IS NULL OR cardinality(b) < 6 THEN
        RETURN a;
    ELSIF a IS NULL OR cardinality(a) < 6 THEN
        RETURN b;
    ELSIF a[1] <> b[1] THEN
        RAISE EXCEPTION 'histograms of schema % and % cannot be merged', a[1], b[1];
    END IF;
    low := least(a[2], b[2]);
    SELECT array_agg(coalesce(x, 0) + coalesce(y, 0) ORDER BY n) INTO counts FROM unnest(
        array_fill(0::bigint, ARRAY[(a[2] - low)::integer]) || a[6:],
        array_fill(0::bigint, ARRAY[(b[2] - low)::integer]) || b[6:]) WITH ORDINALITY AS u (x, y, n);
    RETURN ARRAY[a[1], low, a[3] + b[3], least(a[4], b[4]), greatest(a[5], b[5])] || counts;
END $$;

CREATE OR REPLACE AGGREGATE rollup.histogram_merge(bigint[]) (
    SFUNC = rollup.histogram_add, STYPE = bigint[], COMBINEFUNC = rollup.histogram_add, PARALLEL = SAFE);

-- histogram_quantile_ms is the q-quantile (0 to 1) in milliseconds, as PERCENTILE_CONT gives it of the same values: between
-- the two neighbouring ones, each of which stands for itself when it is the smallest or the largest, else as the
-- middle of its bucket, within 0.55 %; NULL of no values.
CREATE OR REPLACE FUNCTION rollup.histogram_quantile_ms(h bigint[], q double precision) RETURNS double precision
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    counts CONSTANT bigint[] := h[6:];
    total bigint := 0;
    seen bigint := 0;
    n integer := 0;
    c bigint;
    -- Counted from 0; below is the lower of the two neighbours.
    rank double precision;
    below bigint;
    low double precision;
    high double precision;
BEGIN
    FOREACH c IN ARRAY counts LOOP
        total := total + c;
    END LOOP;
    IF total = 0 THEN
        RETURN NULL;
    END IF;
    rank := least(greatest(q, 0), 1) * (total - 1);
    below := floor(rank);
    IF below >= total - 1 THEN
        RETURN h[5] / 1e6::double precision;
    END IF;
    low := CASE WHEN below = 0 THEN h[4] END;
    high := CASE WHEN below + 1 = total - 1 THEN h[5] END;
    FOREACH c IN ARRAY counts LOOP
        EXIT WHEN low IS NOT NULL AND high IS NOT NULL;
        seen := seen + c;
        IF low IS NULL AND seen > below THEN
            low := greatest(h[4], least(h[5], power(2, (h[2] + n - 0.5) / power(2, h[1]))));
        END IF;
        IF high IS NULL AND seen > below + 1 THEN
            high := greatest(h[4], least(h[5], power(2, (h[2] + n - 0.5) / power(2, h[1]))));
        END IF;
        n := n + 1;
    END LOOP;
    RETURN (low + (high - low) * (rank - below)) / 1e6;
END $$;

CREATE OR REPLACE FUNCTION rollup.histogram_mean_ms(h bigint[]) RETURNS double precision
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT h[3]::double precision / nullif(rollup.histogram_count(h), 0) / 1e6
$$;
