-- Who refreshes derived tables. Each says every few seconds that it is there; one that says nothing for
-- half a minute is not counted any more, and what it had claimed expires by itself.
CREATE TABLE IF NOT EXISTS refresh_workers (
    worker_id  text PRIMARY KEY CHECK (worker_id <> ''),
    role       text NOT NULL CHECK (role IN ('SERVER', 'NODE')),
    host       text NOT NULL DEFAULT '',
    kinds      text[] NOT NULL,
    slots      integer NOT NULL CHECK (slots > 0),
    -- Why it takes nothing now.
    waits_for  text NOT NULL DEFAULT '',
    seen_at    timestamptz NOT NULL
) WITH (fillfactor = 50);
