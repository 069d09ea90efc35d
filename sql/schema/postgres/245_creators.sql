-- The makers of things by their ids, before names are changed.

-- settle_creators gives queries, runs and links of versions before 18, which have the name of their maker only, the
-- user's id. A user of that name who came later is another. The names of processes are no users.
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
