-- What users save under a name: views of the list of runs, and SQL queries over results.

-- run_views has filters, order, columns and trend of the page Runs.
CREATE TABLE IF NOT EXISTS run_views (
    view_id     text PRIMARY KEY CHECK (view_id <> ''),
    -- NULL for a shared view whose user was deleted.
    user_id     text REFERENCES users ON DELETE CASCADE,
    owner_name  text NOT NULL DEFAULT '',
    view_name   text NOT NULL CONSTRAINT run_view_name CHECK (view_name <> '' AND length(view_name) <= 80),
    -- The query string of the page.
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
    -- How the page draws the answer: a part of its query string.
    chart       text NOT NULL DEFAULT '',
    version     bigint NOT NULL DEFAULT 1 CHECK (version > 0),
    created_by  text NOT NULL DEFAULT '',
    updated_by  text NOT NULL DEFAULT '',
    created_at  timestamptz NOT NULL DEFAULT now(),
    updated_at  timestamptz NOT NULL DEFAULT now()
);
