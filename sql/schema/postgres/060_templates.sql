-- Templates: the documents from which runs are made.

CREATE TABLE IF NOT EXISTS test_templates (
    template_id    text PRIMARY KEY CHECK (template_id <> ''),
    template_name  text NOT NULL UNIQUE CHECK (template_name <> ''),
    description    text NOT NULL DEFAULT '',
    config         jsonb NOT NULL,
    -- The document as its author wrote it, without passwords.
    source         text NOT NULL DEFAULT '',
    -- Who may use it, as in connections.
    access         jsonb NOT NULL DEFAULT '{}',
    version        bigint NOT NULL DEFAULT 1 CHECK (version > 0),
    created_by     text NOT NULL DEFAULT '',
    created_at     timestamptz NOT NULL DEFAULT now(),
    updated_at     timestamptz NOT NULL DEFAULT now()
);
