-- Tables of kinds that the others do not have: partitions, inheritance, extensions' types, expressions, odd names, odd
-- types, sizes at their limits.

--= measurement_by_hash
CREATE TABLE measurement_by_hash (device uuid NOT NULL, at timestamptz NOT NULL, v float8, PRIMARY KEY (device, at))
  PARTITION BY HASH (device);
CREATE TABLE measurement_h0 PARTITION OF measurement_by_hash FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE measurement_h1 PARTITION OF measurement_by_hash FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO measurement_by_hash SELECT gen_random_uuid(), now(), g FROM generate_series(1, 300) g;

--= events_with_gaps
CREATE TABLE events_with_gaps (id bigserial, at date NOT NULL, v text NOT NULL, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
CREATE TABLE events_2024 PARTITION OF events_with_gaps FOR VALUES FROM ('2024-01-01') TO ('2024-07-01');
CREATE TABLE events_2026 PARTITION OF events_with_gaps FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');
INSERT INTO events_with_gaps (at, v) SELECT CASE WHEN g % 2 = 0 THEN '2024-03-01' ELSE '2026-01-15' END::date, 'x'
  FROM generate_series(1, 300) g;

--= regions_with_default
CREATE TABLE regions_with_default (id int, region text, v text, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
CREATE TABLE region_eu PARTITION OF regions_with_default FOR VALUES IN ('de', 'fr');
CREATE TABLE region_rest PARTITION OF regions_with_default DEFAULT;
INSERT INTO regions_with_default SELECT g, CASE WHEN g % 3 = 0 THEN 'de' ELSE 'us' END, 'x' FROM generate_series(1, 300) g;

--= two_levels
CREATE TABLE two_levels (tenant int NOT NULL, at timestamptz NOT NULL, n bigint NOT NULL, v text, PRIMARY KEY (tenant, at, n))
  PARTITION BY LIST (tenant);
CREATE TABLE two_levels_1 PARTITION OF two_levels FOR VALUES IN (1, 2) PARTITION BY RANGE (at);
CREATE TABLE two_levels_1_old PARTITION OF two_levels_1 FOR VALUES FROM (MINVALUE) TO ('2025-01-01');
CREATE TABLE two_levels_1_new PARTITION OF two_levels_1 FOR VALUES FROM ('2025-01-01') TO (MAXVALUE);
INSERT INTO two_levels SELECT 1 + g % 2, timestamptz '2024-06-01' + g * interval '1 day', g, 'x' FROM generate_series(1, 300) g;

--= by_expression POINT_LOOKUP=key RANGE_SCAN=key UPDATE=key DELETE=key
CREATE TABLE by_expression (id int NOT NULL, at timestamptz NOT NULL, v text) PARTITION BY RANGE (date_part('year', at AT TIME ZONE 'UTC'));
CREATE TABLE by_expression_24 PARTITION OF by_expression FOR VALUES FROM (2024) TO (2026);
INSERT INTO by_expression SELECT g, timestamptz '2024-06-01' + g * interval '1 hour', 'x' FROM generate_series(1, 300) g;

--= cities
CREATE TABLE cities (name text PRIMARY KEY, population real, elevation int);
CREATE TABLE capitals (state char(2) UNIQUE NOT NULL) INHERITS (cities);
INSERT INTO cities SELECT 'c' || g, g, g FROM generate_series(1, 300) g;
INSERT INTO capitals SELECT 'k' || g, g, g, chr(65 + g / 26) || chr(65 + g % 26) FROM generate_series(1, 30) g;

--= room_reservation
CREATE EXTENSION IF NOT EXISTS btree_gist;
CREATE TABLE room_reservation (id serial PRIMARY KEY, room int NOT NULL, during tstzrange NOT NULL, who text,
  EXCLUDE USING gist (room WITH =, during WITH &&));
INSERT INTO room_reservation (room, during) SELECT g, tstzrange(now(), now() + interval '1 hour') FROM generate_series(1, 300) g;

--= no_overlap INSERT=during
CREATE TABLE no_overlap (id serial PRIMARY KEY, during daterange NOT NULL, who text, EXCLUDE USING gist (during WITH &&));
INSERT INTO no_overlap (during, who) SELECT daterange(date '2024-01-01' + g, date '2024-01-02' + g), 'x' FROM generate_series(1, 300) g;

--= citext_login INSERT=email
CREATE EXTENSION IF NOT EXISTS citext;
CREATE TABLE citext_login (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), email citext NOT NULL UNIQUE,
  CHECK (email ~ '^[a-z0-9.]+@[a-z.]+$'), at timestamptz DEFAULT now(), note text);
INSERT INTO citext_login (email) SELECT 'u' || g || '@example.org' FROM generate_series(1, 300) g;

--= hstore_tags
CREATE EXTENSION IF NOT EXISTS hstore;
CREATE TABLE hstore_tags (id serial PRIMARY KEY, tags hstore NOT NULL, name text);
INSERT INTO hstore_tags (tags) SELECT hstore('k', g::text) FROM generate_series(1, 300) g;

--= ltree_path
CREATE EXTENSION IF NOT EXISTS ltree;
CREATE TABLE ltree_path (id serial PRIMARY KEY, path ltree NOT NULL, name text NOT NULL);
INSERT INTO ltree_path (path, name) SELECT ('a.b' || g)::ltree, 'n' FROM generate_series(1, 300) g;

--= ltree_key INSERT=path
CREATE TABLE ltree_key (path ltree PRIMARY KEY, name text NOT NULL);
INSERT INTO ltree_key SELECT ('a.b' || g)::ltree, 'n' FROM generate_series(1, 300) g;

--= lower_email
CREATE TABLE lower_email (id serial PRIMARY KEY, email text NOT NULL, v int);
CREATE UNIQUE INDEX ON lower_email (lower(email));
INSERT INTO lower_email (email) SELECT 'U' || g FROM generate_series(1, 300) g;

--= regex_code INSERT=code
CREATE TABLE regex_code (id serial PRIMARY KEY, code text NOT NULL UNIQUE CHECK (code ~ '^[A-Z]{3}-[0-9]{4}$'), note text);
INSERT INTO regex_code (code) SELECT 'ABC-' || to_char(g, 'FM0000') FROM generate_series(1, 300) g;

--= soft_deleted
CREATE TABLE soft_deleted (id serial PRIMARY KEY, slug varchar(100) NOT NULL, deleted_at timestamptz, title text NOT NULL);
CREATE UNIQUE INDEX ON soft_deleted (slug) WHERE deleted_at IS NULL;
INSERT INTO soft_deleted (slug, title) SELECT 's' || g, 't' FROM generate_series(1, 300) g;

--= ordered
CREATE TABLE ordered (id serial PRIMARY KEY, list int NOT NULL, place int NOT NULL, v text, UNIQUE (list, place)
  DEFERRABLE INITIALLY DEFERRED);
INSERT INTO ordered (list, place) SELECT 1 + g % 5, g FROM generate_series(1, 300) g;

--= identity_always
CREATE TABLE identity_always (n int GENERATED ALWAYS AS IDENTITY (START 1000 INCREMENT 7) PRIMARY KEY, v text NOT NULL);
INSERT INTO identity_always (v) SELECT 'x' FROM generate_series(1, 300);

--= inventory
CREATE TYPE inventory_item AS (name text, supplier int, price numeric);
CREATE TABLE inventory (id serial PRIMARY KEY, item inventory_item NOT NULL, parts inventory_item[], count int);
INSERT INTO inventory (item) SELECT ROW('x', g, 1.5)::inventory_item FROM generate_series(1, 300) g;

--= domains_of_domains
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE DOMAIN small_positive AS positive CHECK (VALUE < 1000) NOT NULL;
CREATE DOMAIN code AS varchar(12) CHECK (VALUE ~ '^[a-z]');
CREATE TABLE domains_of_domains (id bigserial PRIMARY KEY, n small_positive, c code, v text);
INSERT INTO domains_of_domains (n, c) SELECT g, 'c' || g FROM generate_series(1, 300) g;

--= validated
CREATE FUNCTION check_amount() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF NEW.amount > NEW.credit THEN RAISE EXCEPTION 'over the credit'; END IF; RETURN NEW; END $$;
CREATE TABLE validated (id serial PRIMARY KEY, amount numeric(8,2) NOT NULL, credit numeric(8,2) NOT NULL, note text NOT NULL);
CREATE TRIGGER validate BEFORE INSERT OR UPDATE ON validated FOR EACH ROW EXECUTE FUNCTION check_amount();
INSERT INTO validated (amount, credit, note) SELECT g, g + 10, 'x' FROM generate_series(1, 300) g;

--= logged_by_rule
CREATE TABLE rule_log (id int, at timestamptz);
CREATE TABLE logged_by_rule (id int PRIMARY KEY, v text NOT NULL);
INSERT INTO logged_by_rule SELECT g, 'x' FROM generate_series(1, 300) g;
CREATE RULE note_update AS ON UPDATE TO logged_by_rule DO ALSO INSERT INTO rule_log VALUES (OLD.id, now());

--= owned_rows
CREATE TABLE owned_rows (id serial PRIMARY KEY, owner text NOT NULL DEFAULT current_user, v text);
ALTER TABLE owned_rows ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON owned_rows USING (owner = current_user) WITH CHECK (owner = current_user);
INSERT INTO owned_rows (v) SELECT 'x' FROM generate_series(1, 300);

--= shown POINT_LOOKUP=key RANGE_SCAN=key UPDATE=key DELETE=key
CREATE TABLE behind_view (id serial PRIMARY KEY, title text NOT NULL, hidden boolean NOT NULL DEFAULT false);
INSERT INTO behind_view (title) SELECT 't' || g FROM generate_series(1, 300) g;
CREATE VIEW shown AS SELECT id, title FROM behind_view WHERE NOT hidden;

--= chicken DELETE=egg
CREATE TABLE egg (id int PRIMARY KEY, layer int);
CREATE TABLE chicken (id int PRIMARY KEY, hatched_from int NOT NULL REFERENCES egg DEFERRABLE INITIALLY DEFERRED, name text);
INSERT INTO egg SELECT g, g FROM generate_series(1, 300) g;
INSERT INTO chicken SELECT g, g, 'c' FROM generate_series(1, 300) g;
ALTER TABLE egg ADD FOREIGN KEY (layer) REFERENCES chicken DEFERRABLE INITIALLY DEFERRED;

--= "order"
CREATE TABLE "order" ("user" int NOT NULL, "group" text NOT NULL, "select" int, "Über Straße" text, "a""b" int,
  "from" timestamptz NOT NULL DEFAULT now(), PRIMARY KEY ("user"));
INSERT INTO "order" ("user", "group") SELECT g, 'g' FROM generate_series(1, 300) g;

--= "Größe ÄÖ"
CREATE TABLE "Größe ÄÖ" ("Schlüssel" text PRIMARY KEY, "Wert £" numeric(9,3) NOT NULL);
INSERT INTO "Größe ÄÖ" SELECT 'ß' || g, g FROM generate_series(1, 300) g;

--= odd_types
CREATE TABLE odd_types (id serial PRIMARY KEY, m money NOT NULL, b bit(5) NOT NULL, vb bit varying(9), i inet NOT NULL, c cidr,
  mac macaddr NOT NULL, ts tsvector, x xml, p point, box box, tz timetz NOT NULL, j jsonb NOT NULL, o oid, r int4range NOT NULL, n name,
  ch "char", sn pg_lsn);
INSERT INTO odd_types (m, b, i, mac, tz, j, r) SELECT g, B'10101', '10.0.0.1', '08:00:2b:01:02:03', '10:00+02', '{}', int4range(1, g)
  FROM generate_series(1, 300) g;

--= macaddr_key INSERT=mac
CREATE TABLE macaddr_key (mac macaddr PRIMARY KEY, v text NOT NULL);
INSERT INTO macaddr_key SELECT ('08:00:2b:01:' || lpad(to_hex(g / 256), 2, '0') || ':' || lpad(to_hex(g % 256), 2, '0'))::macaddr, 'x'
  FROM generate_series(1, 300) g;

--= bit_key INSERT=b
CREATE TABLE bit_key (b bit(16) PRIMARY KEY, v text);
INSERT INTO bit_key SELECT g::bit(16), 'x' FROM generate_series(1, 300) g;

--= json_checked
CREATE TABLE json_checked (id serial PRIMARY KEY, doc jsonb NOT NULL CHECK (jsonb_typeof(doc -> 'tags') = 'array'), v int);
INSERT INTO json_checked (doc) SELECT '{"tags": []}' FROM generate_series(1, 300);

--= padded_key
CREATE TABLE padded_key (code char(20) PRIMARY KEY, v text NOT NULL);
INSERT INTO padded_key SELECT 'k' || g, 'x' FROM generate_series(1, 300) g;

--= numeric_at_limits
CREATE TABLE numeric_at_limits (id serial PRIMARY KEY, a numeric(5,2) NOT NULL, b numeric(2,2) NOT NULL, c numeric(3,-2), d numeric(38,10));
INSERT INTO numeric_at_limits (a, b, c) SELECT 999.99, 0.99, 99900 FROM generate_series(1, 300);

--= smallint_full INSERT=ends
CREATE TABLE smallint_full (id smallint PRIMARY KEY, v text NOT NULL);
INSERT INTO smallint_full SELECT 32767 - g, 'x' FROM generate_series(0, 300) g;

--= smallint_sequence INSERT=setval
CREATE TABLE smallint_sequence (id smallserial PRIMARY KEY, v text NOT NULL);
INSERT INTO smallint_sequence SELECT g, 'x' FROM generate_series(1, 300) g;

--= many_columns
DO $$ BEGIN EXECUTE 'CREATE TABLE many_columns (id int PRIMARY KEY, ' ||
  (SELECT string_agg('c' || g || ' smallint', ', ') FROM generate_series(2, 1600) g) || ')'; END $$;
INSERT INTO many_columns (id) SELECT g FROM generate_series(1, 300) g;

--= computed UPDATE=width
CREATE TABLE computed (id serial PRIMARY KEY, width int NOT NULL, height int NOT NULL, area int GENERATED ALWAYS AS (width * height) STORED
  UNIQUE, label text GENERATED ALWAYS AS (width || 'x' || height) STORED);
INSERT INTO computed (width, height) SELECT g, 100000 FROM generate_series(1, 300) g;

--= no_key_at_all POINT_LOOKUP=key RANGE_SCAN=key UPDATE=key DELETE=key
CREATE TABLE no_key_at_all (at timestamptz NOT NULL, device text NOT NULL, v float8, tags text[] NOT NULL DEFAULT '{}');
INSERT INTO no_key_at_all SELECT now(), 'd', g FROM generate_series(1, 300) g;

--= overlapping_keys UPDATE=key
CREATE TABLE first_part (a int PRIMARY KEY);
CREATE TABLE second_part (b int PRIMARY KEY);
CREATE TABLE whole (a int REFERENCES first_part, b int REFERENCES second_part, PRIMARY KEY (a, b));
INSERT INTO first_part SELECT g FROM generate_series(1, 100) g;
INSERT INTO second_part SELECT g FROM generate_series(1, 100) g;
INSERT INTO whole SELECT a, b FROM first_part, second_part WHERE (a + b) % 2 = 0;
CREATE TABLE overlapping_keys (a int NOT NULL, b int NOT NULL, CONSTRAINT fk_a FOREIGN KEY (a) REFERENCES first_part,
  CONSTRAINT fk_b FOREIGN KEY (b) REFERENCES second_part, CONSTRAINT fk_c FOREIGN KEY (a, b) REFERENCES whole, PRIMARY KEY (a, b));
INSERT INTO overlapping_keys SELECT a, b FROM whole ORDER BY a, b LIMIT 200;

--= tenant_member UPDATE=key
CREATE TABLE tenant (id int PRIMARY KEY);
CREATE TABLE person (tenant_id int REFERENCES tenant, id int, PRIMARY KEY (tenant_id, id));
CREATE TABLE team (tenant_id int REFERENCES tenant, id text, PRIMARY KEY (tenant_id, id));
CREATE TABLE role (tenant_id int REFERENCES tenant, id int, PRIMARY KEY (tenant_id, id));
INSERT INTO tenant SELECT g FROM generate_series(1, 40) g;
INSERT INTO person SELECT t.id, 1000 * t.id + g FROM tenant t, generate_series(1, 30) g;
INSERT INTO team SELECT t.id, 'team ' || t.id || ' ' || g FROM tenant t, generate_series(1, 20) g WHERE t.id % 3 > 0;
INSERT INTO role SELECT t.id, 1000 * t.id + g FROM tenant t, generate_series(1, 3) g;
CREATE TABLE tenant_member (tenant_id int NOT NULL REFERENCES tenant, person_id int NOT NULL, team_id text NOT NULL,
  PRIMARY KEY (tenant_id, person_id, team_id), FOREIGN KEY (tenant_id, person_id) REFERENCES person,
  FOREIGN KEY (tenant_id, team_id) REFERENCES team);
INSERT INTO tenant_member SELECT p.tenant_id, p.id, t.id FROM person p JOIN team t USING (tenant_id) ORDER BY p.id LIMIT 300;

--= tenant_member_empty POINT_LOOKUP=empty RANGE_SCAN=empty UPDATE=empty
CREATE TABLE tenant_member_empty (LIKE tenant_member INCLUDING ALL, role_id int, note text,
  FOREIGN KEY (tenant_id, role_id) REFERENCES role, FOREIGN KEY (tenant_id, person_id) REFERENCES person,
  FOREIGN KEY (tenant_id, team_id) REFERENCES team);

--= tenant_ticket POINT_LOOKUP=empty RANGE_SCAN=empty UPDATE=empty
CREATE TABLE tenant_ticket (id serial PRIMARY KEY, tenant_id int NOT NULL REFERENCES tenant, person_id int NOT NULL,
  team_id text NOT NULL, boss_id int, note text, FOREIGN KEY (tenant_id, person_id) REFERENCES person,
  FOREIGN KEY (tenant_id, team_id) REFERENCES team, FOREIGN KEY (tenant_id, boss_id) REFERENCES person);

--= tenant_role INSERT="role_id"
CREATE TABLE tenant_role (tenant_id int NOT NULL, person_id int NOT NULL, team_id text NOT NULL, role_id int NOT NULL,
  note text, PRIMARY KEY (tenant_id, person_id, team_id), FOREIGN KEY (tenant_id, person_id) REFERENCES person,
  FOREIGN KEY (tenant_id, team_id) REFERENCES team, FOREIGN KEY (tenant_id, role_id) REFERENCES role);
INSERT INTO tenant_role SELECT DISTINCT ON (p.id, t.id) p.tenant_id, p.id, t.id, r.id FROM person p JOIN team t USING (tenant_id)
  JOIN role r USING (tenant_id) LIMIT 300;

--= three_of_a_tenant INSERT="tenant_id"
CREATE TABLE three_of_a_tenant (tenant_id int, person_id int, team_id text, role_id int, note text,
  PRIMARY KEY (tenant_id, person_id, team_id, role_id), FOREIGN KEY (tenant_id, person_id) REFERENCES person,
  FOREIGN KEY (tenant_id, team_id) REFERENCES team, FOREIGN KEY (tenant_id, role_id) REFERENCES role);
INSERT INTO three_of_a_tenant SELECT p.tenant_id, p.id, t.id, r.id FROM person p JOIN team t USING (tenant_id)
  JOIN role r USING (tenant_id) LIMIT 300;

--= tenants_apart POINT_LOOKUP=empty RANGE_SCAN=empty UPDATE=empty DELETE=empty INSERT="person_id"
CREATE TABLE lone (tenant_id int, id int, PRIMARY KEY (tenant_id, id));
INSERT INTO lone SELECT -g, g FROM generate_series(1, 200) g;
CREATE TABLE tenants_apart (id serial PRIMARY KEY, tenant_id int NOT NULL, person_id int NOT NULL, lone_id int NOT NULL,
  FOREIGN KEY (tenant_id, person_id) REFERENCES person, FOREIGN KEY (tenant_id, lone_id) REFERENCES lone);

--= synonym UPDATE=key
CREATE TABLE word (word varchar(40) PRIMARY KEY);
INSERT INTO word SELECT 'word ' || g FROM generate_series(1, 150) g;
CREATE TABLE synonym (a varchar(40) REFERENCES word, b varchar(40) REFERENCES word, PRIMARY KEY (a, b), CHECK (a <> b),
  CHECK (a < b COLLATE "C"));
INSERT INTO synonym SELECT 'word ' || g, 'word ' || g + 1 FROM generate_series(10, 98) g WHERE g % 10 < 9;
