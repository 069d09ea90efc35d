-- What the stand-in needs in its Postgres database: Snowflake's types, functions
-- and catalog. Rerunnable; translate.New runs it.
CREATE SCHEMA IF NOT EXISTS snowsim;

-- Types. The offset of a TIMESTAMP_TZ is kept beside the moment, in minutes.
DO $$ BEGIN
  IF to_regtype('snowsim.timestamp_tz') IS NULL THEN CREATE TYPE snowsim.timestamp_tz AS (moment timestamptz, offset_minutes int); END IF;
  IF to_regtype('snowsim.variant') IS NULL THEN CREATE DOMAIN snowsim.variant AS jsonb; END IF;
  IF to_regtype('snowsim.object') IS NULL THEN CREATE DOMAIN snowsim.object AS jsonb; END IF;
  IF to_regtype('snowsim.array') IS NULL THEN CREATE DOMAIN snowsim.array AS jsonb; END IF;
END $$;

CREATE OR REPLACE FUNCTION snowsim.to_timestamp_tz(text) RETURNS snowsim.timestamp_tz LANGUAGE sql STABLE AS $$
  SELECT ROW($1::timestamptz, CASE WHEN m IS NULL THEN extract(timezone FROM $1::timestamptz)::int / 60
    ELSE (m[1] || '1')::int * (m[2]::int * 60 + coalesce(nullif(m[3], ''), '0')::int) END)::snowsim.timestamp_tz
  FROM regexp_match($1, ':\d\d(?:\.\d+)? ?([+-])(\d\d):?(\d\d)?$') AS m WHERE $1 IS NOT NULL $$;
CREATE OR REPLACE FUNCTION snowsim.to_timestamp_tz(timestamptz) RETURNS snowsim.timestamp_tz LANGUAGE sql STABLE AS $$
  SELECT ROW($1, extract(timezone FROM $1)::int / 60)::snowsim.timestamp_tz WHERE $1 IS NOT NULL $$;
CREATE OR REPLACE FUNCTION snowsim.to_timestamp_tz(timestamp) RETURNS snowsim.timestamp_tz LANGUAGE sql STABLE AS $$
  SELECT snowsim.to_timestamp_tz($1::timestamptz) $$;
CREATE OR REPLACE FUNCTION snowsim.to_timestamp_tz(snowsim.timestamp_tz) RETURNS snowsim.timestamp_tz LANGUAGE sql IMMUTABLE AS $$ SELECT $1 $$;
CREATE OR REPLACE FUNCTION snowsim.to_timestamp_tz(numeric) RETURNS snowsim.timestamp_tz LANGUAGE sql STABLE AS $$
  SELECT snowsim.to_timestamp_tz(to_timestamp($1::float8)) $$;
CREATE OR REPLACE FUNCTION snowsim.moment(snowsim.timestamp_tz) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $$ SELECT ($1).moment $$;
CREATE OR REPLACE FUNCTION snowsim.local(snowsim.timestamp_tz) RETURNS timestamp LANGUAGE sql IMMUTABLE AS $$
  SELECT (($1).moment AT TIME ZONE 'UTC') + make_interval(mins => ($1).offset_minutes) $$;
CREATE OR REPLACE FUNCTION snowsim.numeric_of(boolean) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$ SELECT $1::int::numeric $$;
CREATE OR REPLACE FUNCTION snowsim.boolean_of(numeric) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT $1 <> 0 $$;
CREATE OR REPLACE FUNCTION snowsim.numeric_of(text) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$ SELECT $1::numeric $$;

-- A text that is compared with a number is read as one, as in Snowflake. Postgres
-- finds these operators by the search path, and only where it has none of its own.
CREATE SCHEMA IF NOT EXISTS snowsim_operators;
DO $$
DECLARE o record;
BEGIN
  FOR o IN SELECT * FROM (VALUES ('=', 'eq'), ('<>', 'ne'), ('<', 'lt'), ('<=', 'le'), ('>', 'gt'), ('>=', 'ge')) AS v(name, word) LOOP
    EXECUTE format('CREATE OR REPLACE FUNCTION snowsim_operators.%s(text, numeric) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT AS %L', o.word, format('SELECT $1::numeric %s $2', o.name));
    EXECUTE format('CREATE OR REPLACE FUNCTION snowsim_operators.%s(numeric, text) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT AS %L', o.word, format('SELECT $1 %s $2::numeric', o.name));
    IF to_regoperator(format('snowsim_operators.%s(text,numeric)', o.name)) IS NULL THEN
      EXECUTE format('CREATE OPERATOR snowsim_operators.%s (LEFTARG = text, RIGHTARG = numeric, FUNCTION = snowsim_operators.%s)', o.name, o.word);
      EXECUTE format('CREATE OPERATOR snowsim_operators.%s (LEFTARG = numeric, RIGHTARG = text, FUNCTION = snowsim_operators.%s)', o.name, o.word);
    END IF;
  END LOOP;
END $$;

-- Each cast is made once; those between types of Postgres's own are in casts.sql.
DO $$
DECLARE c record;
BEGIN
  FOR c IN SELECT * FROM (VALUES
    ('text', 'snowsim.timestamp_tz', 'snowsim.to_timestamp_tz(text)'),
    ('timestamptz', 'snowsim.timestamp_tz', 'snowsim.to_timestamp_tz(timestamptz)'),
    ('timestamp', 'snowsim.timestamp_tz', 'snowsim.to_timestamp_tz(timestamp)'),
    ('snowsim.timestamp_tz', 'timestamptz', 'snowsim.moment(snowsim.timestamp_tz)'),
    ('snowsim.timestamp_tz', 'timestamp', 'snowsim.local(snowsim.timestamp_tz)')) AS v(source, target, function) LOOP
    IF NOT EXISTS (SELECT 1 FROM pg_cast WHERE castsource = c.source::regtype AND casttarget = c.target::regtype) THEN
      EXECUTE format('CREATE CAST (%s AS %s) WITH FUNCTION %s AS ASSIGNMENT', c.source, c.target, c.function);
    END IF;
  END LOOP;
END $$;

-- Conversions.
CREATE OR REPLACE FUNCTION snowsim.to_varchar(text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT $1 $$;
CREATE OR REPLACE FUNCTION snowsim.to_varchar(numeric) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT $1::text $$;
CREATE OR REPLACE FUNCTION snowsim.to_varchar(bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT $1::text $$;
CREATE OR REPLACE FUNCTION snowsim.to_varchar(int) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT $1::text $$;
CREATE OR REPLACE FUNCTION snowsim.to_varchar(float8) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT $1::text $$;
CREATE OR REPLACE FUNCTION snowsim.to_varchar(boolean) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT $1::text $$;
CREATE OR REPLACE FUNCTION snowsim.to_varchar(date) RETURNS text LANGUAGE sql STABLE AS $$ SELECT to_char($1, 'YYYY-MM-DD') $$;
CREATE OR REPLACE FUNCTION snowsim.to_varchar(time) RETURNS text LANGUAGE sql STABLE AS $$ SELECT to_char($1, 'HH24:MI:SS') $$;
CREATE OR REPLACE FUNCTION snowsim.to_varchar(timestamp) RETURNS text LANGUAGE sql STABLE AS $$ SELECT to_char($1, 'YYYY-MM-DD HH24:MI:SS.MS') $$;
CREATE OR REPLACE FUNCTION snowsim.to_varchar(timestamptz) RETURNS text LANGUAGE sql STABLE AS $$ SELECT to_char($1, 'YYYY-MM-DD HH24:MI:SS.MS ') || replace(to_char($1, 'TZH:TZM'), ':', '') $$;
CREATE OR REPLACE FUNCTION snowsim.to_varchar(snowsim.timestamp_tz) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT to_char(snowsim.local($1), 'YYYY-MM-DD HH24:MI:SS.MS ') || CASE WHEN ($1).offset_minutes < 0 THEN '-' ELSE '+' END ||
    to_char(abs(($1).offset_minutes) / 60 * 100 + abs(($1).offset_minutes) % 60, 'FM0000') $$;
CREATE OR REPLACE FUNCTION snowsim.to_varchar(jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT $1 #>> '{}' $$;
CREATE OR REPLACE FUNCTION snowsim.to_varchar(bytea) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT upper(encode($1, 'hex')) $$;
CREATE OR REPLACE FUNCTION snowsim.to_binary(text) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$ SELECT decode($1, 'hex') $$;
CREATE OR REPLACE FUNCTION snowsim.to_binary(bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$ SELECT $1 $$;

-- A text of digits is seconds, milliseconds, microseconds or nanoseconds since 1970, by its size.
CREATE OR REPLACE FUNCTION snowsim.epoch(numeric) RETURNS timestamp LANGUAGE sql IMMUTABLE AS $$
  SELECT timestamp 'epoch' + (CASE WHEN abs($1) < 31536000000 THEN $1 WHEN abs($1) < 31536000000000 THEN $1 / 1000
    WHEN abs($1) < 31536000000000000 THEN $1 / 1000000 ELSE $1 / 1000000000 END)::float8 * interval '1 second' $$;
CREATE OR REPLACE FUNCTION snowsim.to_timestamp_ntz(text) RETURNS timestamp LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN $1 ~ '^-?\d+$' THEN snowsim.epoch($1::numeric) ELSE $1::timestamp END $$;
CREATE OR REPLACE FUNCTION snowsim.to_timestamp_ntz(numeric) RETURNS timestamp LANGUAGE sql IMMUTABLE AS $$ SELECT timestamp 'epoch' + $1::float8 * interval '1 second' $$;
CREATE OR REPLACE FUNCTION snowsim.to_timestamp_ntz(bigint) RETURNS timestamp LANGUAGE sql IMMUTABLE AS $$ SELECT timestamp 'epoch' + $1 * interval '1 second' $$;
CREATE OR REPLACE FUNCTION snowsim.to_timestamp_ntz(date) RETURNS timestamp LANGUAGE sql IMMUTABLE AS $$ SELECT $1::timestamp $$;
CREATE OR REPLACE FUNCTION snowsim.to_timestamp_ntz(timestamp) RETURNS timestamp LANGUAGE sql IMMUTABLE AS $$ SELECT $1 $$;
CREATE OR REPLACE FUNCTION snowsim.to_timestamp_ntz(timestamptz) RETURNS timestamp LANGUAGE sql STABLE AS $$ SELECT $1::timestamp $$;
CREATE OR REPLACE FUNCTION snowsim.to_timestamp_ntz(snowsim.timestamp_tz) RETURNS timestamp LANGUAGE sql IMMUTABLE AS $$ SELECT snowsim.local($1) $$;
CREATE OR REPLACE FUNCTION snowsim.to_timestamp_ntz(jsonb) RETURNS timestamp LANGUAGE sql STABLE AS $$ SELECT snowsim.to_timestamp_ntz($1 #>> '{}') $$;
CREATE OR REPLACE FUNCTION snowsim.to_timestamp_ltz(text) RETURNS timestamptz LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN $1 ~ '^-?\d+$' THEN snowsim.epoch($1::numeric) AT TIME ZONE 'UTC' ELSE $1::timestamptz END $$;
CREATE OR REPLACE FUNCTION snowsim.to_timestamp_ltz(numeric) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $$ SELECT to_timestamp($1::float8) $$;
CREATE OR REPLACE FUNCTION snowsim.to_timestamp_ltz(bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $$ SELECT to_timestamp($1::float8) $$;
CREATE OR REPLACE FUNCTION snowsim.to_timestamp_ltz(date) RETURNS timestamptz LANGUAGE sql STABLE AS $$ SELECT $1::timestamptz $$;
CREATE OR REPLACE FUNCTION snowsim.to_timestamp_ltz(timestamp) RETURNS timestamptz LANGUAGE sql STABLE AS $$ SELECT $1::timestamptz $$;
CREATE OR REPLACE FUNCTION snowsim.to_timestamp_ltz(timestamptz) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $$ SELECT $1 $$;
CREATE OR REPLACE FUNCTION snowsim.to_timestamp_ltz(snowsim.timestamp_tz) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $$ SELECT ($1).moment $$;
CREATE OR REPLACE FUNCTION snowsim.to_date(text) RETURNS date LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN $1 ~ '^-?\d+$' THEN snowsim.epoch($1::numeric)::date ELSE $1::date END $$;
CREATE OR REPLACE FUNCTION snowsim.to_date(numeric) RETURNS date LANGUAGE sql IMMUTABLE AS $$ SELECT snowsim.epoch($1)::date $$;
CREATE OR REPLACE FUNCTION snowsim.to_date(bigint) RETURNS date LANGUAGE sql IMMUTABLE AS $$ SELECT snowsim.epoch($1)::date $$;
CREATE OR REPLACE FUNCTION snowsim.to_date(date) RETURNS date LANGUAGE sql IMMUTABLE AS $$ SELECT $1 $$;
CREATE OR REPLACE FUNCTION snowsim.to_date(timestamp) RETURNS date LANGUAGE sql IMMUTABLE AS $$ SELECT $1::date $$;
CREATE OR REPLACE FUNCTION snowsim.to_date(timestamptz) RETURNS date LANGUAGE sql STABLE AS $$ SELECT $1::date $$;
CREATE OR REPLACE FUNCTION snowsim.to_date(snowsim.timestamp_tz) RETURNS date LANGUAGE sql IMMUTABLE AS $$ SELECT snowsim.local($1)::date $$;
CREATE OR REPLACE FUNCTION snowsim.to_time(text) RETURNS time LANGUAGE sql STABLE AS $$ SELECT $1::time $$;
CREATE OR REPLACE FUNCTION snowsim.to_time(time) RETURNS time LANGUAGE sql IMMUTABLE AS $$ SELECT $1 $$;
CREATE OR REPLACE FUNCTION snowsim.to_time(timestamp) RETURNS time LANGUAGE sql IMMUTABLE AS $$ SELECT $1::time $$;
CREATE OR REPLACE FUNCTION snowsim.to_time(timestamptz) RETURNS time LANGUAGE sql STABLE AS $$ SELECT $1::time $$;

-- Numbers. Snowflake divides integers to six places and keeps at most twelve.
CREATE OR REPLACE FUNCTION snowsim.div(numeric, numeric) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$
  SELECT round($1 / $2, greatest(scale($1), least(scale($1) + 6, 12))) $$;
CREATE OR REPLACE FUNCTION snowsim.div(bigint, bigint) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$ SELECT round($1::numeric / $2, 6) $$;
CREATE OR REPLACE FUNCTION snowsim.div(int, int) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$ SELECT round($1::numeric / $2, 6) $$;
CREATE OR REPLACE FUNCTION snowsim.div(float8, float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$ SELECT $1 / $2 $$;

-- Generation.
-- 64 bytes give 85 characters; + and / of base64 become letters.
CREATE OR REPLACE FUNCTION snowsim.letters(text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT left(translate(encode(sha512(convert_to($1, 'UTF8')), 'base64'), E'+/=\n', 'aB'), 85) $$;
CREATE OR REPLACE FUNCTION snowsim.randstr(length int, gen bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN length <= 0 THEN '' WHEN length <= 85 THEN left(snowsim.letters(gen::text), length)
    ELSE left((SELECT string_agg(snowsim.letters(gen || '~' || i), '' ORDER BY i) FROM generate_series(0, length / 85) AS i), length) END $$;

-- Times.
CREATE OR REPLACE FUNCTION snowsim.date_add(date, interval) RETURNS date LANGUAGE sql IMMUTABLE AS $$ SELECT ($1 + $2)::date $$;
CREATE OR REPLACE FUNCTION snowsim.date_add(timestamp, interval) RETURNS timestamp LANGUAGE sql IMMUTABLE AS $$ SELECT $1 + $2 $$;
CREATE OR REPLACE FUNCTION snowsim.date_add(timestamptz, interval) RETURNS timestamptz LANGUAGE sql STABLE AS $$ SELECT $1 + $2 $$;
CREATE OR REPLACE FUNCTION snowsim.time_add(date, interval) RETURNS timestamp LANGUAGE sql IMMUTABLE AS $$ SELECT $1 + $2 $$;
CREATE OR REPLACE FUNCTION snowsim.time_add(timestamp, interval) RETURNS timestamp LANGUAGE sql IMMUTABLE AS $$ SELECT $1 + $2 $$;
CREATE OR REPLACE FUNCTION snowsim.time_add(timestamptz, interval) RETURNS timestamptz LANGUAGE sql STABLE AS $$ SELECT $1 + $2 $$;
-- DATEDIFF counts the boundaries between two times.
CREATE OR REPLACE FUNCTION snowsim.datediff(part text, a timestamp, b timestamp) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT (CASE part
    WHEN 'year' THEN extract(year FROM b) - extract(year FROM a)
    WHEN 'quarter' THEN (extract(year FROM b) - extract(year FROM a)) * 4 + extract(quarter FROM b) - extract(quarter FROM a)
    WHEN 'month' THEN (extract(year FROM b) - extract(year FROM a)) * 12 + extract(month FROM b) - extract(month FROM a)
    WHEN 'week' THEN (date_trunc('week', b)::date - date_trunc('week', a)::date) / 7
    WHEN 'day' THEN b::date - a::date
    WHEN 'hour' THEN floor(extract(epoch FROM b) / 3600) - floor(extract(epoch FROM a) / 3600)
    WHEN 'minute' THEN floor(extract(epoch FROM b) / 60) - floor(extract(epoch FROM a) / 60)
    WHEN 'second' THEN floor(extract(epoch FROM b)) - floor(extract(epoch FROM a))
    WHEN 'millisecond' THEN floor(extract(epoch FROM b) * 1000) - floor(extract(epoch FROM a) * 1000)
    WHEN 'microsecond' THEN floor(extract(epoch FROM b) * 1000000) - floor(extract(epoch FROM a) * 1000000)
    END)::bigint $$;
CREATE OR REPLACE FUNCTION snowsim.date_part(part text, at timestamp) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT (CASE part WHEN 'epoch' THEN floor(extract(epoch FROM at)) WHEN 'epoch_millisecond' THEN floor(extract(epoch FROM at) * 1000)
    WHEN 'epoch_microsecond' THEN floor(extract(epoch FROM at) * 1000000)
    WHEN 'year' THEN extract(year FROM at) WHEN 'quarter' THEN extract(quarter FROM at) WHEN 'month' THEN extract(month FROM at)
    WHEN 'week' THEN extract(week FROM at) WHEN 'day' THEN extract(day FROM at) WHEN 'hour' THEN extract(hour FROM at)
    WHEN 'minute' THEN extract(minute FROM at) WHEN 'second' THEN floor(extract(second FROM at)) END)::bigint $$;
CREATE OR REPLACE FUNCTION snowsim.date_part(part text, at date) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT snowsim.date_part(part, at::timestamp) $$;
CREATE OR REPLACE FUNCTION snowsim.date_part(part text, at timestamptz) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT snowsim.date_part(part, CASE WHEN part LIKE 'epoch%' THEN at AT TIME ZONE 'UTC' ELSE at::timestamp END) $$;
CREATE OR REPLACE FUNCTION snowsim.wait(amount numeric, unit text) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM pg_sleep(amount::float8 * CASE upper(unit) WHEN 'MILLISECONDS' THEN 0.001 WHEN 'SECONDS' THEN 1 WHEN 'MINUTES' THEN 60 WHEN 'HOURS' THEN 3600 WHEN 'DAYS' THEN 86400 END);
  RETURN 'waited ' || amount || ' ' || lower(unit);
END $$;

-- The catalog: Snowflake's metadata of an object is JSON in the comment of the Postgres object.
CREATE TABLE IF NOT EXISTS snowsim.grants (role text, privilege text, kind text, object text, granted_on timestamptz, PRIMARY KEY (role, privilege, kind, object));

CREATE OR REPLACE FUNCTION snowsim.row_count(relation oid) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE n bigint;
BEGIN
  EXECUTE format('SELECT count(*) FROM %s', relation::regclass) INTO n;
  RETURN n;
EXCEPTION WHEN undefined_table OR syntax_error THEN
  RETURN NULL; -- dropped meanwhile
END $$;
CREATE OR REPLACE VIEW snowsim.schemas AS
  SELECT n.oid, n.nspname::text AS pg_schema, e ->> 'database' AS database, e ->> 'schema' AS schema, (e ->> 'created_on')::timestamptz AS created_on,
    coalesce(e ->> 'owner', '') AS owner, coalesce(e ->> 'comment', '') AS comment
  FROM pg_namespace n CROSS JOIN LATERAL (SELECT obj_description(n.oid, 'pg_namespace')) AS d(text)
    CROSS JOIN LATERAL (SELECT CASE WHEN d.text LIKE '{"database"%' THEN d.text::jsonb END) AS j(e)
  WHERE n.nspname LIKE '%.%' AND e IS NOT NULL;
CREATE OR REPLACE VIEW snowsim.tables AS
  SELECT c.oid, e ->> 'database' AS database_name, e ->> 'schema' AS schema_name, e ->> 'table' AS table_name, e ->> 'kind' AS kind, coalesce(e ->> 'temporary', '') AS temporary,
    coalesce(e ->> 'comment', '') AS comment, coalesce(e ->> 'cluster_by', '') AS cluster_by, coalesce(e ->> 'owner', '') AS owner, e ->> 'target_lag' AS target_lag,
    e ->> 'warehouse' AS warehouse, (e ->> 'created_on')::timestamptz AS created_on, e AS entry
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace CROSS JOIN LATERAL (SELECT obj_description(c.oid, 'pg_class')) AS d(text)
    CROSS JOIN LATERAL (SELECT CASE WHEN d.text LIKE '{"database"%' THEN d.text::jsonb END) AS j(e)
  WHERE c.relkind IN ('r', 'v') AND n.nspname LIKE '%.%' AND e IS NOT NULL;
CREATE OR REPLACE VIEW snowsim.columns AS
  SELECT t.database_name, t.schema_name, t.table_name, t.owner, t.created_on, c.ordinal_position::int AS ordinal_position, c.e ->> 'name' AS column_name, c.e ->> 'type' AS type,
    (c.e ->> 'precision')::int AS precision, (c.e ->> 'scale')::int AS scale, (c.e ->> 'length')::int AS length, (c.e ->> 'nullable')::boolean AS nullable,
    c.e ->> 'default' AS default_value, coalesce((c.e ->> 'identity')::boolean, false) AS identity, (c.e ->> 'start')::bigint AS identity_start,
    (c.e ->> 'increment')::bigint AS identity_increment, coalesce(c.e ->> 'comment', '') AS comment,
    EXISTS (SELECT 1 FROM jsonb_array_elements(t.entry -> 'keys') k WHERE k ->> 'kind' = 'PRIMARY KEY' AND k -> 'columns' ? (c.e ->> 'name')) AS primary_key,
    EXISTS (SELECT 1 FROM jsonb_array_elements(t.entry -> 'keys') k WHERE k ->> 'kind' = 'UNIQUE' AND k -> 'columns' ? (c.e ->> 'name')) AS unique_key
  FROM snowsim.tables t CROSS JOIN LATERAL jsonb_array_elements(t.entry -> 'columns') WITH ORDINALITY AS c(e, ordinal_position);
CREATE OR REPLACE VIEW snowsim.keys AS
  SELECT t.database_name, t.schema_name, t.table_name, t.created_on, t.comment, k.e ->> 'kind' AS kind, k.e ->> 'name' AS constraint_name, (k.e ->> 'enforced')::boolean AS enforced,
    k.e ->> 'references' AS referenced, k.e -> 'columns' AS columns, k.e -> 'target' AS target
  FROM snowsim.tables t CROSS JOIN LATERAL jsonb_array_elements(t.entry -> 'keys') AS k(e);
CREATE OR REPLACE VIEW snowsim.indexes AS
  SELECT t.database_name, t.schema_name, t.table_name, t.created_on, t.owner, i.e ->> 'name' AS index_name, (i.e ->> 'unique')::boolean AS is_unique, i.e -> 'columns' AS columns,
    coalesce(nullif(i.e -> 'include', 'null'), '[]') AS include
  FROM snowsim.tables t CROSS JOIN LATERAL jsonb_array_elements(t.entry -> 'indexes') AS i(e);

-- Names as Snowflake lists them: [A, B].
CREATE OR REPLACE FUNCTION snowsim.bracketed(jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT '[' || coalesce(string_agg(c, ', ' ORDER BY n), '') || ']' FROM jsonb_array_elements_text($1) WITH ORDINALITY AS v(c, n) $$;

-- INFORMATION_SCHEMA. A view with a literal dot in its name serves each.
CREATE OR REPLACE VIEW snowsim."INFORMATION_SCHEMA.TABLES" AS
  SELECT database_name AS "TABLE_CATALOG", schema_name AS "TABLE_SCHEMA", table_name AS "TABLE_NAME", owner AS "TABLE_OWNER",
    CASE WHEN kind = 'view' THEN 'VIEW' WHEN temporary = 'TEMPORARY' THEN 'LOCAL TEMPORARY' ELSE 'BASE TABLE' END AS "TABLE_TYPE", CASE WHEN temporary = 'TRANSIENT' THEN 'YES' ELSE 'NO' END AS "IS_TRANSIENT",
    nullif(cluster_by, '') AS "CLUSTERING_KEY", snowsim.row_count(oid)::numeric(38,0) AS "ROW_COUNT", pg_total_relation_size(oid)::numeric(38,0) AS "BYTES", 1::numeric(9,0) AS "RETENTION_TIME",
    'YES'::text AS "IS_INSERTABLE_INTO", 'YES'::text AS "IS_TYPED", created_on AS "CREATED", created_on AS "LAST_ALTERED", created_on AS "LAST_DDL", owner AS "LAST_DDL_BY",
    CASE WHEN cluster_by = '' THEN 'NO' ELSE 'YES' END AS "AUTO_CLUSTERING_ON", nullif(comment, '') AS "COMMENT", CASE WHEN temporary = 'TEMPORARY' THEN 'YES' ELSE 'NO' END AS "IS_TEMPORARY",
    'NO'::text AS "IS_ICEBERG", 'NO'::text AS "IS_DYNAMIC", 'NO'::text AS "IS_IMMUTABLE", CASE WHEN kind = 'hybrid' THEN 'YES' ELSE 'NO' END AS "IS_HYBRID",
    CASE WHEN kind = 'interactive' THEN 'YES' ELSE 'NO' END AS "IS_INTERACTIVE" FROM snowsim.tables;
CREATE OR REPLACE VIEW snowsim."INFORMATION_SCHEMA.COLUMNS" AS
  SELECT database_name AS "TABLE_CATALOG", schema_name AS "TABLE_SCHEMA", table_name AS "TABLE_NAME", column_name AS "COLUMN_NAME", ordinal_position::numeric(9,0) AS "ORDINAL_POSITION",
    default_value AS "COLUMN_DEFAULT", CASE WHEN nullable THEN 'YES' ELSE 'NO' END AS "IS_NULLABLE", CASE type WHEN 'VARCHAR' THEN 'TEXT' ELSE type END AS "DATA_TYPE",
    CASE WHEN type = 'VARCHAR' THEN length END::numeric(9,0) AS "CHARACTER_MAXIMUM_LENGTH", CASE WHEN type = 'VARCHAR' THEN least(length::bigint * 4, 16777216) END::numeric(9,0) AS "CHARACTER_OCTET_LENGTH",
    CASE WHEN type = 'NUMBER' THEN precision END::numeric(9,0) AS "NUMERIC_PRECISION", CASE WHEN type = 'NUMBER' THEN 10 END::numeric(9,0) AS "NUMERIC_PRECISION_RADIX",
    CASE WHEN type = 'NUMBER' THEN scale END::numeric(9,0) AS "NUMERIC_SCALE", CASE WHEN type = 'TIME' OR type LIKE 'TIMESTAMP%' THEN scale END::numeric(9,0) AS "DATETIME_PRECISION",
    CASE WHEN identity THEN 'YES' ELSE 'NO' END AS "IS_IDENTITY", CASE WHEN identity THEN 'BY DEFAULT' END AS "IDENTITY_GENERATION", identity_start::text AS "IDENTITY_START",
    identity_increment::text AS "IDENTITY_INCREMENT", nullif(comment, '') AS "COMMENT" FROM snowsim.columns;
