-- The catalog of streams: what there is by rows and references, what it was made with as JSON. Nothing is dropped that
-- something else refers to. Names are compared without case.

-- It is changed by one at a time: each change raises the revision.
CREATE TABLE IF NOT EXISTS catalog_revision (
    singleton       boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    revision        bigint NOT NULL DEFAULT 0,
    -- The numbers that were given out last: none is given out twice.
    last_source_id  bigint NOT NULL DEFAULT 0,
    last_query_id   bigint NOT NULL DEFAULT 0
);
INSERT INTO catalog_revision DEFAULT VALUES ON CONFLICT DO NOTHING;

CREATE TABLE IF NOT EXISTS worker_states (state text PRIMARY KEY);
INSERT INTO worker_states VALUES ('ACTIVE'), ('DRAINING'), ('UNREACHABLE') ON CONFLICT DO NOTHING;

CREATE TABLE IF NOT EXISTS global_query_states (state text PRIMARY KEY);
INSERT INTO global_query_states VALUES ('PENDING'), ('DEPLOYING'), ('RUNNING'), ('STOPPING'), ('STOPPING_STUCK'),
    ('STOPPED'), ('TERMINATED'), ('TERMINATING'), ('FAILED') ON CONFLICT DO NOTHING;

CREATE TABLE IF NOT EXISTS query_fragment_states (state text PRIMARY KEY);
INSERT INTO query_fragment_states VALUES ('REGISTERED'), ('STARTED'), ('RUNNING'), ('STOPPED'), ('TERMINATED'),
    ('FAILED') ON CONFLICT DO NOTHING;

CREATE TABLE IF NOT EXISTS source_types (type text PRIMARY KEY);
INSERT INTO source_types VALUES ('FILE'), ('TCP'), ('SYSTEM') ON CONFLICT DO NOTHING;

CREATE TABLE IF NOT EXISTS sink_types (type text PRIMARY KEY);
INSERT INTO sink_types VALUES ('FILE'), ('PRINT'), ('WEBHOOK'), ('GUARDRAIL'), ('METRIC'), ('POSTGRES') ON CONFLICT DO NOTHING;

CREATE TABLE IF NOT EXISTS workers (
    host_name  text PRIMARY KEY CHECK (host_name <> ''),
    grpc_port  bigint NOT NULL DEFAULT 0 CHECK (grpc_port BETWEEN 0 AND 65535),
    data_port  bigint NOT NULL DEFAULT 0 CHECK (data_port BETWEEN 0 AND 65535),
    -- How many fragments it takes.
    capacity   bigint NOT NULL CHECK (capacity > 0),
    state      text NOT NULL REFERENCES worker_states
);
CREATE UNIQUE INDEX IF NOT EXISTS workers_by_name ON workers (lower(host_name));

-- A link leads from who sends rows to who takes them; a worker links to those that were there before it.
CREATE TABLE IF NOT EXISTS network_links (
    src_host_name  text NOT NULL REFERENCES workers ON DELETE CASCADE,
    dst_host_name  text NOT NULL REFERENCES workers ON DELETE RESTRICT,
    PRIMARY KEY (src_host_name, dst_host_name),
    CHECK (src_host_name <> dst_host_name)
);
CREATE INDEX IF NOT EXISTS network_links_by_dst ON network_links (dst_host_name);

CREATE TABLE IF NOT EXISTS logical_sources (
    name    text PRIMARY KEY CHECK (name <> ''),
    schema  jsonb NOT NULL CHECK (jsonb_typeof(schema) = 'array' AND jsonb_array_length(schema) > 0)
);
CREATE UNIQUE INDEX IF NOT EXISTS logical_sources_by_name ON logical_sources (lower(name));

CREATE TABLE IF NOT EXISTS physical_sources (
    id              bigint PRIMARY KEY,
    logical_source  text NOT NULL REFERENCES logical_sources ON DELETE RESTRICT,
    -- NULL: the servers' own process.
    placement       text REFERENCES workers ON DELETE RESTRICT,
    source_type     text NOT NULL REFERENCES source_types,
    source_config   jsonb NOT NULL,
    parser_config   jsonb NOT NULL
);
CREATE INDEX IF NOT EXISTS physical_sources_by_logical ON physical_sources (logical_source);

CREATE TABLE IF NOT EXISTS sinks (
    name       text PRIMARY KEY CHECK (name <> ''),
    schema     jsonb NOT NULL CHECK (jsonb_typeof(schema) = 'array'),
    placement  text REFERENCES workers ON DELETE RESTRICT,
    sink_type  text NOT NULL REFERENCES sink_types,
    config     jsonb NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS sinks_by_name ON sinks (lower(name));

-- Who looks after queries, and until when; another one takes over what is not renewed.
CREATE TABLE IF NOT EXISTS query_owners (
    owner        text PRIMARY KEY CHECK (owner <> ''),
    lease_until  timestamptz NOT NULL
);

CREATE TABLE IF NOT EXISTS queries (
    id               bigint PRIMARY KEY,
    -- The name is taken until the query is gone from every worker.
    name             text NOT NULL CHECK (name <> ''),
    statement        text NOT NULL CHECK (statement <> ''),
    execution_state  text NOT NULL REFERENCES global_query_states,
    desired_state    text NOT NULL REFERENCES global_query_states CHECK (desired_state IN ('RUNNING', 'STOPPED')),
    graceful         boolean NOT NULL DEFAULT false,
    state_since      timestamptz NOT NULL,
    failure          text NOT NULL DEFAULT '',
    created_by       text NOT NULL DEFAULT '',
    created_at       timestamptz NOT NULL,
    -- Who owns it may move it, in its epoch.
    owner            text REFERENCES query_owners ON DELETE RESTRICT,
    epoch            bigint NOT NULL DEFAULT 0,
    -- How often its owners have written what became of it, or it was dropped: who writes has to have seen the last of that.
    revision         bigint NOT NULL DEFAULT 0
);
ALTER TABLE queries ADD COLUMN IF NOT EXISTS revision bigint NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX IF NOT EXISTS queries_by_name ON queries (lower(name));
-- The id of who created it, and the ids of the production connections whose names were typed then: what writes to a
-- connection is judged again whenever it begins.
ALTER TABLE queries ADD COLUMN IF NOT EXISTS created_by_id text NOT NULL DEFAULT '';
ALTER TABLE queries ADD COLUMN IF NOT EXISTS confirmed text[] NOT NULL DEFAULT '{}';

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

CREATE TABLE IF NOT EXISTS query_fragments (
    query_id         bigint NOT NULL REFERENCES queries ON DELETE CASCADE,
    host_name        text NOT NULL REFERENCES workers ON DELETE RESTRICT,
    -- What it does, a line for each step.
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
