-- Queries over results that users keep under a name.

CREATE TABLE IF NOT EXISTS saved_queries (
    query_name  text PRIMARY KEY CONSTRAINT saved_query_name CHECK (query_name <> '' AND length(query_name) <= 100),
    statement   text NOT NULL CHECK (statement <> ''),
    -- How the page draws the answer, as it stands in the page's address.
    chart       text NOT NULL DEFAULT '',
    version     bigint NOT NULL DEFAULT 1 CHECK (version > 0),
    created_by  text NOT NULL DEFAULT '',
    updated_by  text NOT NULL DEFAULT '',
    created_at  timestamptz NOT NULL DEFAULT now(),
    updated_at  timestamptz NOT NULL DEFAULT now()
);
