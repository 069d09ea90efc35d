-- Schedules: when runs of a template start by themselves, and what became of each start.

CREATE TABLE IF NOT EXISTS schedules (
    schedule_id       text PRIMARY KEY CHECK (schedule_id <> ''),
    schedule_name     text NOT NULL UNIQUE CHECK (schedule_name <> ''),
    -- A template that has schedules cannot be deleted.
    template_id       text NOT NULL REFERENCES test_templates,
    cron              text NOT NULL CHECK (cron <> ''),
    time_zone         text NOT NULL CHECK (time_zone <> ''),
    paused            boolean NOT NULL DEFAULT false,
    -- When the next run is due; NULL while the schedule is paused or suspended.
    next_due          timestamptz,
    -- The ids of the production connections whose load the owner has confirmed.
    confirmed         text[] NOT NULL DEFAULT '{}',
    -- The user in whose name runs start. When this user is locked out, deleted or a viewer, the schedule is suspended.
    owner_id          text NOT NULL,
    owner             text NOT NULL,
    suspended_reason  text NOT NULL DEFAULT '',
    -- Rises with each change by a user; an editor names the version that was read.
    version           bigint NOT NULL DEFAULT 1 CHECK (version > 0),
    updated_by        text NOT NULL DEFAULT '',
    created_at        timestamptz NOT NULL DEFAULT now(),
    updated_at        timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT schedule_is_due CHECK ((next_due IS NULL) = (paused OR suspended_reason <> ''))
);

CREATE INDEX IF NOT EXISTS schedules_template ON schedules (template_id);

-- schedule_starts has the newest starts of each schedule. The server that has the lease "schedules" writes them.
CREATE TABLE IF NOT EXISTS schedule_starts (
    schedule_id  text NOT NULL REFERENCES schedules ON DELETE CASCADE,
    due_at       timestamptz NOT NULL,
    -- STARTING is a start that a server has begun; it is there before the run.
    outcome      text NOT NULL CHECK (outcome IN ('STARTING', 'STARTED', 'SKIPPED', 'MISSED', 'FAILED')),
    run_id       text REFERENCES run_status ON DELETE SET NULL,
    matrix_id    text REFERENCES matrices ON DELETE SET NULL,
    -- How many starts in a row were missed; due_at is the first.
    missed       integer NOT NULL DEFAULT 0 CHECK (missed >= 0),
    reason       text NOT NULL DEFAULT '',
    noted_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (schedule_id, due_at)
);

CREATE INDEX IF NOT EXISTS schedule_starts_run ON schedule_starts (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS schedule_starts_matrix ON schedule_starts (matrix_id) WHERE matrix_id IS NOT NULL;
