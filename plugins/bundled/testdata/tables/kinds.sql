-- Tables with constraints, keys and types of one kind each. A line "--= NAME" asks for every operation of mix on a
-- table; KIND=WORD says that this kind is refused before the start, with the word in the refusal.

--= ticket
CREATE TABLE ticket (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, title varchar(80) NOT NULL,
  state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'shut', 'void')));
INSERT INTO ticket (title) SELECT 'ticket ' || g FROM generate_series(1, 300) g;

--= reference_with_default
CREATE TABLE team (id int PRIMARY KEY, name text NOT NULL);
INSERT INTO team SELECT g, 'team ' || g FROM generate_series(1, 5) g;
CREATE TABLE reference_with_default (id serial PRIMARY KEY, title varchar(40) NOT NULL,
  team_id int NOT NULL DEFAULT 1 REFERENCES team);
INSERT INTO reference_with_default (title) SELECT 't' || g FROM generate_series(1, 300) g;

--= composite_reference
CREATE TABLE warehouse_shelf (warehouse int, shelf text, PRIMARY KEY (warehouse, shelf));
INSERT INTO warehouse_shelf SELECT g, chr(96 + g) FROM generate_series(1, 20) g;
CREATE TABLE composite_reference (id bigint PRIMARY KEY, warehouse int NOT NULL, shelf text NOT NULL, amount int NOT NULL,
  FOREIGN KEY (warehouse, shelf) REFERENCES warehouse_shelf);
INSERT INTO composite_reference SELECT g, 1 + g % 20, chr(97 + g % 20), g FROM generate_series(1, 300) g;

--= span
CREATE TABLE span (id bigint PRIMARY KEY, starts timestamptz NOT NULL, ends timestamptz NOT NULL, label text,
  CHECK (ends > starts));
INSERT INTO span SELECT g, now() + g * interval '1 day', now() + (g + 1) * interval '1 day' FROM generate_series(1, 300) g;

--= span_with_default
CREATE TABLE span_with_default (id bigint PRIMARY KEY, starts timestamptz NOT NULL DEFAULT now(), ends timestamptz NOT NULL,
  CHECK (ends > starts AND ends < starts + interval '1 hour'));
INSERT INTO span_with_default SELECT g, '2020-01-01'::timestamptz + g * interval '1 day',
  '2020-01-01'::timestamptz + g * interval '1 day' + interval '5 min' FROM generate_series(1, 300) g;

--= three_in_a_check
CREATE TABLE three_in_a_check (id serial PRIMARY KEY, low int NOT NULL, mid int NOT NULL, high int NOT NULL,
  CHECK (low < mid), CHECK (mid < high));
INSERT INTO three_in_a_check (low, mid, high) SELECT g, g + 10, g + 20 FROM generate_series(1, 300) g;

--= only_checked
CREATE TABLE only_checked (id serial PRIMARY KEY, level smallint NOT NULL CHECK (level BETWEEN 1 AND 5));
INSERT INTO only_checked (level) SELECT 1 + g % 5 FROM generate_series(1, 300) g;

--= only_referenced
CREATE TABLE only_referenced (id serial PRIMARY KEY, team_id int NOT NULL REFERENCES team);
INSERT INTO only_referenced (team_id) SELECT 1 + g % 5 FROM generate_series(1, 300) g;

--= all_defaults UPDATE=key
CREATE TABLE all_defaults (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
INSERT INTO all_defaults SELECT FROM generate_series(1, 300);

--= defaults_everywhere
CREATE TABLE defaults_everywhere (id serial PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), state text DEFAULT 'new');
INSERT INTO defaults_everywhere (state) SELECT 'new' FROM generate_series(1, 300);

--= invoice_number
CREATE TABLE invoice_number (id bigint PRIMARY KEY, invoice_no numeric(12,0) NOT NULL UNIQUE, total numeric(10,2));
INSERT INTO invoice_number SELECT g, 900000 + g, g FROM generate_series(1, 300) g;

--= numeric_key
CREATE TABLE numeric_key (id numeric PRIMARY KEY, v text NOT NULL);
INSERT INTO numeric_key SELECT g * 1.5, 'x' FROM generate_series(1, 30000) g;

--= numeric_key_with_digits
CREATE TABLE numeric_key_with_digits (id numeric(20,4) PRIMARY KEY, v text NOT NULL);
INSERT INTO numeric_key_with_digits SELECT g + 0.25, 'x' FROM generate_series(1, 300) g;

--= small_numeric_key INSERT=code
CREATE TABLE small_numeric_key (code numeric(3,1) PRIMARY KEY, v text NOT NULL);
INSERT INTO small_numeric_key SELECT g * 0.1, 'x' FROM generate_series(1, 300) g;

--= float_key
CREATE TABLE float_key (id float8 PRIMARY KEY, v text NOT NULL);
INSERT INTO float_key SELECT g * 1.25, 'x' FROM generate_series(1, 300) g;

--= real_unique
CREATE TABLE real_unique (id serial PRIMARY KEY, reading real NOT NULL UNIQUE, v text);
INSERT INTO real_unique (reading) SELECT g / 4.0 FROM generate_series(1, 300) g;

--= jsonb_unique
CREATE TABLE jsonb_unique (id serial PRIMARY KEY, doc jsonb NOT NULL UNIQUE, v int);
INSERT INTO jsonb_unique (doc) SELECT jsonb_build_object('n', g) FROM generate_series(1, 300) g;

--= jsonb_key
CREATE TABLE jsonb_key (doc jsonb PRIMARY KEY, v int NOT NULL);
INSERT INTO jsonb_key SELECT jsonb_build_object('n', g), g FROM generate_series(1, 300) g;

--= interval_key
CREATE TABLE interval_key (span interval PRIMARY KEY, v text NOT NULL);
INSERT INTO interval_key SELECT g * interval '1 min', 'x' FROM generate_series(1, 300) g;

--= money_unique
CREATE TABLE money_unique (id int PRIMARY KEY, price money NOT NULL UNIQUE);
INSERT INTO money_unique SELECT g, g::numeric::money FROM generate_series(1, 300) g;

--= inet_key
CREATE TABLE inet_key (host inet PRIMARY KEY, v text NOT NULL);
INSERT INTO inet_key SELECT '10.0.0.0'::inet + g, 'x' FROM generate_series(1, 300) g;

--= date_key
CREATE TABLE date_key (d date PRIMARY KEY, v int NOT NULL);
INSERT INTO date_key SELECT date '2024-01-01' + g, g FROM generate_series(1, 300) g;

--= second_key
CREATE TABLE second_key (at timestamp(0) PRIMARY KEY, v int NOT NULL);
INSERT INTO second_key SELECT timestamp '2030-01-01' + g * interval '1 s', g FROM generate_series(1, 300) g;

--= time_key INSERT=at
CREATE TABLE time_key (at time PRIMARY KEY, v int NOT NULL);
INSERT INTO time_key SELECT time '00:00' + g * interval '1 min', g FROM generate_series(1, 300) g;

--= bool_unique INSERT=flag
CREATE TABLE bool_unique (id serial PRIMARY KEY, flag bool NOT NULL UNIQUE, v text);
INSERT INTO bool_unique (flag) VALUES (true), (false);

--= smallint_key
CREATE TABLE smallint_key (id smallint PRIMARY KEY, v text NOT NULL);
INSERT INTO smallint_key SELECT g, 'x' FROM generate_series(1, 300) g;

--= two_unique_columns
CREATE TABLE two_unique_columns (id bigint PRIMARY KEY, a int NOT NULL UNIQUE, b varchar(10) NOT NULL UNIQUE, c uuid UNIQUE);
INSERT INTO two_unique_columns SELECT g, g * 3, 'b' || g, gen_random_uuid() FROM generate_series(1, 300) g;

--= perm
CREATE TABLE par (id int PRIMARY KEY);
INSERT INTO par SELECT g FROM generate_series(1, 10) g;
CREATE TABLE perm (id serial PRIMARY KEY, par_id int NOT NULL REFERENCES par, code text NOT NULL, UNIQUE (par_id, code));
INSERT INTO perm (par_id, code) SELECT 1 + g % 10, 'c' || g FROM generate_series(1, 300) g;

--= line
CREATE TABLE line (par_id int REFERENCES par, n int, v text NOT NULL, PRIMARY KEY (par_id, n));
INSERT INTO line SELECT 1 + g % 10, g, 'x' FROM generate_series(1, 300) g;

--= one_to_one INSERT=par_id
CREATE TABLE one_to_one (id serial PRIMARY KEY, par_id int NOT NULL UNIQUE REFERENCES par, v text NOT NULL);
INSERT INTO one_to_one (par_id, v) SELECT g, 'x' FROM generate_series(1, 10) g;

--= one_to_maybe
CREATE TABLE one_to_maybe (id serial PRIMARY KEY, par_id int UNIQUE REFERENCES par, v text NOT NULL);
INSERT INTO one_to_maybe (par_id, v) SELECT nullif(g, 10), 'x' FROM generate_series(1, 10) g;

--= domain_over_bytea
CREATE DOMAIN digest AS bytea CHECK (octet_length(VALUE) = 16);
CREATE TABLE domain_over_bytea (id serial PRIMARY KEY, hash digest NOT NULL, raw bytea);
INSERT INTO domain_over_bytea (hash) SELECT decode(md5(g::text), 'hex') FROM generate_series(1, 300) g;

--= domain_key
CREATE DOMAIN blob_id AS bytea;
CREATE TABLE domain_key (id blob_id PRIMARY KEY, v text NOT NULL);
INSERT INTO domain_key SELECT decode(md5(g::text), 'hex'), 'x' FROM generate_series(1, 300) g;

--= domain_unique INSERT=address
CREATE DOMAIN email AS text CHECK (VALUE LIKE '%@%');
CREATE TABLE domain_unique (id serial PRIMARY KEY, address email NOT NULL UNIQUE, v text);
INSERT INTO domain_unique (address) SELECT g || '@example.org' FROM generate_series(1, 300) g;

--= checked_unique INSERT=checked_unique_sku_check
CREATE TABLE checked_unique (id serial PRIMARY KEY, sku text NOT NULL UNIQUE CHECK (sku ~ '^[A-Z]{3}-\d+$'), v text);
INSERT INTO checked_unique (sku) SELECT 'ABC-' || g FROM generate_series(1, 300) g;

--= domains
CREATE DOMAIN rate AS numeric(5,4) NOT NULL CHECK (VALUE >= 0 AND VALUE <= 1);
CREATE DOMAIN short_name AS varchar(12);
CREATE TABLE domains (id serial PRIMARY KEY, r rate, n short_name NOT NULL);
INSERT INTO domains (r, n) SELECT g / 1000.0, 'n' || g FROM generate_series(1, 300) g;

--= composite_type
CREATE TYPE point3 AS (x int, y int, z numeric);
CREATE TABLE composite_type (id serial PRIMARY KEY, at point3 NOT NULL, path point3[]);
INSERT INTO composite_type (at) SELECT row(g, g, g / 2.0)::point3 FROM generate_series(1, 300) g;

--= composite_type_unique INSERT=at
CREATE TABLE composite_type_unique (id serial PRIMARY KEY, at point3 NOT NULL UNIQUE, v int);
INSERT INTO composite_type_unique (at) SELECT row(g, g, g)::point3 FROM generate_series(1, 300) g;

--= enums
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE enums (id serial PRIMARY KEY, m mood NOT NULL, tags text[] NOT NULL, r int4range, p point);
INSERT INTO enums (m, tags, r, p) SELECT 'ok', ARRAY['a', 'b'], int4range(g, g + 2), point(g, g) FROM generate_series(1, 300) g;

--= unusual_types
CREATE TABLE unusual_types (id serial PRIMARY KEY, mac macaddr NOT NULL, net cidr NOT NULL, b bit(8) NOT NULL,
  v varbit NOT NULL, x xml, t timetz NOT NULL, tsv tsvector, pg pg_lsn, box box);
INSERT INTO unusual_types (mac, net, b, v, t, tsv)
  SELECT '08:00:2b:01:02:03', '10.0.0.0/8', B'10101010', B'101', '12:00+02', to_tsvector('a b') FROM generate_series(1, 300) g;

--= parent DELETE=child_of_parent
CREATE TABLE parent (id int PRIMARY KEY, v text);
CREATE TABLE child_of_parent (id serial PRIMARY KEY, parent_id int REFERENCES parent);
INSERT INTO parent SELECT g, 'x' FROM generate_series(1, 300) g;
INSERT INTO child_of_parent (parent_id) VALUES (7);

--= cascading_parent
CREATE TABLE cascading_parent (id int PRIMARY KEY, v text);
CREATE TABLE cascaded (id serial PRIMARY KEY, parent_id int REFERENCES cascading_parent ON DELETE CASCADE);
INSERT INTO cascading_parent SELECT g, 'x' FROM generate_series(1, 300) g;
INSERT INTO cascaded (parent_id) SELECT g FROM generate_series(1, 300) g;

--= grandparent DELETE=grandchild
CREATE TABLE grandparent (id int PRIMARY KEY, v text);
CREATE TABLE middle (id int PRIMARY KEY, parent_id int REFERENCES grandparent ON DELETE CASCADE);
CREATE TABLE grandchild (id serial PRIMARY KEY, middle_id int REFERENCES middle);
INSERT INTO grandparent SELECT g, 'x' FROM generate_series(1, 300) g;
INSERT INTO middle SELECT g, g FROM generate_series(1, 300) g;
INSERT INTO grandchild (middle_id) VALUES (299);

--= tree DELETE=tree_parent_id_fkey
CREATE TABLE tree (id serial PRIMARY KEY, parent_id int REFERENCES tree, label text NOT NULL);
INSERT INTO tree (parent_id, label) SELECT nullif(g / 2, 0), 'n' || g FROM generate_series(1, 300) g;

--= loose_tree
CREATE TABLE loose_tree (id serial PRIMARY KEY, parent_id int REFERENCES loose_tree ON DELETE SET NULL, label text NOT NULL);
INSERT INTO loose_tree (parent_id, label) SELECT nullif(g / 2, 0), 'n' || g FROM generate_series(1, 300) g;

--= json_trigger
CREATE TABLE json_trigger (id serial PRIMARY KEY, payload text NOT NULL, kind text);
INSERT INTO json_trigger (payload) SELECT json_build_object('kind', 'k' || g)::text FROM generate_series(1, 300) g;
CREATE FUNCTION read_payload() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN NEW.kind := NEW.payload::json ->> 'kind'; RETURN NEW; END $$;
CREATE TRIGGER read_payload BEFORE INSERT OR UPDATE ON json_trigger FOR EACH ROW EXECUTE FUNCTION read_payload();

--= stamped
CREATE TABLE stamped (id serial PRIMARY KEY, title text NOT NULL, updated_at timestamptz NOT NULL DEFAULT now());
INSERT INTO stamped (title) SELECT 't' || g FROM generate_series(1, 300) g;
CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN NEW.updated_at := clock_timestamp(); RETURN NEW; END $$;
CREATE TRIGGER stamp BEFORE UPDATE ON stamped FOR EACH ROW EXECUTE FUNCTION stamp();

--= refusing_trigger UPDATE=closed
CREATE TABLE refusing_trigger (id serial PRIMARY KEY, v text NOT NULL);
INSERT INTO refusing_trigger (v) SELECT 'x' FROM generate_series(1, 300);
CREATE FUNCTION closed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'the books are closed'; END $$;
CREATE TRIGGER closed BEFORE UPDATE ON refusing_trigger FOR EACH ROW EXECUTE FUNCTION closed();

--= excluded INSERT=room
CREATE EXTENSION IF NOT EXISTS btree_gist;
CREATE TABLE room (id int PRIMARY KEY);
INSERT INTO room SELECT g FROM generate_series(1, 300) g;
CREATE TABLE excluded (id serial PRIMARY KEY, room int NOT NULL REFERENCES room, during tstzrange NOT NULL, note text,
  EXCLUDE USING gist (room WITH =, during WITH &&));
INSERT INTO excluded (room, during) SELECT g, tstzrange(now(), now() + interval '1 hour') FROM generate_series(1, 300) g;

--= excluded_by_name
CREATE TABLE excluded_by_name (id serial PRIMARY KEY, room text NOT NULL, during tstzrange NOT NULL, note text,
  EXCLUDE USING gist (room WITH =, during WITH &&));
INSERT INTO excluded_by_name (room, during) SELECT 'r' || g, tstzrange(now(), now() + interval '1 hour')
  FROM generate_series(1, 300) g;

--= lower_unique
CREATE TABLE lower_unique (id serial PRIMARY KEY, email varchar(60) NOT NULL, v text);
CREATE UNIQUE INDEX lower_email ON lower_unique (lower(email));
INSERT INTO lower_unique (email) SELECT 'User' || g || '@x.org' FROM generate_series(1, 300) g;

--= partly_unique
CREATE TABLE partly_unique (id serial PRIMARY KEY, par_id int NOT NULL REFERENCES par, main bool NOT NULL DEFAULT false, v text);
CREATE UNIQUE INDEX one_main ON partly_unique (par_id) WHERE main;
INSERT INTO partly_unique (par_id, main) SELECT 1 + g % 10, g <= 10 FROM generate_series(1, 300) g;

--= deferred_unique
CREATE TABLE deferred_unique (id serial PRIMARY KEY, position int NOT NULL UNIQUE DEFERRABLE INITIALLY DEFERRED, v text);
INSERT INTO deferred_unique (position) SELECT g FROM generate_series(1, 300) g;

--= deferred_reference
CREATE TABLE deferred_reference (id serial PRIMARY KEY, par_id int NOT NULL REFERENCES par DEFERRABLE INITIALLY DEFERRED);
INSERT INTO deferred_reference (par_id) SELECT 1 + g % 10 FROM generate_series(1, 300) g;

--= ranged
CREATE TABLE ranged (id bigint, at timestamptz NOT NULL, v text NOT NULL, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
CREATE TABLE ranged_1 PARTITION OF ranged FOR VALUES FROM ('2020-01-01') TO ('2020-02-01');
CREATE TABLE ranged_2 PARTITION OF ranged FOR VALUES FROM ('2020-02-01') TO ('2020-03-01');
INSERT INTO ranged SELECT g, '2020-01-01'::timestamptz + (g % 50) * interval '1 day', 'x' FROM generate_series(1, 300) g;

--= listed
CREATE TABLE listed (id int NOT NULL, country char(2) NOT NULL, v text, PRIMARY KEY (id, country)) PARTITION BY LIST (country);
CREATE TABLE listed_de PARTITION OF listed FOR VALUES IN ('de');
CREATE TABLE listed_fr PARTITION OF listed FOR VALUES IN ('fr');
INSERT INTO listed SELECT g, CASE g % 2 WHEN 0 THEN 'de' ELSE 'fr' END, 'x' FROM generate_series(1, 300) g;

--= listed_de
--= ranged_by_key INSERT=id
CREATE TABLE ranged_by_key (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
CREATE TABLE ranged_by_key_1 PARTITION OF ranged_by_key FOR VALUES FROM (0) TO (301);
INSERT INTO ranged_by_key SELECT g, 'x' FROM generate_series(1, 300) g;

--= generated_columns
CREATE TABLE generated_columns (id serial PRIMARY KEY, a int NOT NULL, b int GENERATED ALWAYS AS (a * 2) STORED, v text);
INSERT INTO generated_columns (a) SELECT g FROM generate_series(1, 300) g;

--= updatable_view POINT_LOOKUP=key RANGE_SCAN=key UPDATE=key DELETE=key
CREATE TABLE under_view (id serial PRIMARY KEY, v text NOT NULL, w int);
INSERT INTO under_view (v, w) SELECT 'x', g FROM generate_series(1, 300) g;
CREATE VIEW updatable_view AS SELECT v, w, upper(v) AS loud FROM under_view;

--= wide
DO $$ BEGIN EXECUTE 'CREATE TABLE wide (id bigint PRIMARY KEY, ' ||
  (SELECT string_agg('c' || g || ' int', ', ') FROM generate_series(1, 300) g) || ')'; END $$;
INSERT INTO wide (id) SELECT g FROM generate_series(1, 300) g;

--= behind_sequence INSERT=setval
CREATE TABLE behind_sequence (id serial PRIMARY KEY, v text NOT NULL);
INSERT INTO behind_sequence SELECT g, 'x' FROM generate_series(1, 300) g;

--= no_key POINT_LOOKUP=key RANGE_SCAN=key UPDATE=key DELETE=key
CREATE TABLE no_key (v text NOT NULL, n int);
INSERT INTO no_key SELECT 'x', g FROM generate_series(1, 300) g;

--= empty_with_checks POINT_LOOKUP=empty RANGE_SCAN=empty UPDATE=empty DELETE=empty INSERT=empty_with_checks_state_check
CREATE TABLE empty_with_checks (id serial PRIMARY KEY, state text NOT NULL CHECK (state IN ('a', 'b')));

--= empty_with_reference POINT_LOOKUP=empty RANGE_SCAN=empty UPDATE=empty
CREATE TABLE empty_with_reference (id serial PRIMARY KEY, par_id int REFERENCES par, v text NOT NULL);

--= empty_with_required_reference POINT_LOOKUP=empty RANGE_SCAN=empty UPDATE=empty
CREATE TABLE empty_with_required_reference (id serial PRIMARY KEY, par_id int NOT NULL REFERENCES par, v text NOT NULL);

--= short_codes INSERT=code
CREATE TABLE short_codes (code char(2) PRIMARY KEY, name text NOT NULL);
INSERT INTO short_codes SELECT chr(65 + g / 26) || chr(65 + g % 26), 'n' FROM generate_series(0, 300) g;

--= defaulted_unique
CREATE TABLE defaulted_unique (id int PRIMARY KEY DEFAULT 0, tenant int NOT NULL DEFAULT 1, slug text NOT NULL DEFAULT '',
  UNIQUE (tenant, slug));
INSERT INTO defaulted_unique SELECT g, 1, 's' || g FROM generate_series(1, 300) g;

--= uuid_default
CREATE TABLE uuid_default (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), v jsonb NOT NULL DEFAULT '{}');
INSERT INTO uuid_default (v) SELECT '{}' FROM generate_series(1, 300);

--= long_text
CREATE TABLE long_text (id serial PRIMARY KEY, body text NOT NULL CHECK (length(body) > 70000), kind text NOT NULL);
INSERT INTO long_text (body, kind) SELECT repeat('x', 70001), 'k' FROM generate_series(1, 20);

--= pointed_at DELETE=points_at UPDATE=update_columns
CREATE TABLE pointed_at (id serial PRIMARY KEY, email text NOT NULL UNIQUE);
CREATE TABLE points_at (id serial PRIMARY KEY, email text REFERENCES pointed_at (email), v text);
INSERT INTO pointed_at (email) SELECT g || '@x.org' FROM generate_series(1, 300) g;
INSERT INTO points_at (email) SELECT g || '@x.org' FROM generate_series(1, 300) g;

--= case_insensitive
CREATE SCHEMA extensions;
CREATE EXTENSION citext SCHEMA extensions;
CREATE TABLE case_insensitive (id serial PRIMARY KEY, email extensions.citext NOT NULL UNIQUE, v extensions.citext);
INSERT INTO case_insensitive (email) SELECT g || '@X.org' FROM generate_series(1, 300) g;

--= conditional
CREATE TABLE conditional (id serial PRIMARY KEY, status text NOT NULL DEFAULT 'new', shipped_at timestamptz,
  CHECK ((status = 'shipped') = (shipped_at IS NOT NULL)));
INSERT INTO conditional (status, shipped_at) SELECT CASE g % 2 WHEN 0 THEN 'shipped' ELSE 'new' END,
  CASE g % 2 WHEN 0 THEN now() END FROM generate_series(1, 300) g;

--= soft_deleted
CREATE TABLE soft_deleted (id serial PRIMARY KEY, email text NOT NULL, deleted_at timestamptz);
CREATE UNIQUE INDEX one_living ON soft_deleted (email) WHERE deleted_at IS NULL;
INSERT INTO soft_deleted (email) SELECT g || '@x.org' FROM generate_series(1, 300) g;

--= user_day
CREATE TABLE user_day (id serial PRIMARY KEY, par_id int NOT NULL REFERENCES par, seen timestamptz NOT NULL DEFAULT now(),
  hits int NOT NULL DEFAULT 0, UNIQUE (par_id, seen));
INSERT INTO user_day (par_id, seen) SELECT 1 + g % 10, now() + g * interval '1 s' FROM generate_series(1, 300) g;

--= nulls_not_distinct INSERT=par_id
CREATE TABLE nulls_not_distinct (id serial PRIMARY KEY, par_id int REFERENCES par, v text);
CREATE UNIQUE INDEX one_null ON nulls_not_distinct (par_id) NULLS NOT DISTINCT;
INSERT INTO nulls_not_distinct (par_id) SELECT nullif(g, 10) FROM generate_series(1, 10) g;

--= slugged
CREATE TABLE slugged (id serial PRIMARY KEY, title text NOT NULL, slug text NOT NULL UNIQUE);
INSERT INTO slugged (title, slug) SELECT 't' || g, 's' || g FROM generate_series(1, 300) g;
CREATE FUNCTION slug() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN IF NEW.slug IS NULL THEN NEW.slug := lower(NEW.title) || '-' || NEW.id; END IF; RETURN NEW; END $$;
CREATE TRIGGER slug BEFORE INSERT ON slugged FOR EACH ROW EXECUTE FUNCTION slug();

--= "Mixed Case"
CREATE TABLE "Mixed Case" ("Id" int PRIMARY KEY, "Order" text NOT NULL CHECK ("Order" IN ('a', 'b')), "Par Id" int REFERENCES par);
INSERT INTO "Mixed Case" SELECT g, 'a', 1 + g % 10 FROM generate_series(1, 300) g;

--= friendship
CREATE TABLE member (id int PRIMARY KEY);
INSERT INTO member SELECT g FROM generate_series(1, 300) g;
CREATE TABLE friendship (a int NOT NULL REFERENCES member, b int NOT NULL REFERENCES member, since date NOT NULL DEFAULT now(),
  PRIMARY KEY (a, b), CHECK (a < b));
INSERT INTO friendship SELECT g, g + 1 FROM generate_series(1, 299) g;

--= enrolment POINT_LOOKUP=empty RANGE_SCAN=empty UPDATE=empty
CREATE TABLE student (id uuid PRIMARY KEY);
CREATE TABLE course (dept text, code int, PRIMARY KEY (dept, code));
INSERT INTO student SELECT gen_random_uuid() FROM generate_series(1, 400);
INSERT INTO course SELECT 'd' || g % 3, g FROM generate_series(1, 50) g;
CREATE TABLE enrolment (student_id uuid NOT NULL REFERENCES student, dept text NOT NULL, code int NOT NULL, grade int CHECK (grade BETWEEN 1 AND 6),
  PRIMARY KEY (student_id, dept, code), FOREIGN KEY (dept, code) REFERENCES course);

--= few_pairs INSERT=colour
CREATE TABLE few_pairs (student_id uuid NOT NULL REFERENCES student, colour int NOT NULL CHECK (colour IN (1, 2)),
  course int NOT NULL REFERENCES member, PRIMARY KEY (course, colour));
INSERT INTO few_pairs SELECT (SELECT id FROM student LIMIT 1), 1, g FROM generate_series(1, 290) g;

--= parent_without_rows POINT_LOOKUP=empty RANGE_SCAN=empty UPDATE=empty DELETE=empty INSERT=no_rows
CREATE TABLE no_rows (id int PRIMARY KEY);
CREATE TABLE parent_without_rows (id serial PRIMARY KEY, of int NOT NULL REFERENCES no_rows, v text);

--= empty_child POINT_LOOKUP=empty RANGE_SCAN=empty UPDATE=empty
CREATE TABLE empty_child (id serial PRIMARY KEY, dept text NOT NULL, code int NOT NULL, who uuid NOT NULL REFERENCES student,
  friend uuid REFERENCES student, mood text, FOREIGN KEY (dept, code) REFERENCES course);
