-- Lists of runs that users keep under a name: filters, order, columns and trend of the page Runs.

CREATE TABLE IF NOT EXISTS run_views (
    view_id     text PRIMARY KEY CHECK (view_id <> ''),
    -- Nobody's when its user is gone: what is shared stays.
    user_id     text REFERENCES users ON DELETE CASCADE,
    owner_name  text NOT NULL DEFAULT '',
    view_name   text NOT NULL CONSTRAINT run_view_name CHECK (view_name <> '' AND length(view_name) <= 80),
    -- As it stands in the page's address.
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
