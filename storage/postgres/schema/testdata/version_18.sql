-- The schema of version 18 (commit 36ff935e) without its comments. TestTheVersionBeforeIsUpgraded starts from it.
BEGIN;
CREATE TABLE IF NOT EXISTS schema_version (
    singleton   boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    version     integer NOT NULL,
    hash        text NOT NULL,
    applied_at  timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE IF NOT EXISTS server_settings (
    setting_name   text PRIMARY KEY CHECK (setting_name <> '' AND length(setting_name) <= 100),
    setting_value  jsonb NOT NULL,
    secret_sealed  text,
    version        bigint NOT NULL DEFAULT 1 CHECK (version > 0),
    updated_by     text NOT NULL DEFAULT '',
    updated_at     timestamptz NOT NULL DEFAULT now()
);
ALTER TABLE IF EXISTS server_turns RENAME TO server_leases;
ALTER INDEX IF EXISTS server_turns_pkey RENAME TO server_leases_pkey;
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass('server_leases') AND attname = 'turn_name') THEN
        ALTER TABLE server_leases RENAME turn_name TO lease_name;
    END IF;
END $$;
CREATE TABLE IF NOT EXISTS server_leases (
    lease_name  text PRIMARY KEY CHECK (lease_name <> '' AND length(lease_name) <= 100),
    owner       text NOT NULL CHECK (owner <> ''),
    until       timestamptz NOT NULL
);
CREATE TABLE IF NOT EXISTS hash_keys (
    hash_key    integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key_sealed  text NOT NULL CHECK (key_sealed <> ''),
    created_at  timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE IF NOT EXISTS key_rotation (
    singleton    boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    sealing_key  text NOT NULL CHECK (sealing_key ~ '^[0-9a-f]{8}$'),
    next_key     text CHECK (next_key ~ '^[0-9a-f]{8}$'),
    started_at   timestamptz,
    finished_at  timestamptz,
    retired_keys text[] NOT NULL DEFAULT '{}'
);
ALTER TABLE key_rotation ADD COLUMN IF NOT EXISTS retired_keys text[] NOT NULL DEFAULT '{}';
CREATE TABLE IF NOT EXISTS server_keyrings (
    server   text PRIMARY KEY CHECK (server <> ''),
    keys     text[] NOT NULL,
    seen_at  timestamptz NOT NULL
);
CREATE TABLE IF NOT EXISTS users (
    user_id        text PRIMARY KEY CHECK (user_id <> ''),
    user_name      text NOT NULL UNIQUE CHECK (user_name <> ''),
    role           text NOT NULL CHECK (role IN ('admin', 'operator', 'viewer')),
    password_hash  text NOT NULL DEFAULT '',
    disabled_at    timestamptz,
    external_id    text CHECK (external_id <> ''),
    created_at     timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX IF NOT EXISTS users_lower_name_key ON users (lower(user_name COLLATE "C"));
CREATE UNIQUE INDEX IF NOT EXISTS users_external_id_key ON users (external_id);
CREATE TABLE IF NOT EXISTS api_tokens (
    token_id       text PRIMARY KEY CHECK (token_id <> ''),
    user_id        text NOT NULL REFERENCES users ON DELETE CASCADE,
    kind           text NOT NULL CHECK (kind IN ('api', 'session', 'signin', 'invite')),
    name           text NOT NULL DEFAULT '',
    secret_sha256  bytea NOT NULL UNIQUE CHECK (length(secret_sha256) = 32),
    scope          text NOT NULL DEFAULT 'write' CHECK (scope IN ('read', 'run', 'metrics', 'write', 'admin')),
    expires_at     timestamptz,
    last_used_at   timestamptz,
    created_at     timestamptz NOT NULL DEFAULT now(),
    hash_key       integer NOT NULL DEFAULT 0
);
ALTER TABLE api_tokens ADD COLUMN IF NOT EXISTS hash_key integer NOT NULL DEFAULT 0;
CREATE INDEX IF NOT EXISTS api_tokens_by_user ON api_tokens (user_id, kind);
CREATE TABLE IF NOT EXISTS guess_counts (
    caller       bytea PRIMARY KEY CHECK (octet_length(caller) = 32),
    regained_at  timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS guess_counts_by_time ON guess_counts (regained_at);
CREATE TABLE IF NOT EXISTS audit_log (
    audit_id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    user_id     text NOT NULL DEFAULT '',
    user_name   text NOT NULL DEFAULT '',
    address     text NOT NULL DEFAULT '',
    token_id    text NOT NULL DEFAULT '',
    token_name  text NOT NULL DEFAULT '',
    action      text NOT NULL CHECK (action <> ''),
    object      text NOT NULL DEFAULT '',
    detail      text NOT NULL DEFAULT '',
    outcome     text NOT NULL DEFAULT 'done' CHECK (outcome IN ('done', 'refused', 'failed'))
);
CREATE INDEX IF NOT EXISTS audit_log_by_user ON audit_log (user_id, audit_id);
CREATE INDEX IF NOT EXISTS audit_log_by_action ON audit_log (action, audit_id);
CREATE INDEX IF NOT EXISTS audit_log_by_time ON audit_log (at);
CREATE TABLE IF NOT EXISTS audit_retention (
    singleton  boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    keep_days  integer NOT NULL CHECK (keep_days = 0 OR keep_days >= 30)
);
CREATE OR REPLACE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF EXISTS (SELECT FROM audit_retention
                WHERE keep_days >= 30 AND OLD.at < now() - make_interval(days => keep_days)) THEN
            RETURN OLD;
        END IF;
    END IF;
    RAISE EXCEPTION 'the audit log is append-only' USING ERRCODE = 'LS002';
END $$;
CREATE OR REPLACE TRIGGER refuse_change BEFORE UPDATE OR DELETE ON audit_log
    FOR EACH ROW EXECUTE FUNCTION refuse_audit_change();
CREATE OR REPLACE TRIGGER refuse_truncate BEFORE TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();
CREATE TABLE IF NOT EXISTS connections (
    connection_id    text PRIMARY KEY CHECK (connection_id <> ''),
    connection_name  text NOT NULL UNIQUE CHECK (connection_name <> ''),
    driver           text NOT NULL CHECK (driver <> ''),
    dsn_redacted     text NOT NULL,
    dsn_sealed       text NOT NULL CHECK (dsn_sealed <> ''),
    description      text NOT NULL DEFAULT '',
    builtin          boolean NOT NULL DEFAULT false,
    access           jsonb NOT NULL DEFAULT '{}',
    production       boolean NOT NULL DEFAULT false,
    version          bigint NOT NULL DEFAULT 1 CHECK (version > 0),
    created_at       timestamptz NOT NULL DEFAULT now(),
    updated_at       timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE IF NOT EXISTS test_templates (
    template_id    text PRIMARY KEY CHECK (template_id <> ''),
    template_name  text NOT NULL UNIQUE CHECK (template_name <> ''),
    description    text NOT NULL DEFAULT '',
    config         jsonb NOT NULL,
    source         text NOT NULL DEFAULT '',
    access         jsonb NOT NULL DEFAULT '{}',
    version        bigint NOT NULL DEFAULT 1 CHECK (version > 0),
    created_by     text NOT NULL DEFAULT '',
    created_at     timestamptz NOT NULL DEFAULT now(),
    updated_at     timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE IF NOT EXISTS plugins (
    sha256       text PRIMARY KEY CHECK (sha256 <> ''),
    kind         text NOT NULL CHECK (kind IN ('workload', 'adapter')),
    name         text NOT NULL CHECK (name <> ''),
    version      text NOT NULL,
    bundled      boolean NOT NULL DEFAULT false,
    enabled      boolean NOT NULL DEFAULT true,
    size_bytes   bigint NOT NULL DEFAULT 0 CHECK (size_bytes >= 0),
    manifest     json,
    inspection   json,
    uploaded_by  text NOT NULL DEFAULT '',
    enabled_by   text NOT NULL DEFAULT '',
    enabled_at   timestamptz,
    created_at   timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX IF NOT EXISTS plugins_by_name ON plugins (kind, name, version);
CREATE TABLE IF NOT EXISTS plugin_files (
    sha256  text PRIMARY KEY REFERENCES plugins ON DELETE CASCADE,
    wasm    bytea NOT NULL
);
ALTER TABLE plugin_files ALTER COLUMN wasm SET STORAGE EXTERNAL;
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
    owner            text NOT NULL DEFAULT '',
    lease_until      timestamptz,
    created_by       text NOT NULL DEFAULT '',
    created_at       timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX IF NOT EXISTS matrices_newest ON matrices (created_at DESC, matrix_id DESC);
CREATE TABLE IF NOT EXISTS run_status (
    run_id                  text PRIMARY KEY CHECK (run_id <> ''),
    test_id                 text NOT NULL CHECK (test_id = run_id),
    template_id             text REFERENCES test_templates ON DELETE SET NULL,
    test_name               text NOT NULL DEFAULT '',
    scenario_config         jsonb NOT NULL,
    scenario_overview       jsonb GENERATED ALWAYS AS (scenario_config #- '{workload,feed}' #- '{workload,params}'
                                #- '{target,params}' #- '{matrix}') STORED,
    status                  text NOT NULL DEFAULT 'PREPARED' CONSTRAINT run_status_known CHECK (status IN
                                ('PREPARED', 'RUNNING', 'STOPPING', 'CANCELLING', 'COMPLETED', 'FAILED', 'CANCELLED')),
    phase                   text DEFAULT 'PREPARING' CONSTRAINT run_phase_known CHECK (phase IN
                                ('PREPARING', 'WARMUP', 'MEASUREMENT', 'COOLDOWN', 'PROCESSING')),
    start_time              timestamptz,
    warmup_start_time       timestamptz,
    warmup_end_time         timestamptz,
    measurement_end_time    timestamptz,
    end_time                timestamptz,
    total_workers_expected  integer NOT NULL DEFAULT 0 CHECK (total_workers_expected >= 0),
    workers_registered      integer NOT NULL DEFAULT 0 CHECK (workers_registered >= 0),
    workers_active          integer NOT NULL DEFAULT 0 CHECK (workers_active >= 0),
    workers_completed       integer NOT NULL DEFAULT 0 CHECK (workers_completed >= 0),
    total_ops               bigint NOT NULL DEFAULT 0 CHECK (total_ops >= 0),
    error_count             bigint NOT NULL DEFAULT 0 CHECK (error_count >= 0),
    current_qps             double precision NOT NULL DEFAULT 0,
    worker_targets          jsonb NOT NULL DEFAULT '{}',
    next_sequence_id        bigint NOT NULL DEFAULT 1 CHECK (next_sequence_id > 0),
    find_max_state          jsonb,
    rules_state             jsonb,
    stop_reason             text CHECK (stop_reason IN
                                ('duration_elapsed', 'user_requested', 'guardrail', 'worker_failure', 'setup_failure')),
    cancellation_reason     text,
    matrix_id               text REFERENCES matrices ON DELETE SET NULL,
    matrix_index            integer NOT NULL DEFAULT 0 CHECK (matrix_index >= 0),
    matrix_label            text NOT NULL DEFAULT '',
    owner                   text NOT NULL DEFAULT '',
    lease_until             timestamptz,
    owner_epoch             bigint NOT NULL DEFAULT 0 CHECK (owner_epoch >= 0),
    executions_deleted_at   timestamptz,
    executions_deleted_by   text NOT NULL DEFAULT '',
    created_by              text NOT NULL DEFAULT '',
    created_by_id           text NOT NULL DEFAULT '',
    created_at              timestamptz NOT NULL DEFAULT now(),
    updated_at              timestamptz NOT NULL DEFAULT now()
);
ALTER TABLE run_status ADD COLUMN IF NOT EXISTS created_by_id text NOT NULL DEFAULT '';
CREATE INDEX IF NOT EXISTS run_status_newest ON run_status (created_at DESC, run_id DESC);
CREATE INDEX IF NOT EXISTS run_status_template ON run_status (template_id);
CREATE INDEX IF NOT EXISTS run_status_live ON run_status (status)
    WHERE status IN ('RUNNING', 'STOPPING', 'CANCELLING') OR phase = 'PROCESSING';
CREATE INDEX IF NOT EXISTS run_status_matrix ON run_status (matrix_id, matrix_index) WHERE matrix_id IS NOT NULL;
CREATE OR REPLACE FUNCTION guard_run_status() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.status <> 'PREPARED' THEN
            RAISE EXCEPTION 'a run begins PREPARED, not %', NEW.status USING ERRCODE = 'LS001';
        END IF;
        RETURN NEW;
    END IF;
    IF TG_OP = 'DELETE' THEN
        IF OLD.status IN ('RUNNING', 'STOPPING', 'CANCELLING') THEN
            RAISE EXCEPTION 'run % is %: a live run is not deleted', OLD.run_id, OLD.status USING ERRCODE = 'LS001';
        END IF;
        RETURN OLD;
    END IF;
    IF NEW.run_id <> OLD.run_id THEN
        RAISE EXCEPTION 'a run keeps its id' USING ERRCODE = 'LS002';
    END IF;
    IF NEW.owner_epoch < OLD.owner_epoch THEN
        RAISE EXCEPTION 'the owner epoch of run % only rises', OLD.run_id USING ERRCODE = 'LS005';
    END IF;
    IF NEW.next_sequence_id < OLD.next_sequence_id THEN
        RAISE EXCEPTION 'the sequence of run % only rises', OLD.run_id USING ERRCODE = 'LS005';
    END IF;
    IF NEW.status <> OLD.status AND (OLD.status, NEW.status) NOT IN (
        ('PREPARED', 'RUNNING'), ('PREPARED', 'CANCELLED'),
        ('RUNNING', 'STOPPING'), ('RUNNING', 'CANCELLING'),
        ('STOPPING', 'COMPLETED'), ('STOPPING', 'CANCELLING'),
        ('CANCELLING', 'CANCELLED'), ('CANCELLING', 'FAILED'))
    THEN
        RAISE EXCEPTION 'run % is % and cannot become %', OLD.run_id, OLD.status, NEW.status USING ERRCODE = 'LS001';
    END IF;
    RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER guard_run_status BEFORE INSERT OR UPDATE OR DELETE ON run_status
    FOR EACH ROW EXECUTE FUNCTION guard_run_status();
CREATE OR REPLACE FUNCTION fence_run(run text, epoch bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    current_epoch bigint;
BEGIN
    SELECT owner_epoch INTO current_epoch FROM run_status WHERE run_id = run FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no run %', run USING ERRCODE = 'LS004';
    END IF;
    IF current_epoch <> epoch THEN
        RAISE EXCEPTION 'run % is owned at epoch %, not %', run, current_epoch, epoch USING ERRCODE = 'LS003';
    END IF;
END $$;
CREATE TABLE IF NOT EXISTS start_grants (
    grant_id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id      text UNIQUE REFERENCES run_status ON DELETE CASCADE,
    matrix_id   text UNIQUE REFERENCES matrices ON DELETE CASCADE,
    user_id     text NOT NULL CHECK (user_id <> ''),
    user_name   text NOT NULL DEFAULT '',
    confirmed   text[] NOT NULL DEFAULT '{}',
    granted_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT start_grant_subject CHECK (num_nonnulls(run_id, matrix_id) = 1)
);
ALTER TABLE IF EXISTS run_wishes RENAME TO run_commands;
ALTER INDEX IF EXISTS run_wishes_pkey RENAME TO run_commands_pkey;
ALTER SEQUENCE IF EXISTS run_wishes_seq_seq RENAME TO run_commands_seq_seq;
ALTER INDEX IF EXISTS run_wishes_open RENAME TO run_commands_open;
CREATE TABLE IF NOT EXISTS run_commands (
    seq          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id       text NOT NULL REFERENCES run_status ON DELETE CASCADE,
    kind         text NOT NULL CHECK (kind IN ('STOP', 'STOP_ENRICHMENT')),
    asked_by     text NOT NULL DEFAULT '',
    server       text NOT NULL DEFAULT '',
    asked_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    answered_by  text CHECK (answered_by <> ''),
    answered_at  timestamptz,
    heard_by     text CHECK (heard_by <> '')
);
ALTER TABLE run_commands ADD COLUMN IF NOT EXISTS heard_by text CHECK (heard_by <> '');
CREATE UNIQUE INDEX IF NOT EXISTS run_commands_open ON run_commands (run_id, kind) WHERE answered_by IS NULL;
CREATE TABLE IF NOT EXISTS run_control_events (
    event_id     text PRIMARY KEY,
    run_id       text NOT NULL REFERENCES run_status ON DELETE CASCADE,
    event_type   text NOT NULL CONSTRAINT event_type_known CHECK (event_type IN
                     ('START', 'STOP', 'SET_PHASE', 'SET_WORKER_TARGET', 'LOAD_CHANGED')),
    event_data   jsonb NOT NULL,
    sequence_id  bigint NOT NULL CHECK (sequence_id > 0),
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (run_id, sequence_id),
    CONSTRAINT event_scope_known CHECK (coalesce(event_data ->> 'scope', '') IN ('RUN', 'WORKER_GROUP', 'WORKER')),
    CONSTRAINT event_scope_complete CHECK (CASE event_data ->> 'scope'
        WHEN 'WORKER' THEN coalesce(event_data ->> 'worker_id', '') <> ''
        WHEN 'WORKER_GROUP' THEN event_data ? 'worker_group_id'
        ELSE true END)
);
CREATE OR REPLACE FUNCTION guard_control_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.sequence_id >= (SELECT next_sequence_id FROM run_status WHERE run_id = NEW.run_id) THEN
        RAISE EXCEPTION 'sequence id % of run % was not taken from next_sequence_id', NEW.sequence_id, NEW.run_id
            USING ERRCODE = 'LS005';
    END IF;
    IF NEW.sequence_id < (SELECT max(sequence_id) FROM run_control_events WHERE run_id = NEW.run_id) THEN
        RAISE EXCEPTION 'sequence id % of run % is not the highest', NEW.sequence_id, NEW.run_id USING ERRCODE = 'LS005';
    END IF;
    RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER guard_control_event BEFORE INSERT ON run_control_events
    FOR EACH ROW EXECUTE FUNCTION guard_control_event();
CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND pg_trigger_depth() > 1 THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'LS002';
END $$;
CREATE OR REPLACE TRIGGER refuse_change BEFORE UPDATE OR DELETE ON run_control_events
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TABLE IF NOT EXISTS worker_heartbeats (
    run_id           text NOT NULL REFERENCES run_status ON DELETE CASCADE,
    worker_id        text NOT NULL CHECK (worker_id <> ''),
    worker_group_id  integer NOT NULL DEFAULT 0 CHECK (worker_group_id >= 0),
    node_id          text NOT NULL DEFAULT '',
    test_id          text NOT NULL DEFAULT '',
    status           text NOT NULL CONSTRAINT worker_status_known CHECK (status IN
                         ('STARTING', 'READY', 'RUNNING', 'DRAINING', 'COMPLETED', 'FAILED', 'DEAD')),
    phase            text CHECK (phase IN ('PREPARING', 'WARMUP', 'MEASUREMENT', 'COOLDOWN', 'PROCESSING')),
    last_heartbeat   timestamptz NOT NULL DEFAULT now(),
    error            text NOT NULL DEFAULT '',
    created_at       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (run_id, worker_id)
);
CREATE TABLE IF NOT EXISTS worker_metrics_snapshots (
    run_id              text NOT NULL REFERENCES run_status ON DELETE CASCADE,
    worker_id           text NOT NULL CHECK (worker_id <> ''),
    tick                bigint NOT NULL,
    test_id             text NOT NULL DEFAULT '',
    worker_group_id     integer NOT NULL DEFAULT 0,
    node_id             text NOT NULL DEFAULT '',
    "timestamp"         timestamptz NOT NULL,
    elapsed_seconds     double precision NOT NULL DEFAULT 0,
    phase               text,
    status              text NOT NULL DEFAULT '',
    qps                 double precision NOT NULL DEFAULT 0,
    p50_latency_ms      double precision,
    p95_latency_ms      double precision,
    p99_latency_ms      double precision,
    avg_latency_ms      double precision,
    max_latency_ms      double precision,
    total_queries       bigint NOT NULL DEFAULT 0,
    read_count          bigint NOT NULL DEFAULT 0,
    write_count         bigint NOT NULL DEFAULT 0,
    error_count         bigint NOT NULL DEFAULT 0,
    active_connections  integer NOT NULL DEFAULT 0,
    target_connections  integer NOT NULL DEFAULT 0,
    cpu_pct             double precision NOT NULL DEFAULT 0,
    memory_pct          double precision NOT NULL DEFAULT 0,
    custom_metrics      jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (run_id, worker_id, tick)
);
CREATE TABLE IF NOT EXISTS metrics_snapshots (
    run_id              text NOT NULL REFERENCES run_status ON DELETE CASCADE,
    "timestamp"         timestamptz NOT NULL,
    elapsed_seconds     double precision NOT NULL DEFAULT 0,
    phase               text,
    qps                 double precision NOT NULL DEFAULT 0,
    reads_per_sec       double precision NOT NULL DEFAULT 0,
    writes_per_sec      double precision NOT NULL DEFAULT 0,
    p50_latency_ms      double precision,
    p95_latency_ms      double precision,
    p99_latency_ms      double precision,
    avg_latency_ms      double precision,
    max_latency_ms      double precision,
    errors_per_sec      double precision NOT NULL DEFAULT 0,
    total_queries       bigint NOT NULL DEFAULT 0,
    error_count         bigint NOT NULL DEFAULT 0,
    active_connections  integer NOT NULL DEFAULT 0,
    target_connections  integer NOT NULL DEFAULT 0,
    qps_by_kind         jsonb,
    errors_by_class     jsonb,
    histogram           jsonb,
    load_detail         jsonb,
    cpu_pct             double precision NOT NULL DEFAULT 0,
    memory_pct          double precision NOT NULL DEFAULT 0,
    host_cpu_pct        double precision NOT NULL DEFAULT 0,
    host_memory_pct     double precision NOT NULL DEFAULT 0,
    PRIMARY KEY (run_id, "timestamp")
);
CREATE TABLE IF NOT EXISTS metrics_rollups (
    run_id      text NOT NULL REFERENCES run_status ON DELETE CASCADE,
    stretch     bigint NOT NULL,
    phase       text NOT NULL DEFAULT '',
    last_at     timestamptz NOT NULL,
    points      bigint NOT NULL,
    qps_sum     double precision NOT NULL,
    reads_sum   double precision NOT NULL,
    writes_sum  double precision NOT NULL,
    errors_sum  double precision NOT NULL,
    latencies   bigint NOT NULL,
    p50_sum     double precision NOT NULL,
    avg_sum     double precision NOT NULL,
    p95_max     double precision,
    p99_max     double precision,
    max_max     double precision,
    PRIMARY KEY (run_id, stretch, phase)
);
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
CREATE TABLE IF NOT EXISTS warehouse_poll_snapshots (
    snapshot_id         text PRIMARY KEY DEFAULT gen_random_uuid()::text,
    run_id              text NOT NULL REFERENCES run_status ON DELETE CASCADE,
    "timestamp"         timestamptz NOT NULL,
    elapsed_seconds     double precision,
    warehouse_name      text NOT NULL,
    state               text NOT NULL DEFAULT '',
    warehouse_type      text NOT NULL DEFAULT '',
    warehouse_size      text NOT NULL DEFAULT '',
    generation          text NOT NULL DEFAULT '',
    fallback_warehouse  text DEFAULT '',
    started_clusters    integer,
    running             integer,
    queued              integer,
    min_cluster_count   integer,
    max_cluster_count   integer,
    scaling_policy      text,
    raw_result          jsonb,
    created_at          timestamptz NOT NULL DEFAULT now()
);
ALTER TABLE warehouse_poll_snapshots ALTER COLUMN fallback_warehouse DROP NOT NULL;
CREATE INDEX IF NOT EXISTS warehouse_poll_snapshots_by_run ON warehouse_poll_snapshots (run_id, "timestamp");
CREATE OR REPLACE VIEW v_warehouse_timeseries AS
SELECT r.run_id, s.slot, r.start_time + s.slot * interval '5 seconds' AS slot_start,
    s.slot * 5.0::double precision AS elapsed_seconds,
    p.warehouse_name, p.state, p.warehouse_type, p.warehouse_size, p.generation, p.started_clusters,
    p.min_cluster_count, p.max_cluster_count, p.running,
    greatest(p.queued, q.queued) AS queued, coalesce(q.polls, 0) AS polls, m.qps
FROM run_status r
CROSS JOIN LATERAL generate_series(0,
    ceil(extract(epoch FROM coalesce(r.end_time, now()) - r.start_time) / 5)::bigint - 1) AS s(slot)
LEFT JOIN LATERAL (
    SELECT w.warehouse_name, w.state, w.warehouse_type, w.warehouse_size, w.generation, w.started_clusters,
        w.min_cluster_count, w.max_cluster_count, w.running, w.queued
    FROM warehouse_poll_snapshots w WHERE w.run_id = r.run_id
        AND w."timestamp" < r.start_time + (s.slot + 1) * interval '5 seconds'
        AND w."timestamp" >= r.start_time + (s.slot - 1) * interval '5 seconds'
    ORDER BY w."timestamp" DESC LIMIT 1) p ON true
LEFT JOIN LATERAL (
    SELECT max(w.queued) AS queued, count(*) AS polls FROM warehouse_poll_snapshots w WHERE w.run_id = r.run_id
        AND w."timestamp" >= r.start_time + s.slot * interval '5 seconds'
        AND w."timestamp" < r.start_time + (s.slot + 1) * interval '5 seconds') q ON true
LEFT JOIN LATERAL (
    SELECT avg(t.qps) AS qps FROM metrics_snapshots t WHERE t.run_id = r.run_id
        AND t."timestamp" >= r.start_time + s.slot * interval '5 seconds'
        AND t."timestamp" < r.start_time + (s.slot + 1) * interval '5 seconds') m ON true
WHERE r.start_time IS NOT NULL;
CREATE TABLE IF NOT EXISTS find_max_step_history (
    step_id                   text PRIMARY KEY DEFAULT gen_random_uuid()::text,
    run_id                    text NOT NULL REFERENCES run_status ON DELETE CASCADE,
    step_number               integer NOT NULL CHECK (step_number > 0),
    repetition                integer NOT NULL DEFAULT 1 CHECK (repetition > 0),
    stage                     text NOT NULL DEFAULT 'STEPPING',
    total_target_connections  integer NOT NULL CHECK (total_target_connections >= 0),
    target_qps                double precision,
    step_start_time           timestamptz NOT NULL,
    step_end_time             timestamptz,
    step_duration_seconds     double precision,
    total_queries             bigint,
    qps                       double precision,
    p50_latency_ms            double precision,
    p95_latency_ms            double precision,
    p99_latency_ms            double precision,
    error_count               bigint,
    error_rate                double precision,
    dropped_count             bigint NOT NULL DEFAULT 0,
    qps_vs_prior_pct          double precision,
    p95_vs_baseline_pct       double precision,
    queue_detected            boolean NOT NULL DEFAULT false,
    outcome                   text CHECK (outcome IN
                                  ('STABLE', 'DEGRADED', 'ERROR_THRESHOLD', 'QUEUE_DETECTED', 'PLATEAU')),
    stop_reason               text,
    created_at                timestamptz NOT NULL DEFAULT now(),
    UNIQUE (run_id, step_number)
);
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
    enrichment         jsonb,
    failure_reason     text NOT NULL DEFAULT '',
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
    CONSTRAINT result_parent FOREIGN KEY (run_id) REFERENCES test_results (test_id) ON DELETE CASCADE,
    CONSTRAINT result_worker CHECK ((test_id = run_id) = (worker_id IS NULL))
);
CREATE INDEX IF NOT EXISTS test_results_enriching ON test_results (run_id)
    WHERE enrichment_status IN ('PENDING', 'RUNNING');
CREATE UNIQUE INDEX IF NOT EXISTS test_results_worker ON test_results (run_id, worker_id);
CREATE TABLE IF NOT EXISTS query_execution_artifacts (
    artifact_id             text PRIMARY KEY,
    run_id                  text NOT NULL REFERENCES run_status ON DELETE CASCADE,
    test_id                 text NOT NULL,
    worker_id               text NOT NULL DEFAULT '',
    kind                    text NOT NULL CHECK (kind IN ('executions', 'enrichment', 'binds')),
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
CREATE OR REPLACE TRIGGER refuse_change BEFORE UPDATE ON query_execution_artifacts
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE INDEX IF NOT EXISTS test_results_plain_pools ON test_results (test_id) WHERE plan ? 'pools';
ALTER TABLE IF EXISTS run_rooms RENAME TO run_reservations;
ALTER INDEX IF EXISTS run_rooms_pkey RENAME TO run_reservations_pkey;
ALTER TABLE IF EXISTS run_rooms_turn RENAME TO run_admission_lock;
DROP FUNCTION IF EXISTS release_room() CASCADE;
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass('run_queue') AND attname = 'works') THEN
        ALTER TABLE run_queue RENAME works TO demands;
    END IF;
END $$;
CREATE TABLE IF NOT EXISTS run_reservations (
    run_id       text NOT NULL REFERENCES run_status ON DELETE CASCADE,
    worker_id    text NOT NULL CHECK (worker_id <> ''),
    node_id      text NOT NULL CHECK (node_id <> ''),
    connections  integer NOT NULL CHECK (connections >= 0),
    PRIMARY KEY (run_id, worker_id)
);
CREATE TABLE IF NOT EXISTS run_queue (
    place      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id     text NOT NULL UNIQUE REFERENCES run_status ON DELETE CASCADE,
    pool       text NOT NULL DEFAULT '',
    demands    jsonb NOT NULL,
    asked_by   text NOT NULL DEFAULT '',
    since      timestamptz NOT NULL DEFAULT clock_timestamp(),
    fitted_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE IF NOT EXISTS run_admission_lock (nothing boolean);
CREATE OR REPLACE FUNCTION release_reservations() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM run_queue WHERE run_id = NEW.run_id;
    IF NEW.status <> 'RUNNING' THEN
        DELETE FROM run_reservations WHERE run_id = NEW.run_id;
    END IF;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER release_reservations AFTER UPDATE OF status ON run_status FOR EACH ROW
    WHEN (NEW.status IN ('RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED') AND NEW.status <> OLD.status)
    EXECUTE FUNCTION release_reservations();
CREATE TABLE IF NOT EXISTS run_marks (
    mark_id     text PRIMARY KEY,
    run_id      text NOT NULL REFERENCES run_status ON DELETE CASCADE,
    at          timestamptz NOT NULL,
    mark_text   text NOT NULL CONSTRAINT run_mark_text CHECK (mark_text <> '' AND length(mark_text) <= 200),
    made_by     text NOT NULL DEFAULT '',
    made_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_by  text NOT NULL DEFAULT '',
    changed_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX IF NOT EXISTS run_marks_of_run ON run_marks (run_id, at);
CREATE TABLE IF NOT EXISTS run_notes (
    run_id      text PRIMARY KEY REFERENCES run_status ON DELETE CASCADE,
    note        text NOT NULL CONSTRAINT run_note_length CHECK (length(note) <= 10000),
    version     bigint NOT NULL DEFAULT 1 CHECK (version > 0),
    updated_by  text NOT NULL DEFAULT '',
    updated_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE IF NOT EXISTS template_baselines (
    template_id  text PRIMARY KEY REFERENCES test_templates ON DELETE CASCADE,
    run_id       text NOT NULL REFERENCES run_status ON DELETE CASCADE,
    set_by       text NOT NULL DEFAULT '',
    set_at       timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX IF NOT EXISTS template_baselines_run ON template_baselines (run_id);
CREATE TABLE IF NOT EXISTS run_shares (
    share_id       text PRIMARY KEY CHECK (share_id <> ''),
    run_id         text NOT NULL CHECK (run_id <> ''),
    run_name       text NOT NULL DEFAULT '',
    secret_sha256  bytea NOT NULL UNIQUE CONSTRAINT share_secret_hash CHECK (octet_length(secret_sha256) = 32),
    created_by     text NOT NULL DEFAULT '',
    created_by_id  text NOT NULL DEFAULT '',
    created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at     timestamptz NOT NULL,
    used_at        timestamptz,
    use_count      bigint NOT NULL DEFAULT 0 CHECK (use_count >= 0),
    hash_key       integer NOT NULL DEFAULT 0
);
ALTER TABLE run_shares ADD COLUMN IF NOT EXISTS hash_key integer NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS created_by_id text NOT NULL DEFAULT '';
CREATE INDEX IF NOT EXISTS run_shares_run ON run_shares (run_id);
CREATE TABLE IF NOT EXISTS run_views (
    view_id     text PRIMARY KEY CHECK (view_id <> ''),
    user_id     text REFERENCES users ON DELETE CASCADE,
    owner_name  text NOT NULL DEFAULT '',
    view_name   text NOT NULL CONSTRAINT run_view_name CHECK (view_name <> '' AND length(view_name) <= 80),
    query       text NOT NULL DEFAULT '' CONSTRAINT run_view_query CHECK (length(query) <= 4000),
    shared      boolean NOT NULL DEFAULT false,
    version     bigint NOT NULL DEFAULT 1 CHECK (version > 0),
    updated_by  text NOT NULL DEFAULT '',
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT run_view_owner CHECK (user_id IS NOT NULL OR shared)
);
CREATE UNIQUE INDEX IF NOT EXISTS run_views_user_name_key ON run_views (user_id, view_name);
CREATE INDEX IF NOT EXISTS run_views_shared ON run_views (view_name) WHERE shared;
CREATE TABLE IF NOT EXISTS saved_queries (
    query_name  text PRIMARY KEY CONSTRAINT saved_query_name CHECK (query_name <> '' AND length(query_name) <= 100),
    statement   text NOT NULL CHECK (statement <> ''),
    chart       text NOT NULL DEFAULT '',
    version     bigint NOT NULL DEFAULT 1 CHECK (version > 0),
    created_by  text NOT NULL DEFAULT '',
    updated_by  text NOT NULL DEFAULT '',
    created_at  timestamptz NOT NULL DEFAULT now(),
    updated_at  timestamptz NOT NULL DEFAULT now()
);
ALTER TABLE IF EXISTS result_places RENAME TO result_stores;
ALTER INDEX IF EXISTS result_places_pkey RENAME TO result_stores_pkey;
ALTER TABLE IF EXISTS run_leftovers RENAME TO pending_file_deletions;
ALTER INDEX IF EXISTS run_leftovers_pkey RENAME TO pending_file_deletions_pkey;
DROP FUNCTION IF EXISTS leave_over(text, boolean);
CREATE TABLE IF NOT EXISTS result_stores (
    place    text PRIMARY KEY CHECK (place <> ''),
    label    text NOT NULL DEFAULT '',
    seen_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE IF NOT EXISTS pending_file_deletions (
    run_id    text NOT NULL CHECK (run_id <> ''),
    place     text NOT NULL DEFAULT '',
    part      text NOT NULL DEFAULT '',
    whole     boolean NOT NULL,
    bytes     bigint NOT NULL DEFAULT 0,
    since     timestamptz NOT NULL DEFAULT clock_timestamp(),
    tried_at  timestamptz,
    problem   text NOT NULL DEFAULT '',
    PRIMARY KEY (run_id, place, part)
);
CREATE OR REPLACE FUNCTION queue_file_deletion(run text, everything boolean) RETURNS void LANGUAGE sql AS $$
    INSERT INTO pending_file_deletions (run_id, whole, place, bytes)
    SELECT run, everything, p.place, coalesce((SELECT sum(artifact_size_bytes)::bigint FROM query_execution_artifacts a
        WHERE a.run_id = run AND a.kind IN ('executions', 'binds')), 0)
    FROM (SELECT place FROM result_stores UNION ALL SELECT '' WHERE NOT EXISTS (SELECT FROM result_stores)) p
    ON CONFLICT (run_id, place, part) DO UPDATE SET whole = pending_file_deletions.whole OR excluded.whole,
        bytes = greatest(pending_file_deletions.bytes, excluded.bytes)
$$;
CREATE TABLE IF NOT EXISTS node_addresses (
    address   text PRIMARY KEY CHECK (address <> ''),
    added_by  text NOT NULL DEFAULT '',
    added_at  timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE IF NOT EXISTS joined_node_addresses (
    server     text NOT NULL CHECK (server <> ''),
    address    text NOT NULL CHECK (address <> ''),
    joined_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (server, address)
);
CREATE TABLE IF NOT EXISTS node_authority (
    singleton    boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    certificate  bytea NOT NULL,
    key_sealed   text NOT NULL CHECK (key_sealed <> ''),
    created_at   timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE IF NOT EXISTS node_tokens (
    token_id       text PRIMARY KEY CHECK (token_id <> ''),
    secret_sha256  bytea NOT NULL UNIQUE CHECK (length(secret_sha256) = 32),
    uses           integer NOT NULL CHECK (uses > 0),
    used           integer NOT NULL DEFAULT 0 CHECK (used BETWEEN 0 AND uses),
    created_by     text NOT NULL DEFAULT '',
    created_by_id  text NOT NULL DEFAULT '',
    created_at     timestamptz NOT NULL DEFAULT now(),
    expires_at     timestamptz NOT NULL,
    hash_key       integer NOT NULL DEFAULT 0
);
ALTER TABLE node_tokens ADD COLUMN IF NOT EXISTS hash_key integer NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS created_by_id text NOT NULL DEFAULT '';
CREATE TABLE IF NOT EXISTS node_certificates (
    serial      text PRIMARY KEY CHECK (serial <> ''),
    node_id     text NOT NULL CHECK (node_id <> ''),
    key_sha256  bytea NOT NULL CHECK (length(key_sha256) = 32),
    token_id    text NOT NULL DEFAULT '',
    issued_at   timestamptz NOT NULL DEFAULT now(),
    expires_at  timestamptz NOT NULL,
    revoked_at  timestamptz,
    revoked_by  text NOT NULL DEFAULT ''
);
CREATE INDEX IF NOT EXISTS node_certificates_by_node ON node_certificates (node_id);
CREATE INDEX IF NOT EXISTS node_certificates_revoked ON node_certificates (expires_at) WHERE revoked_at IS NOT NULL;
ALTER TABLE IF EXISTS node_wishes RENAME TO node_intents;
ALTER INDEX IF EXISTS node_wishes_pkey RENAME TO node_intents_pkey;
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass('node_intents') AND attname = 'wish') THEN
        ALTER TABLE node_intents RENAME wish TO desired_state;
    END IF;
END $$;
CREATE TABLE IF NOT EXISTS node_intents (
    node_id        text PRIMARY KEY CHECK (node_id <> ''),
    desired_state  text NOT NULL CHECK (desired_state IN ('DRAIN', 'REMOVE')),
    asked_by       text NOT NULL DEFAULT '',
    asked_at       timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE IF NOT EXISTS node_events (
    seq         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at          timestamptz NOT NULL,
    node_id     text NOT NULL CHECK (node_id <> ''),
    server      text NOT NULL DEFAULT '',
    kind        text NOT NULL CHECK (kind IN ('STATE', 'OPERATOR', 'REFUSED')),
    from_state  text NOT NULL DEFAULT '',
    to_state    text NOT NULL DEFAULT '',
    reason      text NOT NULL DEFAULT '',
    asked_by    text NOT NULL DEFAULT ''
);
CREATE INDEX IF NOT EXISTS node_events_by_node ON node_events (node_id, seq);
CREATE TABLE IF NOT EXISTS dynamic_tables (
    name                text PRIMARY KEY CONSTRAINT dynamic_table_name CHECK (name <> '' AND octet_length(name) <= 63),
    kind                text NOT NULL CHECK (kind IN ('SQL', 'INGEST')),
    definition          text NOT NULL DEFAULT '',
    description         text NOT NULL DEFAULT '',
    bundled             boolean NOT NULL DEFAULT false,
    target_lag_seconds  double precision NOT NULL CHECK (target_lag_seconds > 0 AND target_lag_seconds <= 31622400),
    refresh_mode        text NOT NULL DEFAULT 'AUTO' CHECK (refresh_mode IN ('FULL', 'INCREMENTAL', 'AUTO')),
    partition_by        text NOT NULL DEFAULT '' CHECK (partition_by IN ('', 'RUN', 'DAY')),
    partitions          integer NOT NULL DEFAULT 0
                            CHECK (partitions BETWEEN 0 AND 64 AND (partitions < 2 OR partition_by <> '')),
    priority            integer NOT NULL DEFAULT 0,
    status              text NOT NULL DEFAULT 'ACTIVE' CHECK (status IN ('ACTIVE', 'SUSPENDED', 'FAILED')),
    version             bigint NOT NULL DEFAULT 1 CHECK (version > 0),
    changed_at          timestamptz,
    behind_since        timestamptz,
    as_of               timestamptz,
    next_refresh_due    timestamptz,
    last_seconds        double precision NOT NULL DEFAULT 0 CHECK (last_seconds >= 0),
    wait_seconds        double precision NOT NULL DEFAULT 0 CHECK (wait_seconds >= 0),
    failures            integer NOT NULL DEFAULT 0 CHECK (failures >= 0),
    error               text NOT NULL DEFAULT '',
    created_by          text NOT NULL DEFAULT '',
    owner_id            text NOT NULL DEFAULT '',
    owner               text NOT NULL DEFAULT '',
    suspended_reason    text NOT NULL DEFAULT '',
    updated_by          text NOT NULL DEFAULT '',
    created_at          timestamptz NOT NULL DEFAULT now(),
    updated_at          timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT dynamic_table_definition CHECK ((kind = 'SQL') = (definition <> ''))
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 100, autovacuum_vacuum_scale_factor = 0.1);
ALTER TABLE dynamic_tables ADD COLUMN IF NOT EXISTS owner_id text NOT NULL DEFAULT '',
    ADD COLUMN IF NOT EXISTS owner text NOT NULL DEFAULT '',
    ADD COLUMN IF NOT EXISTS suspended_reason text NOT NULL DEFAULT '';
CREATE TABLE IF NOT EXISTS dynamic_table_sources (
    dynamic_table  text NOT NULL REFERENCES dynamic_tables ON DELETE CASCADE,
    source         text NOT NULL REFERENCES dynamic_tables,
    PRIMARY KEY (dynamic_table, source),
    CONSTRAINT dynamic_table_reads_itself CHECK (dynamic_table <> source)
);
CREATE INDEX IF NOT EXISTS dynamic_table_readers ON dynamic_table_sources (source);
CREATE OR REPLACE FUNCTION guard_dynamic_table_sources() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(1818321522);
    IF EXISTS (
        WITH RECURSIVE below AS (
            SELECT NEW.source AS name
            UNION
            SELECT s.source FROM dynamic_table_sources s JOIN below b ON s.dynamic_table = b.name)
        SELECT FROM below WHERE name = NEW.dynamic_table)
    THEN
        RAISE EXCEPTION 'dynamic table % would read itself through %', NEW.dynamic_table, NEW.source
            USING ERRCODE = 'LS005';
    END IF;
    RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER guard_dynamic_table_sources BEFORE INSERT OR UPDATE ON dynamic_table_sources
    FOR EACH ROW EXECUTE FUNCTION guard_dynamic_table_sources();
CREATE TABLE IF NOT EXISTS refresh_subtasks (
    dynamic_table  text NOT NULL REFERENCES dynamic_tables ON DELETE CASCADE,
    subtask        text NOT NULL CHECK (subtask <> ''),
    status         text NOT NULL CHECK (status IN ('PENDING', 'DONE', 'FAILED')),
    as_of          timestamptz,
    asked_at       timestamptz,
    failures       integer NOT NULL DEFAULT 0 CHECK (failures >= 0),
    error          text NOT NULL DEFAULT '',
    updated_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (dynamic_table, subtask)
) WITH (fillfactor = 70);
CREATE INDEX IF NOT EXISTS refresh_subtasks_failing ON refresh_subtasks (dynamic_table) WHERE failures > 0;
CREATE TABLE IF NOT EXISTS refresh_history (
    seq            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    dynamic_table  text NOT NULL REFERENCES dynamic_tables ON DELETE CASCADE,
    subtask        text NOT NULL DEFAULT '',
    worker_id      text NOT NULL,
    epoch          bigint NOT NULL UNIQUE,
    started_at     timestamptz NOT NULL,
    ended_at       timestamptz NOT NULL CHECK (ended_at >= started_at),
    refresh_mode   text NOT NULL DEFAULT '' CHECK (refresh_mode IN ('', 'FULL', 'INCREMENTAL')),
    note           text NOT NULL DEFAULT '',
    row_count      bigint NOT NULL DEFAULT 0 CHECK (row_count >= 0),
    byte_count     bigint NOT NULL DEFAULT 0 CHECK (byte_count >= 0),
    lag_seconds    double precision,
    error          text NOT NULL DEFAULT ''
);
CREATE INDEX IF NOT EXISTS refresh_history_newest ON refresh_history (dynamic_table, seq);
CREATE TABLE IF NOT EXISTS refresh_workers (
    worker_id  text PRIMARY KEY CHECK (worker_id <> ''),
    role       text NOT NULL CHECK (role IN ('SERVER', 'NODE')),
    host       text NOT NULL DEFAULT '',
    kinds      text[] NOT NULL,
    slots      integer NOT NULL CHECK (slots > 0),
    waits_for  text NOT NULL DEFAULT '',
    seen_at    timestamptz NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS pending_refreshes (
    dynamic_table     text NOT NULL REFERENCES dynamic_tables ON DELETE CASCADE,
    subtask           text NOT NULL DEFAULT '',
    priority          integer NOT NULL DEFAULT 0,
    next_refresh_due  timestamptz NOT NULL,
    enqueued_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (dynamic_table, subtask)
) WITH (fillfactor = 70, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0,
    autovacuum_analyze_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX IF NOT EXISTS pending_refreshes_order
    ON pending_refreshes (priority DESC, next_refresh_due, dynamic_table, subtask);
CREATE SEQUENCE IF NOT EXISTS refresh_epochs;
CREATE TABLE IF NOT EXISTS refresh_claims (
    dynamic_table  text NOT NULL,
    subtask        text NOT NULL DEFAULT '',
    worker_id      text NOT NULL CHECK (worker_id <> ''),
    epoch          bigint NOT NULL UNIQUE CHECK (epoch > 0),
    claimed_at     timestamptz NOT NULL,
    heartbeat_at   timestamptz NOT NULL CHECK (heartbeat_at >= claimed_at),
    expires_at     timestamptz NOT NULL CHECK (expires_at > heartbeat_at),
    PRIMARY KEY (dynamic_table, subtask),
    FOREIGN KEY (dynamic_table, subtask) REFERENCES pending_refreshes ON DELETE CASCADE
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0,
    autovacuum_analyze_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE IF NOT EXISTS refresh_bounds (
    priority  integer PRIMARY KEY,
    due       timestamptz NOT NULL
) WITH (fillfactor = 20);
CREATE OR REPLACE FUNCTION lower_refresh_bounds() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(1818321523);
    INSERT INTO refresh_bounds SELECT priority, min(next_refresh_due) FROM added a
        WHERE NOT EXISTS (SELECT FROM refresh_bounds b WHERE b.priority = a.priority) GROUP BY priority
        ORDER BY priority ON CONFLICT DO NOTHING;
    UPDATE refresh_bounds b SET due = a.due
        FROM (SELECT priority, min(next_refresh_due) AS due FROM added GROUP BY priority) a
        WHERE a.priority = b.priority AND a.due < b.due;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER lower_refresh_bounds_of_new AFTER INSERT ON pending_refreshes
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION lower_refresh_bounds();
CREATE OR REPLACE TRIGGER lower_refresh_bounds_of_changed AFTER UPDATE ON pending_refreshes
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION lower_refresh_bounds();
CREATE OR REPLACE FUNCTION raise_refresh_bounds() RETURNS void LANGUAGE plpgsql
    SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
    IF pg_try_advisory_xact_lock(1818321523) THEN
        UPDATE refresh_bounds b SET due = n.due
            FROM (SELECT o.priority, least(clock_timestamp() - interval '5 s', (SELECT p.next_refresh_due
                FROM pending_refreshes p WHERE p.priority = o.priority AND p.next_refresh_due >= o.due
                ORDER BY p.next_refresh_due LIMIT 1)) AS due FROM refresh_bounds o) n
            WHERE n.priority = b.priority AND n.due > b.due + interval '1 s';
    END IF;
END $$;
CREATE OR REPLACE FUNCTION claim_refreshes(worker text, most integer, life_seconds double precision, of_kinds text[])
    RETURNS SETOF refresh_claims LANGUAGE plpgsql
    SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
DECLARE
    bound   refresh_bounds;
    moment  timestamptz := clock_timestamp();
    got     integer;
BEGIN
    FOR bound IN SELECT * FROM refresh_bounds ORDER BY priority DESC LOOP
        RETURN QUERY WITH picked AS MATERIALIZED (
                SELECT p.dynamic_table, p.subtask FROM pending_refreshes p
                WHERE p.priority = bound.priority AND p.next_refresh_due BETWEEN bound.due AND moment
                    AND (SELECT true FROM refresh_claims c
                        WHERE c.dynamic_table = p.dynamic_table AND c.subtask = p.subtask) IS NULL
                    AND (of_kinds IS NULL
                        OR (SELECT t.kind FROM dynamic_tables t WHERE t.name = p.dynamic_table) = ANY (of_kinds))
                ORDER BY p.next_refresh_due, p.dynamic_table, p.subtask
                LIMIT most FOR UPDATE OF p SKIP LOCKED)
            INSERT INTO refresh_claims (dynamic_table, subtask, worker_id, epoch, claimed_at, heartbeat_at, expires_at)
            SELECT p.dynamic_table, p.subtask, worker, nextval('refresh_epochs'), n.now, n.now,
                n.now + make_interval(secs => life_seconds)
            FROM picked p, (SELECT clock_timestamp() AS now) n ON CONFLICT DO NOTHING RETURNING *;
        GET DIAGNOSTICS got = ROW_COUNT;
        most := most - got;
        EXIT WHEN most <= 0;
    END LOOP;
END $$;
CREATE OR REPLACE FUNCTION divide_refresh(tbl text, held bigint, parts text[], anew boolean) RETURNS boolean
    LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    entry  pending_refreshes;
    begun  timestamptz;
BEGIN
    SELECT * INTO entry FROM pending_refreshes WHERE dynamic_table = tbl AND subtask = '' FOR UPDATE;
    DELETE FROM refresh_claims WHERE dynamic_table = tbl AND subtask = '' AND epoch = held
        AND expires_at > clock_timestamp() RETURNING claimed_at INTO begun;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF anew THEN
        DELETE FROM pending_refreshes WHERE dynamic_table = tbl AND subtask <> '';
        DELETE FROM refresh_subtasks WHERE dynamic_table = tbl;
    END IF;
    IF NOT anew THEN
        SELECT least(begun, changed_at - interval '1 microsecond') INTO begun FROM dynamic_tables WHERE name = tbl;
    END IF;
    INSERT INTO refresh_subtasks AS old (dynamic_table, subtask, status, as_of)
        SELECT tbl, part, 'PENDING', begun FROM unnest(parts) AS part
        ON CONFLICT (dynamic_table, subtask) DO UPDATE SET status = 'PENDING', as_of = least(old.as_of, excluded.as_of);
    INSERT INTO pending_refreshes (dynamic_table, subtask, priority, next_refresh_due)
        SELECT tbl, part, entry.priority, clock_timestamp() FROM unnest(parts) AS part ORDER BY part
        ON CONFLICT DO NOTHING;
    UPDATE pending_refreshes SET next_refresh_due = clock_timestamp() + interval '1 hour'
        WHERE dynamic_table = tbl AND subtask = '';
    RETURN true;
END $$;
CREATE OR REPLACE FUNCTION release_refresh(tbl text, sub text, held bigint, failure text, how text, why text,
    row_total bigint, byte_total bigint, unchanged boolean, gone boolean, pauses double precision[])
    RETURNS boolean LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    c         refresh_claims;
    moment    timestamptz;
    oldest    timestamptz;
    begun     timestamptz;
    due       timestamptz;
    attempts  integer;
    whole     boolean;
BEGIN
    PERFORM FROM pending_refreshes WHERE dynamic_table = tbl AND subtask IN ('', sub) ORDER BY subtask FOR UPDATE;
    DELETE FROM refresh_claims WHERE dynamic_table = tbl AND subtask = sub AND epoch = held
        AND expires_at > clock_timestamp() RETURNING * INTO c;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    whole := sub <> '' AND EXISTS (SELECT FROM pending_refreshes WHERE dynamic_table = tbl AND subtask = '');
    IF failure = '' THEN
        DELETE FROM pending_refreshes WHERE dynamic_table = tbl AND subtask = sub
            RETURNING enqueued_at, next_refresh_due INTO oldest, due;
        IF NOT unchanged THEN
            PERFORM notify_refresh_readers(tbl);
        END IF;
        moment := clock_timestamp();
        IF sub = '' THEN
            SELECT least(c.claimed_at, min(as_of)) INTO begun FROM refresh_subtasks WHERE dynamic_table = tbl;
            DELETE FROM refresh_subtasks WHERE dynamic_table = tbl;
            SELECT coalesce(behind_since, oldest) INTO oldest FROM dynamic_tables WHERE name = tbl;
            UPDATE dynamic_tables SET as_of = CASE WHEN updated_at > begun THEN NULL ELSE begun END,
                behind_since = CASE WHEN changed_at > begun THEN changed_at END, failures = 0, error = '',
                last_seconds = extract(epoch FROM moment - begun),
                wait_seconds = greatest(extract(epoch FROM c.claimed_at - due), 0.9 * wait_seconds, 0) WHERE name = tbl;
        ELSIF gone THEN
            DELETE FROM refresh_subtasks WHERE dynamic_table = tbl AND subtask = sub;
        ELSE
            INSERT INTO refresh_subtasks AS old (dynamic_table, subtask, status, as_of)
                VALUES (tbl, sub, 'DONE', c.claimed_at)
                ON CONFLICT (dynamic_table, subtask) DO UPDATE SET status = 'DONE', as_of = CASE WHEN whole
                    THEN least(old.as_of, excluded.as_of) ELSE excluded.as_of END, failures = 0, error = '',
                    updated_at = excluded.updated_at;
        END IF;
    ELSE
        moment := clock_timestamp();
        unchanged := true;
        attempts := fail_refresh(tbl, sub, c.claimed_at, failure, pauses);
        IF attempts <= cardinality(pauses) THEN
            UPDATE pending_refreshes SET next_refresh_due = moment + make_interval(secs => pauses[attempts])
                WHERE dynamic_table = tbl AND subtask = sub;
        ELSE
            DELETE FROM pending_refreshes WHERE dynamic_table = tbl AND subtask = sub;
            IF whole THEN
                DELETE FROM pending_refreshes p WHERE p.dynamic_table = tbl AND NOT EXISTS (SELECT FROM refresh_claims o
                    WHERE o.dynamic_table = p.dynamic_table AND o.subtask = p.subtask);
                UPDATE dynamic_tables SET failures = attempts, error = 'Part ' || sub || ': ' || failure,
                    status = CASE WHEN status = 'ACTIVE' THEN 'FAILED' ELSE status END WHERE name = tbl;
            END IF;
        END IF;
    END IF;
    IF whole AND NOT EXISTS (SELECT FROM refresh_subtasks WHERE dynamic_table = tbl AND status <> 'DONE') THEN
        UPDATE pending_refreshes SET next_refresh_due = clock_timestamp() WHERE dynamic_table = tbl AND subtask = '';
    END IF;
    INSERT INTO refresh_history (dynamic_table, subtask, worker_id, epoch, started_at, ended_at, refresh_mode, note,
            row_count, byte_count, lag_seconds, error)
        VALUES (tbl, sub, c.worker_id, held, c.claimed_at, moment, how, why, row_total, byte_total,
            CASE WHEN NOT unchanged THEN extract(epoch FROM moment - oldest) END, failure);
    RETURN true;
END $$;
CREATE OR REPLACE FUNCTION release_refreshes(tables text[], subs text[], helds bigint[], failures text[], hows text[],
    whys text[], row_totals bigint[], byte_totals bigint[], unchangeds boolean[], gones boolean[],
    pauses double precision[]) RETURNS SETOF bigint LANGUAGE plpgsql
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    wholes   text[];
    ended    bigint[];
    changed  text[];
    tbl      text;
    moment   timestamptz;
BEGIN
    PERFORM FROM pending_refreshes p WHERE (p.dynamic_table, p.subtask) IN (SELECT * FROM unnest(tables, subs)
            UNION SELECT t, '' FROM unnest(tables) AS t)
        ORDER BY p.dynamic_table, p.subtask FOR UPDATE;
    wholes := ARRAY(SELECT DISTINCT t FROM unnest(tables) AS t WHERE EXISTS (SELECT FROM pending_refreshes p
        WHERE p.dynamic_table = t AND p.subtask = ''));
    moment := clock_timestamp();
    WITH done AS (DELETE FROM refresh_claims c USING unnest(tables, subs, helds, failures, hows, whys, row_totals,
                byte_totals, unchangeds, gones)
                AS e (tbl, sub, held, failure, how, why, row_total, byte_total, unchanged, gone)
            WHERE c.dynamic_table = e.tbl AND c.subtask = e.sub AND c.epoch = e.held AND c.expires_at > clock_timestamp()
                AND e.sub <> '' AND e.failure = '' AND e.tbl <> ALL (wholes)
            RETURNING e.*, c.worker_id, c.claimed_at),
        entries AS (DELETE FROM pending_refreshes p USING done d WHERE p.dynamic_table = d.tbl AND p.subtask = d.sub
            RETURNING d.held, p.enqueued_at),
        forgotten AS (DELETE FROM refresh_subtasks u USING done d
            WHERE d.gone AND u.dynamic_table = d.tbl AND u.subtask = d.sub),
        known AS (INSERT INTO refresh_subtasks AS old (dynamic_table, subtask, status, as_of)
            SELECT d.tbl, d.sub, 'DONE', d.claimed_at FROM done d WHERE NOT d.gone ORDER BY d.tbl, d.sub
            ON CONFLICT (dynamic_table, subtask) DO UPDATE SET status = 'DONE', as_of = excluded.as_of, failures = 0,
                error = '', updated_at = excluded.updated_at),
        told AS (INSERT INTO refresh_history (dynamic_table, subtask, worker_id, epoch, started_at, ended_at,
                refresh_mode, note, row_count, byte_count, lag_seconds)
            SELECT d.tbl, d.sub, d.worker_id, d.held, d.claimed_at, greatest(moment, d.claimed_at), d.how, d.why,
                d.row_total, d.byte_total, CASE WHEN NOT d.unchanged THEN extract(epoch FROM moment - n.enqueued_at) END
            FROM done d JOIN entries n USING (held) ORDER BY d.held)
        SELECT array_agg(d.held), array_agg(DISTINCT d.tbl) FILTER (WHERE NOT d.unchanged) INTO ended, changed FROM done d;
    RETURN QUERY SELECT unnest(ended);
    FOREACH tbl IN ARRAY coalesce(changed, '{}') LOOP
        PERFORM notify_refresh_readers(tbl);
    END LOOP;
    RETURN QUERY SELECT e.held FROM unnest(tables, subs, helds, failures, hows, whys, row_totals, byte_totals,
            unchangeds, gones) AS e (tbl, sub, held, failure, how, why, row_total, byte_total, unchanged, gone)
        WHERE (e.sub = '' OR e.failure <> '' OR e.tbl = ANY (wholes)) AND release_refresh(e.tbl, e.sub, e.held, e.failure,
            e.how, e.why, e.row_total, e.byte_total, e.unchanged, e.gone, pauses);
END $$;
DROP FUNCTION IF EXISTS tell_refresh() CASCADE;
DROP FUNCTION IF EXISTS tell_refresh_readers(text);
DROP FUNCTION IF EXISTS tell_refresh_of_deletion() CASCADE;
CREATE OR REPLACE FUNCTION notify_refresh_readers(tbl text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    deaf  text[];
BEGIN
    SELECT array_agg(t.name) INTO deaf FROM dynamic_table_sources s JOIN dynamic_tables t ON t.name = s.dynamic_table
        WHERE s.source = tbl AND (t.behind_since IS NULL OR t.changed_at IS NULL
            OR EXISTS (SELECT FROM refresh_claims c WHERE c.dynamic_table = t.name AND c.claimed_at >= t.changed_at)
            OR EXISTS (SELECT FROM refresh_subtasks u WHERE u.dynamic_table = t.name AND u.as_of >= t.changed_at));
    IF deaf IS NULL THEN
        RETURN;
    END IF;
    PERFORM FROM dynamic_tables WHERE name = tbl OR name = ANY (deaf) ORDER BY name FOR NO KEY UPDATE;
    UPDATE dynamic_tables SET changed_at = clock_timestamp(), behind_since = coalesce(behind_since, clock_timestamp())
        WHERE name = ANY (deaf);
END $$;
CREATE OR REPLACE FUNCTION fail_refresh(tbl text, sub text, begun timestamptz, failure text, pauses double precision[])
    RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    attempts  integer;
BEGIN
    IF sub = '' THEN
        UPDATE dynamic_tables SET failures = failures + 1, error = failure,
            status = CASE WHEN failures >= cardinality(pauses) AND status = 'ACTIVE' THEN 'FAILED' ELSE status END
            WHERE name = tbl RETURNING failures INTO attempts;
    ELSE
        INSERT INTO refresh_subtasks AS old (dynamic_table, subtask, status, as_of, failures, error)
            VALUES (tbl, sub, CASE WHEN cardinality(pauses) = 0 THEN 'FAILED' ELSE 'PENDING' END, begun, 1, failure)
            ON CONFLICT (dynamic_table, subtask) DO UPDATE SET failures = old.failures + 1, error = failure,
                status = CASE WHEN old.failures >= cardinality(pauses) THEN 'FAILED' ELSE 'PENDING' END,
                as_of = CASE WHEN EXISTS (SELECT FROM pending_refreshes WHERE dynamic_table = tbl AND subtask = '')
                    THEN least(old.as_of, excluded.as_of) ELSE excluded.as_of END, updated_at = excluded.updated_at
            RETURNING failures INTO attempts;
    END IF;
    RETURN attempts;
END $$;
CREATE OR REPLACE FUNCTION notify_refresh() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('loadstone_refresh', '');
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER notify_refresh_of_end AFTER UPDATE ON run_status FOR EACH ROW
    WHEN (NEW.phase IS NULL AND OLD.phase IS NOT NULL) EXECUTE FUNCTION notify_refresh();
CREATE OR REPLACE TRIGGER notify_refresh_of_work AFTER INSERT ON pending_refreshes
    FOR EACH STATEMENT EXECUTE FUNCTION notify_refresh();
CREATE OR REPLACE FUNCTION notify_refresh_of_deletion() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO refresh_subtasks (dynamic_table, subtask, status)
        SELECT t.name, g.run_id, 'DONE' FROM gone g, dynamic_tables t
        WHERE t.name = 'runs' AND t.kind = 'INGEST' AND g.start_time IS NOT NULL
        ORDER BY g.run_id ON CONFLICT (dynamic_table, subtask) DO UPDATE SET updated_at = clock_timestamp();
    UPDATE refresh_subtasks u SET status = 'DONE', failures = 0, error = '' FROM gone g
        WHERE u.subtask = g.run_id AND u.status = 'FAILED';
    PERFORM pg_notify('loadstone_refresh', '');
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER notify_refresh_of_deletion AFTER DELETE ON run_status REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION notify_refresh_of_deletion();
CREATE TABLE IF NOT EXISTS catalog_revision (
    singleton       boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    revision        bigint NOT NULL DEFAULT 0,
    last_source_id  bigint NOT NULL DEFAULT 0,
    last_query_id   bigint NOT NULL DEFAULT 0
);
INSERT INTO catalog_revision DEFAULT VALUES ON CONFLICT DO NOTHING;
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
CREATE TABLE IF NOT EXISTS workers (
    host_name  text PRIMARY KEY CHECK (host_name <> ''),
    grpc_port  bigint NOT NULL DEFAULT 0 CHECK (grpc_port BETWEEN 0 AND 65535),
    data_port  bigint NOT NULL DEFAULT 0 CHECK (data_port BETWEEN 0 AND 65535),
    capacity   bigint NOT NULL CHECK (capacity > 0),
    state      text NOT NULL REFERENCES worker_states
);
CREATE UNIQUE INDEX IF NOT EXISTS workers_by_name ON workers (lower(host_name));
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
CREATE TABLE IF NOT EXISTS query_owners (
    owner        text PRIMARY KEY CHECK (owner <> ''),
    lease_until  timestamptz NOT NULL
);
CREATE TABLE IF NOT EXISTS queries (
    id               bigint PRIMARY KEY,
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
    confirmed        text[] NOT NULL DEFAULT '{}',
    created_at       timestamptz NOT NULL,
    owner            text REFERENCES query_owners ON DELETE RESTRICT,
    epoch            bigint NOT NULL DEFAULT 0,
    revision         bigint NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX IF NOT EXISTS queries_by_name ON queries (lower(name));
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = to_regclass('queries')
        AND pg_get_constraintdef(oid) LIKE '%SUSPENDED%') THEN
        ALTER TABLE queries DROP CONSTRAINT queries_desired_state_check,
            ADD CONSTRAINT queries_desired_state_check CHECK (desired_state IN ('RUNNING', 'STOPPED', 'SUSPENDED'));
    END IF;
END $$;
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
CREATE OR REPLACE FUNCTION settle_creators() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE queries t SET created_by_id = user_id FROM users u
        WHERE t.created_by_id = '' AND user_name = t.created_by AND u.created_at <= t.created_at;
    UPDATE run_status t SET created_by_id = user_id FROM users u WHERE t.created_by_id = ''
        AND t.created_by NOT IN ('cli', 'serve') AND user_name = t.created_by AND u.created_at <= t.created_at;
    UPDATE run_shares t SET created_by_id = user_id FROM users u
        WHERE t.created_by_id = '' AND user_name = t.created_by AND u.created_at <= t.created_at;
END $$;
DO $$ BEGIN PERFORM settle_creators(); END $$;
CREATE OR REPLACE FUNCTION looks_like_id(name text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT name ~* '^\s*(urn:uuid:)?\{?([0-9a-f]{32}|[0-9a-f]{64}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})\}?\s*$'
$$;
CREATE OR REPLACE FUNCTION refuse_id_as_name() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    name text := to_jsonb(NEW) ->> TG_ARGV[0];
BEGIN
    IF looks_like_id(name) AND (TG_OP = 'INSERT' OR name IS DISTINCT FROM to_jsonb(OLD) ->> TG_ARGV[0]) THEN
        RAISE EXCEPTION 'the name % looks like an id', name USING ERRCODE = 'LS006';
    END IF;
    RETURN NEW;
END $$;
CREATE OR REPLACE FUNCTION fill_connection_id(target jsonb) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT target || jsonb_build_object('connection_id', connection_id) FROM connections
        WHERE NOT target ? 'connection_id' AND jsonb_typeof(target -> 'connection') = 'string'
            AND connection_name = target ->> 'connection'), target)
$$;
CREATE OR REPLACE FUNCTION fill_connection_ids(document jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF jsonb_typeof(document -> 'target') = 'object' THEN
        document := jsonb_set(document, '{target}', fill_connection_id(document -> 'target'));
    END IF;
    IF jsonb_typeof(document #> '{matrix,targets}') = 'array' THEN
        document := jsonb_set(document, '{matrix,targets}', (SELECT coalesce(jsonb_agg(fill_connection_id(t) ORDER BY n), '[]')
            FROM jsonb_array_elements(document #> '{matrix,targets}') WITH ORDINALITY AS targets (t, n)));
    END IF;
    RETURN document;
END $$;
CREATE OR REPLACE FUNCTION rename_connection(document jsonb, was text, name text) RETURNS jsonb LANGUAGE plpgsql
    STABLE AS $$
BEGIN
    IF document #> '{target,connection}' = to_jsonb(was) THEN
        document := jsonb_set(document, '{target,connection}', to_jsonb(name));
    END IF;
    IF jsonb_typeof(document #> '{matrix,targets}') = 'array' THEN
        document := jsonb_set(document, '{matrix,targets}', (SELECT coalesce(jsonb_agg(
            CASE WHEN t -> 'connection' = to_jsonb(was) THEN jsonb_set(t, '{connection}', to_jsonb(name)) ELSE t END
            ORDER BY n), '[]') FROM jsonb_array_elements(document #> '{matrix,targets}') WITH ORDINALITY AS targets (t, n)));
    END IF;
    RETURN document;
END $$;
CREATE OR REPLACE FUNCTION settle_names() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    one     record;
    renamed text;
    number  integer;
    taken   boolean;
BEGIN
    UPDATE test_templates SET config = fill_connection_ids(config) WHERE config <> fill_connection_ids(config);
    UPDATE run_status SET scenario_config = fill_connection_ids(scenario_config)
        WHERE scenario_config <> fill_connection_ids(scenario_config);
    FOR one IN
        SELECT 'connections' AS tbl, 'connection_name' AS col, connection_id AS id, connection_name AS name FROM connections
            WHERE looks_like_id(connection_name)
        UNION ALL SELECT 'test_templates', 'template_name', template_id, template_name FROM test_templates
            WHERE looks_like_id(template_name)
        UNION ALL SELECT 'users', 'user_name', user_id, user_name FROM users WHERE looks_like_id(user_name)
        UNION ALL SELECT 'saved_queries', 'query_name', query_name, query_name FROM saved_queries WHERE looks_like_id(query_name)
        UNION ALL SELECT 'run_views', 'view_name', view_id, view_name FROM run_views WHERE looks_like_id(view_name)
        ORDER BY 1, 3
    LOOP
        number := 1;
        LOOP
            renamed := 'renamed-' || CASE one.tbl WHEN 'users' THEN left(btrim(one.name), 40) ELSE btrim(one.name) END || CASE WHEN number > 1 THEN '-' || number ELSE '' END;
            EXECUTE format('SELECT EXISTS (SELECT FROM %I WHERE lower(%I) = lower($1))', one.tbl, one.col) INTO taken
                USING renamed;
            EXIT WHEN NOT taken;
            number := number + 1;
        END LOOP;
        EXECUTE format('UPDATE %I SET %I = $1 WHERE %I = $2', one.tbl, one.col, CASE one.tbl
            WHEN 'connections' THEN 'connection_id' WHEN 'test_templates' THEN 'template_id' WHEN 'users' THEN 'user_id'
            WHEN 'run_views' THEN 'view_id' ELSE 'query_name' END) USING renamed, one.id;
        CASE one.tbl
        WHEN 'connections' THEN
            UPDATE test_templates SET source = replace(source, one.name, renamed),
                config = rename_connection(config, one.name, renamed) WHERE config <> rename_connection(config, one.name, renamed);
            UPDATE run_status SET scenario_config = rename_connection(scenario_config, one.name, renamed)
                WHERE scenario_config <> rename_connection(scenario_config, one.name, renamed);
        WHEN 'users' THEN
            UPDATE run_status SET created_by = renamed WHERE created_by = one.name;
            UPDATE matrices SET created_by = renamed WHERE created_by = one.name;
            UPDATE test_templates SET created_by = renamed WHERE created_by = one.name;
            UPDATE run_shares SET created_by = renamed WHERE created_by = one.name;
        ELSE
        END CASE;
    END LOOP;
END $$;
DO $$
DECLARE
    one record;
BEGIN
    PERFORM settle_names();
    FOR one IN SELECT * FROM (VALUES ('connections', 'connection_name'), ('test_templates', 'template_name'),
        ('users', 'user_name'), ('saved_queries', 'query_name'), ('run_views', 'view_name')) AS named (tbl, col)
    LOOP
        EXECUTE format('CREATE OR REPLACE TRIGGER refuse_id_as_name BEFORE INSERT OR UPDATE ON %I
            FOR EACH ROW EXECUTE FUNCTION refuse_id_as_name(%L)', one.tbl, one.col);
    END LOOP;
END $$;
CREATE TABLE IF NOT EXISTS rights_revision (
    singleton  boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    rights     bigint NOT NULL DEFAULT 0,
    tokens     bigint NOT NULL DEFAULT 0,
    rights_by  bigint NOT NULL DEFAULT 0,
    tokens_by  bigint NOT NULL DEFAULT 0
);
INSERT INTO rights_revision (singleton) VALUES (true) ON CONFLICT DO NOTHING;
CREATE OR REPLACE FUNCTION note_rights_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND NOT EXISTS (SELECT FROM unnest(TG_ARGV) AS col
        WHERE to_jsonb(OLD) -> col IS DISTINCT FROM to_jsonb(NEW) -> col)
    THEN
        RETURN NULL;
    END IF;
    IF TG_TABLE_NAME = 'api_tokens' THEN
        UPDATE rights_revision SET tokens = tokens + 1, tokens_by = txid_current() WHERE tokens_by <> txid_current();
    ELSE
        UPDATE rights_revision SET rights = rights + 1, rights_by = txid_current() WHERE rights_by <> txid_current();
    END IF;
    IF FOUND THEN
        PERFORM pg_notify('loadstone_rights', '');
    END IF;
    RETURN NULL;
END $$;
DO $$
DECLARE
    one record;
BEGIN
    FOR one IN SELECT * FROM (VALUES
        ('users', 'UPDATE OR DELETE', $a$'role', 'disabled_at'$a$),
        ('connections', 'UPDATE OR DELETE', $a$'access', 'production'$a$),
        ('test_templates', 'UPDATE OR DELETE', $a$'access'$a$),
        ('api_tokens', 'DELETE', '')) AS t (of_table, events, columns)
    LOOP
        IF NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = to_regclass(one.of_table)
            AND tgname = 'note_rights_change' AND tgdeferrable) THEN
            EXECUTE format('DROP TRIGGER IF EXISTS note_rights_change ON %I', one.of_table);
            EXECUTE format('CREATE CONSTRAINT TRIGGER note_rights_change AFTER %s ON %I DEFERRABLE INITIALLY DEFERRED '
                'FOR EACH ROW EXECUTE FUNCTION note_rights_change(%s)', one.events, one.of_table, one.columns);
        END IF;
    END LOOP;
END $$;
DROP TABLE IF EXISTS rights_changes;
CREATE OR REPLACE FUNCTION refuse_retired_key() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    sealed  text := to_jsonb(NEW) ->> TG_ARGV[0];
    texts   text[];
    retired text[];
BEGIN
    IF sealed IS NULL OR TG_OP = 'UPDATE' AND sealed IS NOT DISTINCT FROM to_jsonb(OLD) ->> TG_ARGV[0] THEN
        RETURN NEW;
    END IF;
    IF sealed ~ '^[[{]' THEN
        SELECT array_agg(m[1]) INTO texts FROM regexp_matches(sealed, 'sealed": *"([A-Za-z0-9+/]{8})', 'g') AS m;
    ELSIF sealed ~ '^[A-Za-z0-9+/]{8}' THEN
        texts := ARRAY[left(sealed, 8)];
    END IF;
    IF texts IS NULL THEN
        RETURN NEW;
    END IF;
    SELECT retired_keys INTO retired FROM key_rotation FOR SHARE;
    IF EXISTS (SELECT FROM unnest(texts) AS t WHERE encode(substr(decode(t, 'base64'), 2, 4), 'hex') = ANY (retired)) THEN
        RAISE EXCEPTION 'a secret is sealed under a key that was replaced' USING ERRCODE = 'LS007';
    END IF;
    RETURN NEW;
END $$;
DO $$
DECLARE
    place record;
BEGIN
    FOR place IN SELECT * FROM (VALUES ('connections', 'dsn_sealed'), ('test_templates', 'config'),
        ('run_status', 'scenario_config'), ('test_results', 'plan'), ('server_settings', 'secret_sealed'),
        ('sinks', 'config'), ('node_authority', 'key_sealed'), ('hash_keys', 'key_sealed')) AS places (of_table, of_column)
    LOOP
        EXECUTE format('CREATE OR REPLACE TRIGGER refuse_retired_key BEFORE INSERT OR UPDATE OF %I ON %I
            FOR EACH ROW EXECUTE FUNCTION refuse_retired_key(%L)', place.of_column, place.of_table, place.of_column);
    END LOOP;
END $$;
INSERT INTO schema_version (version, hash) VALUES (18, 'd4b2d6099b8896b1');
COMMIT;
