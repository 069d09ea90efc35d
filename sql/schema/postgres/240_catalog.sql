-- The catalog of streams: sources, sinks, continuous queries and the workers that run them. Objects and their
-- references are rows; their configuration is JSON. An object that something refers to cannot be dropped. Names are
-- compared without case.

-- catalog_revision has one row. Each change of the catalog locks it and raises the revision, so that changes are
-- serial.
CREATE TABLE IF NOT EXISTS catalog_revision (
    singleton       boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    revision        bigint NOT NULL DEFAULT 0,
    -- The ids that were used last; none is used twice.
    last_source_id  bigint NOT NULL DEFAULT 0,
    last_query_id   bigint NOT NULL DEFAULT 0
);
INSERT INTO catalog_revision DEFAULT VALUES ON CONFLICT DO NOTHING;

-- The five tables below have the words that the columns of the catalog may hold.
CREATE TABLE IF NOT EXISTS worker_states (state text PRIMARY KEY);
INSERT INTO worker_states VALUES ('ACTIVE'), ('DRAINING'), ('UNREACHABLE') ON CONFLICT DO NOTHING;

CREATE TABLE IF NOT EXISTS global_query_states (state text PRIMARY KEY);
INSERT INTO global_query_states VALUES ('PENDING'), ('DEPLOYING'), ('RUNNING'), ('STOPPING'), ('STOPPING_STUCK'),
    ('STOPPED'), ('TERMINATED'), ('TERMINATING'), ('FAILED'), ('SUSPENDED') ON CONFLICT DO NOTHING;

CREATE TABLE IF NOT EXISTS query_fragment_states (state text PRIMARY KEY);
INSERT INTO query_fragment_states VALUES ('REGISTERED'), ('STARTED'), ('RUNNING'), ('STOPPED'), ('TERMINATED'),
    ('FAILED') ON CONFLICT DO NOTHING;

CREATE TABLE IF NOT EXISTS source_types (type text PRIMARY KEY);
INSERT INTO source_types VALUES ('FILE'), ('TCP'), ('SYSTEM') ON CONFLICT DO NOTHING;

CREATE TABLE IF NOT EXISTS sink_types (type text PRIMARY KEY);
INSERT INTO sink_types VALUES ('FILE'), ('PRINT'), ('WEBHOOK'), ('GUARDRAIL'), ('METRIC'), ('POSTGRES')
    ON CONFLICT DO NOTHING;

-- workers has the processes that run fragments of queries.
CREATE TABLE IF NOT EXISTS workers (
    host_name  text PRIMARY KEY CHECK (host_name <> ''),
    grpc_port  bigint NOT NULL DEFAULT 0 CHECK (grpc_port BETWEEN 0 AND 65535),
    data_port  bigint NOT NULL DEFAULT 0 CHECK (data_port BETWEEN 0 AND 65535),
    -- How many fragments it takes at most.
    capacity   bigint NOT NULL CHECK (capacity > 0),
    state      text NOT NULL REFERENCES worker_states
);

CREATE UNIQUE INDEX IF NOT EXISTS workers_by_name ON workers (lower(host_name));

-- network_links has the links between workers: rows flow from src to dst. A new worker gets links to the workers that
-- were there before it.
CREATE TABLE IF NOT EXISTS network_links (
    src_host_name  text NOT NULL REFERENCES workers ON DELETE CASCADE,
    dst_host_name  text NOT NULL REFERENCES workers ON DELETE RESTRICT,
    PRIMARY KEY (src_host_name, dst_host_name),
    CHECK (src_host_name <> dst_host_name)
);

CREATE INDEX IF NOT EXISTS network_links_by_dst ON network_links (dst_host_name);

-- logical_sources has the names and columns of streams; physical_sources has where their rows come from.
CREATE TABLE IF NOT EXISTS logical_sources (
    name    text PRIMARY KEY CHECK (name <> ''),
    schema  jsonb NOT NULL CHECK (jsonb_typeof(schema) = 'array' AND jsonb_array_length(schema) > 0)
);

CREATE UNIQUE INDEX IF NOT EXISTS logical_sources_by_name ON logical_sources (lower(name));

CREATE TABLE IF NOT EXISTS physical_sources (
    id              bigint PRIMARY KEY,
    logical_source  text NOT NULL REFERENCES logical_sources ON DELETE RESTRICT,
    -- NULL: the process of the servers themselves.
    placement       text REFERENCES workers ON DELETE RESTRICT,
    source_type     text NOT NULL REFERENCES source_types,
    source_config   jsonb NOT NULL,
    parser_config   jsonb NOT NULL
);

CREATE INDEX IF NOT EXISTS physical_sources_by_logical ON physical_sources (logical_source);

-- sinks has where the rows of queries go.
CREATE TABLE IF NOT EXISTS sinks (
    name       text PRIMARY KEY CHECK (name <> ''),
    schema     jsonb NOT NULL CHECK (jsonb_typeof(schema) = 'array'),
    placement  text REFERENCES workers ON DELETE RESTRICT,
    sink_type  text NOT NULL REFERENCES sink_types,
    config     jsonb NOT NULL
);

CREATE UNIQUE INDEX IF NOT EXISTS sinks_by_name ON sinks (lower(name));

-- query_owners has the servers that own queries. After lease_until another server may take over.
CREATE TABLE IF NOT EXISTS query_owners (
    owner        text PRIMARY KEY CHECK (owner <> ''),
    lease_until  timestamptz NOT NULL
);

-- queries has one row per continuous query.
CREATE TABLE IF NOT EXISTS queries (
    id               bigint PRIMARY KEY,
    -- The name stays taken until the query is gone from every worker.
    name             text NOT NULL CHECK (name <> ''),
    statement        text NOT NULL CHECK (statement <> ''),
    execution_state  text NOT NULL REFERENCES global_query_states,
    desired_state    text NOT NULL REFERENCES global_query_states
                         CHECK (desired_state IN ('RUNNING', 'STOPPED', 'SUSPENDED')),
    graceful         boolean NOT NULL DEFAULT false,
    state_since      timestamptz NOT NULL,
    failure          text NOT NULL DEFAULT '',
    created_by       text NOT NULL DEFAULT '',
    created_by_id    text NOT NULL DEFAULT '',
    -- The ids of the production connections that were confirmed when the query was created. The rights of its creator
    -- are checked again whenever the query starts.
    confirmed        text[] NOT NULL DEFAULT '{}',
    created_at       timestamptz NOT NULL,
    -- Only the owner changes the state of the query, and only with the current epoch.
    owner            text REFERENCES query_owners ON DELETE RESTRICT,
    epoch            bigint NOT NULL DEFAULT 0,
    -- Rises when the owner writes the state of the query and when the query is dropped; a writer names the revision that
    -- was read.
    revision         bigint NOT NULL DEFAULT 0
);

CREATE UNIQUE INDEX IF NOT EXISTS queries_by_name ON queries (lower(name));

-- Until version 16 a query was never suspended, and of the oldest the id of their creator is not known.
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = to_regclass('queries')
        AND pg_get_constraintdef(oid) LIKE '%SUSPENDED%') THEN
        ALTER TABLE queries DROP CONSTRAINT queries_desired_state_check,
            ADD CONSTRAINT queries_desired_state_check CHECK (desired_state IN ('RUNNING', 'STOPPED', 'SUSPENDED'));
    END IF;
END $$;

-- query_physical_sources and query_sinks say what a query reads and where it writes.
CREATE TABLE IF NOT EXISTS query_physical_sources (
    query_id            bigint NOT NULL REFERENCES queries ON DELETE CASCADE,
    physical_source_id  bigint NOT NULL REFERENCES physical_sources ON DELETE RESTRICT,
    PRIMARY KEY (query_id, physical_source_id)
);

CREATE INDEX IF NOT EXISTS query_physical_sources_by_source ON query_physical_sources (physical_source_id);

CREATE TABLE IF NOT EXISTS query_sinks (
    query_id   bigint NOT NULL REFERENCES queries ON DELETE CASCADE,
    sink_name  text NOT NULL REFERENCES sinks ON DELETE RESTRICT,
    PRIMARY KEY (query_id, sink_name)
);

CREATE INDEX IF NOT EXISTS query_sinks_by_sink ON query_sinks (sink_name);

-- query_fragments has the part of a query that one worker runs.
CREATE TABLE IF NOT EXISTS query_fragments (
    query_id         bigint NOT NULL REFERENCES queries ON DELETE CASCADE,
    host_name        text NOT NULL REFERENCES workers ON DELETE RESTRICT,
    -- The steps of the fragment, one line each.
    plan             jsonb NOT NULL,
    execution_state  text NOT NULL REFERENCES query_fragment_states,
    desired_state    text NOT NULL REFERENCES query_fragment_states CHECK (desired_state IN ('RUNNING', 'STOPPED')),
    attempts         bigint NOT NULL DEFAULT 0,
    retry_at         timestamptz,
    failure          text NOT NULL DEFAULT '',
    terminal         boolean NOT NULL DEFAULT false,
    PRIMARY KEY (query_id, host_name)
);

CREATE INDEX IF NOT EXISTS query_fragments_by_host ON query_fragments (host_name);
