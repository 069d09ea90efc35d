-- The nodes: what operators want of them, and what became of them.

-- Every server reads what operators want, so that it holds on all of them and outlives each.
CREATE TABLE IF NOT EXISTS node_wishes (
    node_id   text PRIMARY KEY CHECK (node_id <> ''),
    wish      text NOT NULL CHECK (wish IN ('DRAIN', 'REMOVE')),
    asked_by  text NOT NULL DEFAULT '',
    asked_at  timestamptz NOT NULL DEFAULT now()
);

-- The newest lines are kept; each server that sees something writes a line of its own.
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
