-- How refreshes are claimed and what becomes of claims. The queue's rows come and go all the time, and while a
-- transaction stays open somewhere no dead one can be removed. Nothing here may therefore walk past those that have
-- been claimed and released: who claims begins at a bound that moves on with them.

-- No entry of a priority is due before its bound. Whoever puts entries into the queue lowers it where one is; it is
-- raised while nobody is putting any there.
CREATE TABLE IF NOT EXISTS refresh_bounds (
    priority  integer PRIMARY KEY,
    due       timestamptz NOT NULL
) WITH (fillfactor = 20);
INSERT INTO refresh_bounds SELECT priority, min(next_refresh_due) FROM pending_refreshes GROUP BY priority
    ON CONFLICT DO NOTHING;

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

-- raise_refresh_bounds moves bounds up to the first entry that is left, and not over what is due within a few seconds:
-- most of what comes is due when it comes, and lowers nothing.
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

-- claim_refreshes claims at most so many entries that are due and not claimed, by priority and then by their due times.
-- An entry stays locked until its claim is committed, and the epoch is taken under that lock. The settings keep
-- the way through the index, whatever statistics say of a queue that was empty a moment ago.
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

-- divide_refresh gives a table's own claim back and has the parts of the table refreshed in its place, each a task of
-- its own. When all are there the table is due again. anew forgets the parts of an earlier division.
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

-- release_refresh ends a claim with the result of the refresh, all in one statement; false when the claim is lost,
-- and then nothing has changed. pauses are how long to wait after the first failure, the second, …; with one more the
-- task has failed. Here and below no plan that was made while a table was small may read all of it later.
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
            PERFORM tell_refresh_readers(tbl);
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

-- release_refreshes ends several claims in one transaction and returns the epochs of those that were held. Most of what
-- ends many at a time are runs that were taken in: they are ended together, statement by statement; what has failed, and
-- what belongs to all of a table, one by one.
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
        PERFORM tell_refresh_readers(tbl);
    END LOOP;
    RETURN QUERY SELECT e.held FROM unnest(tables, subs, helds, failures, hows, whys, row_totals, byte_totals,
            unchangeds, gones) AS e (tbl, sub, held, failure, how, why, row_total, byte_total, unchanged, gone)
        WHERE (e.sub = '' OR e.failure <> '' OR e.tbl = ANY (wholes)) AND release_refresh(e.tbl, e.sub, e.held, e.failure,
            e.how, e.why, e.row_total, e.byte_total, e.unchanged, e.gone, pauses);
END $$;

-- tell_refresh_readers says to the tables that read one that it has changed. Those that know of a change already, and
-- that nobody has begun to refresh since, need not hear of one more: who begins later reads both. So rows of
-- dynamic_tables, which many releases share, are written seldom. They are locked in the order of their names, so that
-- no two releases wait for each other.
CREATE OR REPLACE FUNCTION tell_refresh_readers(tbl text) RETURNS void LANGUAGE plpgsql AS $$
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
