-- Names and ids: a reference is an id, and no name looks like one, so that nothing named as another thing's id can take
-- its place. engine.LooksLikeID says the same in Go.

CREATE OR REPLACE FUNCTION looks_like_id(name text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT name ~* '^\s*(urn:uuid:)?\{?([0-9a-f]{32}|[0-9a-f]{64}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})\}?\s*$'
$$;

-- refuse_id_as_name takes the name's column. A row that has such a name already may change otherwise.
CREATE OR REPLACE FUNCTION refuse_id_as_name() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    name text := to_jsonb(NEW) ->> TG_ARGV[0];
BEGIN
    IF looks_like_id(name) AND (TG_OP = 'INSERT' OR name IS DISTINCT FROM to_jsonb(OLD) ->> TG_ARGV[0]) THEN
        RAISE EXCEPTION 'the name % looks like an id', name USING ERRCODE = 'LS006';
    END IF;
    RETURN NEW;
END $$;

-- fill_connection_id and fill_connection_ids write into a target and a document which connections the names in it stand
-- for, where it does not say so.
CREATE OR REPLACE FUNCTION fill_connection_id(target jsonb) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT target || jsonb_build_object('connection_id', connection_id) FROM connections
        WHERE NOT target ? 'connection_id' AND jsonb_typeof(target -> 'connection') = 'string'
            AND connection_name = target ->> 'connection'), target)
$$;

CREATE OR REPLACE FUNCTION fill_connection_ids(document jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF jsonb_typeof(document -> 'target') = 'object' THEN
        document := jsonb_set(document, '{target}', fill_connection_id(document -> 'target'));
    END IF;
    IF jsonb_typeof(document #> '{matrix,targets}') = 'array' THEN
        document := jsonb_set(document, '{matrix,targets}', (SELECT coalesce(jsonb_agg(fill_connection_id(t) ORDER BY n), '[]')
            FROM jsonb_array_elements(document #> '{matrix,targets}') WITH ORDINALITY AS targets (t, n)));
    END IF;
    RETURN document;
END $$;

CREATE OR REPLACE FUNCTION rename_connection(document jsonb, was text, name text) RETURNS jsonb LANGUAGE plpgsql
    STABLE AS $$
BEGIN
    IF document #> '{target,connection}' = to_jsonb(was) THEN
        document := jsonb_set(document, '{target,connection}', to_jsonb(name));
    END IF;
    IF jsonb_typeof(document #> '{matrix,targets}') = 'array' THEN
        document := jsonb_set(document, '{matrix,targets}', (SELECT coalesce(jsonb_agg(
            CASE WHEN t -> 'connection' = to_jsonb(was) THEN jsonb_set(t, '{connection}', to_jsonb(name)) ELSE t END
            ORDER BY n), '[]') FROM jsonb_array_elements(document #> '{matrix,targets}') WITH ORDINALITY AS targets (t, n)));
    END IF;
    RETURN document;
END $$;

-- settle_names renames what has the shape of an id as its name, wherever earlier versions let that be: renamed- and the
-- name, with a number where that is taken. What refers to it by name says the new name; then documents get the ids of the
-- connections that they name. It is called here and after a restore, and does nothing the second time.
CREATE OR REPLACE FUNCTION settle_names() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    one     record;
    renamed text;
    number  integer;
    taken   boolean;
BEGIN
    -- What documents say is bound to what it meant until now, before a name is another one.
    UPDATE test_templates SET config = fill_connection_ids(config) WHERE config <> fill_connection_ids(config);
    UPDATE run_status SET scenario_config = fill_connection_ids(scenario_config)
        WHERE scenario_config <> fill_connection_ids(scenario_config);
    FOR one IN
        SELECT 'connections' AS tbl, 'connection_name' AS col, connection_id AS id, connection_name AS name FROM connections
            WHERE looks_like_id(connection_name)
        UNION ALL SELECT 'test_templates', 'template_name', template_id, template_name FROM test_templates
            WHERE looks_like_id(template_name)
        UNION ALL SELECT 'users', 'user_name', user_id, user_name FROM users WHERE looks_like_id(user_name)
        UNION ALL SELECT 'saved_queries', 'query_name', query_name, query_name FROM saved_queries WHERE looks_like_id(query_name)
        UNION ALL SELECT 'run_views', 'view_name', view_id, view_name FROM run_views WHERE looks_like_id(view_name)
        ORDER BY 1, 3
    LOOP
        number := 1;
        LOOP
            -- A user's name has 64 characters at most.
            renamed := 'renamed-' || CASE one.tbl WHEN 'users' THEN left(btrim(one.name), 40) ELSE btrim(one.name) END || CASE WHEN number > 1 THEN '-' || number ELSE '' END;
            EXECUTE format('SELECT EXISTS (SELECT FROM %I WHERE lower(%I) = lower($1))', one.tbl, one.col) INTO taken
                USING renamed;
            EXIT WHEN NOT taken;
            number := number + 1;
        END LOOP;
        EXECUTE format('UPDATE %I SET %I = $1 WHERE %I = $2', one.tbl, one.col, CASE one.tbl
            WHEN 'connections' THEN 'connection_id' WHEN 'test_templates' THEN 'template_id' WHEN 'users' THEN 'user_id'
            WHEN 'run_views' THEN 'view_id' ELSE 'query_name' END) USING renamed, one.id;
        CASE one.tbl
        WHEN 'connections' THEN
            -- A document has the name that its author reads, and its text is read again when it is edited.
            UPDATE test_templates SET source = replace(source, one.name, renamed),
                config = rename_connection(config, one.name, renamed) WHERE config <> rename_connection(config, one.name, renamed);
            UPDATE run_status SET scenario_config = rename_connection(scenario_config, one.name, renamed)
                WHERE scenario_config <> rename_connection(scenario_config, one.name, renamed);
        WHEN 'users' THEN
            UPDATE run_status SET created_by = renamed WHERE created_by = one.name;
            UPDATE matrices SET created_by = renamed WHERE created_by = one.name;
            UPDATE test_templates SET created_by = renamed WHERE created_by = one.name;
            UPDATE run_shares SET created_by = renamed WHERE created_by = one.name;
        ELSE
        END CASE;
    END LOOP;
END $$;

DO $$
DECLARE
    one record;
BEGIN
    PERFORM settle_names();
    FOR one IN SELECT * FROM (VALUES ('connections', 'connection_name'), ('test_templates', 'template_name'),
        ('users', 'user_name'), ('saved_queries', 'query_name'), ('run_views', 'view_name')) AS named (tbl, col)
    LOOP
        EXECUTE format('CREATE OR REPLACE TRIGGER refuse_id_as_name BEFORE INSERT OR UPDATE ON %I
            FOR EACH ROW EXECUTE FUNCTION refuse_id_as_name(%L)', one.tbl, one.col);
    END LOOP;
END $$;
