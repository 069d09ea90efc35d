-- The queue of refreshes: what is due, who has claimed it, and how claims end.
--
-- Rows of the queue come and go all the time, and while any transaction stays open no dead row can be removed.
-- Nothing here may therefore scan rows that were claimed and released long ago: a claim starts at a bound that moves
-- on with them.

-- pending_refreshes has one entry at most for each table, or for each part of a table. The subtask '' is the whole
-- table. The settings have dead rows removed early, and leave space in pages for new ones.
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

-- refresh_claims has the claims. Only expires_at decides whether one holds. The epochs of a table only rise: a claim
-- takes the next number while it holds the lock on the row of pending_refreshes.
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

-- refresh_bounds has one bound per priority: no entry of the priority is due before it. Adding entries lowers the
-- bound, and it is raised only while nobody adds any.
CREATE TABLE IF NOT EXISTS refresh_bounds (
    priority  integer PRIMARY KEY,
    due       timestamptz NOT NULL
) WITH (fillfactor = 20);

-- lower_refresh_bounds makes bounds hold for the entries that a statement added.
CREATE OR REPLACE FUNCTION lower_refresh_bounds() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Who raises bounds does so before this transaction has the lock, and then it is seen below, or after its end.
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

-- raise_refresh_bounds moves each bound up to the first entry that is left, but always leaves it a few seconds in the
-- past: most new entries are due at once, and then need not lower it.
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

-- claim_refreshes claims at most that many entries that are due and not claimed, ordered by priority and then by due
-- time. An entry stays locked until its claim is committed, and the epoch is taken under that lock. The planner
-- settings force the index, whatever the statistics say about a queue that was empty a moment ago.
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

-- divide_refresh gives back the claim of a whole table and queues the parts of the table, each as a task of its own.
-- When all parts are done the table is due again. anew discards the parts of an earlier division.
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
        -- Of a division whose own claim could not say so any more nobody knows whether it has the last change.
        SELECT least(begun, changed_at - interval '1 microsecond') INTO begun FROM dynamic_tables WHERE name = tbl;
    END IF;
    -- What the parts read was settled by who divided: what changes before the first of them is claimed is not in them.
    INSERT INTO refresh_subtasks AS old (dynamic_table, subtask, status, as_of)
        SELECT tbl, part, 'PENDING', begun FROM unnest(parts) AS part
        ON CONFLICT (dynamic_table, subtask) DO UPDATE SET status = 'PENDING', as_of = least(old.as_of, excluded.as_of);
    INSERT INTO pending_refreshes (dynamic_table, subtask, priority, next_refresh_due)
        SELECT tbl, part, entry.priority, clock_timestamp() FROM unnest(parts) AS part ORDER BY part
        ON CONFLICT DO NOTHING;
    -- The last part makes it due; an hour is for the case that nothing does.
    UPDATE pending_refreshes SET next_refresh_due = clock_timestamp() + interval '1 hour'
        WHERE dynamic_table = tbl AND subtask = '';
    RETURN true;
END $$;

-- release_refresh ends a claim with the result of the refresh. It returns false and changes nothing when the claim
-- was lost. pauses are the delays after the first failure, the second and so on; one failure more fails the task. The
-- planner settings here and below keep a plan that was made for a small table from scanning all of it later.
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
    -- The entries first, that of all the table before that of its part, and the claim then, as who claims and who
    -- divides locks them: otherwise each may wait for the other.
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
            -- Its parts are as of when it was divided.
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
                -- Without one of its parts nothing can be put in place of the table. What others hold they finish.
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

-- release_refreshes ends several claims in one transaction and returns the epochs of those that still held. Most of
-- them are runs that were taken in: they end together, in a few statements. Failures and whole tables end one by one.
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
    -- The order of locks is that of release_refresh.
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

-- Until version 15 these functions were called tell_refresh, tell_refresh_readers and tell_refresh_of_deletion.
DROP FUNCTION IF EXISTS tell_refresh() CASCADE;
DROP FUNCTION IF EXISTS tell_refresh_readers(text);
DROP FUNCTION IF EXISTS tell_refresh_of_deletion() CASCADE;

-- notify_refresh_readers notes at the tables that read a table that it has changed. A table that knows of a change
-- already, and that nobody has begun to refresh since, is left alone: whoever begins later reads both changes. So the
-- rows of dynamic_tables, which many releases share, are seldom written. They are locked in the order of their names,
-- which rules out deadlocks.
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

-- fail_refresh counts a failure of a task and returns how many there were.
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

-- notify_refresh wakes the processes that refresh tables.
CREATE OR REPLACE FUNCTION notify_refresh() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('loadstone_refresh', '');
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER notify_refresh_of_end AFTER UPDATE ON run_status FOR EACH ROW
    WHEN (NEW.phase IS NULL AND OLD.phase IS NOT NULL) EXECUTE FUNCTION notify_refresh();
CREATE OR REPLACE TRIGGER notify_refresh_of_work AFTER INSERT ON pending_refreshes
    FOR EACH STATEMENT EXECUTE FUNCTION notify_refresh();

-- notify_refresh_of_deletion marks a deleted run as taken in, even if it never was, so that a refresh looks for its
-- rows in the results database and deletes them: a run writes its seconds there while it goes on.
CREATE OR REPLACE FUNCTION notify_refresh_of_deletion() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO refresh_subtasks (dynamic_table, subtask, status)
        SELECT t.name, g.run_id, 'DONE' FROM gone g, dynamic_tables t
        WHERE t.name = 'runs' AND t.kind = 'INGEST' AND g.start_time IS NOT NULL
        ORDER BY g.run_id ON CONFLICT (dynamic_table, subtask) DO UPDATE SET updated_at = clock_timestamp();
    -- What could not be taken in may well be removed.
    UPDATE refresh_subtasks u SET status = 'DONE', failures = 0, error = '' FROM gone g
        WHERE u.subtask = g.run_id AND u.status = 'FAILED';
    PERFORM pg_notify('loadstone_refresh', '');
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER notify_refresh_of_deletion AFTER DELETE ON run_status REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION notify_refresh_of_deletion();
