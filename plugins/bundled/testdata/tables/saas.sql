-- Tables of hosted services and their tools, from memory of their public schemas: Supabase and Hasura, Prisma, Keycloak,
-- Temporal, Sentry.

--= auth.users
CREATE SCHEMA auth;
CREATE TABLE auth.users (instance_id uuid, id uuid NOT NULL PRIMARY KEY, aud varchar(255), role varchar(255), email varchar(255),
  encrypted_password varchar(255), email_confirmed_at timestamptz, raw_app_meta_data jsonb, is_super_admin boolean,
  phone text DEFAULT NULL UNIQUE, phone_change text DEFAULT '', confirmed_at timestamptz GENERATED ALWAYS AS
  (email_confirmed_at) STORED, email_change_confirm_status smallint DEFAULT 0,
  is_sso_user boolean NOT NULL DEFAULT false, created_at timestamptz,
  CONSTRAINT users_email_change_confirm_status_check CHECK (email_change_confirm_status >= 0 AND
    email_change_confirm_status <= 2));
CREATE UNIQUE INDEX users_email_partial_key ON auth.users (email) WHERE is_sso_user = false;
CREATE UNIQUE INDEX confirmation_token_idx ON auth.users (encrypted_password) WHERE encrypted_password !~ '^[0-9 ]*$';
INSERT INTO auth.users (id, email) SELECT gen_random_uuid(), 'u' || g || '@example.org' FROM generate_series(1, 1500) g;

--= auth.identities
CREATE TABLE auth.identities (provider_id text NOT NULL, user_id uuid NOT NULL REFERENCES auth.users ON DELETE CASCADE,
  identity_data jsonb NOT NULL, provider text NOT NULL, id uuid NOT NULL PRIMARY KEY DEFAULT gen_random_uuid(),
  email text GENERATED ALWAYS AS (lower(identity_data ->> 'email')) STORED, UNIQUE (provider_id, provider));
INSERT INTO auth.identities (provider_id, user_id, identity_data, provider)
  SELECT id::text, id, jsonb_build_object('email', email), 'email' FROM auth.users LIMIT 300;

--= auth.mfa_factors
CREATE TYPE auth.factor_type AS ENUM ('totp', 'webauthn');
CREATE TYPE auth.factor_status AS ENUM ('unverified', 'verified');
CREATE TABLE auth.mfa_factors (id uuid PRIMARY KEY, user_id uuid NOT NULL REFERENCES auth.users ON DELETE CASCADE,
  friendly_name text, factor_type auth.factor_type NOT NULL, status auth.factor_status NOT NULL, created_at timestamptz NOT NULL,
  secret text);
CREATE UNIQUE INDEX mfa_factors_user_friendly_name_unique ON auth.mfa_factors (friendly_name, user_id)
  WHERE TRIM(BOTH FROM friendly_name) <> '';
INSERT INTO auth.mfa_factors (id, user_id, friendly_name, factor_type, status, created_at)
  SELECT gen_random_uuid(), id, 'f', 'totp', 'verified', now() FROM auth.users LIMIT 300;

--= profiles
CREATE TABLE profiles (id uuid NOT NULL PRIMARY KEY REFERENCES auth.users ON DELETE CASCADE, updated_at timestamptz,
  username text UNIQUE, full_name text, CONSTRAINT username_length CHECK (char_length(username) >= 3));
ALTER TABLE profiles ENABLE ROW LEVEL SECURITY;
CREATE POLICY "Public profiles are viewable." ON profiles FOR SELECT USING (true);
INSERT INTO profiles (id, username) SELECT id, 'name' || row_number() OVER () FROM auth.users LIMIT 150;

--= hdb_scheduled_events
CREATE TABLE hdb_scheduled_events (id text DEFAULT gen_random_uuid() PRIMARY KEY, webhook_conf json NOT NULL,
  scheduled_time timestamptz NOT NULL, payload json, status text NOT NULL DEFAULT 'scheduled',
  tries int NOT NULL DEFAULT 0, created_at timestamptz DEFAULT now(), CONSTRAINT valid_status CHECK
  (status IN ('scheduled', 'locked', 'delivered', 'error', 'dead')));
INSERT INTO hdb_scheduled_events (webhook_conf, scheduled_time) SELECT '{}', now() FROM generate_series(1, 300);

--= "User" DELETE=Post_authorId_fkey
CREATE TYPE "Role" AS ENUM ('USER', 'ADMIN');
CREATE TABLE "User" (id text PRIMARY KEY, email text NOT NULL, name text, role "Role" NOT NULL DEFAULT 'USER',
  "createdAt" timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP, "updatedAt" timestamp(3) NOT NULL);
CREATE UNIQUE INDEX "User_email_key" ON "User" (email);
INSERT INTO "User" (id, email, "updatedAt") SELECT 'c' || g, g || '@example.org', now() FROM generate_series(1, 300) g;

--= "Post" DELETE=CategoryToPost
CREATE TABLE "Post" (id serial PRIMARY KEY, title varchar(255) NOT NULL, published boolean NOT NULL DEFAULT false,
  "authorId" text NOT NULL, "viewCount" int NOT NULL DEFAULT 0, CONSTRAINT "Post_authorId_fkey" FOREIGN KEY ("authorId")
  REFERENCES "User" (id) ON UPDATE CASCADE ON DELETE RESTRICT);
INSERT INTO "Post" (title, "authorId") SELECT 't' || g, 'c' || g FROM generate_series(1, 300) g;

--= "_CategoryToPost" UPDATE=key
CREATE TABLE "Category" (id serial PRIMARY KEY, name text NOT NULL);
INSERT INTO "Category" (name) SELECT 'c' || g FROM generate_series(1, 30) g;
CREATE TABLE "_CategoryToPost" ("A" int NOT NULL, "B" int NOT NULL,
  CONSTRAINT "_CategoryToPost_A_fkey" FOREIGN KEY ("A") REFERENCES "Category" (id) ON DELETE CASCADE ON UPDATE CASCADE,
  CONSTRAINT "_CategoryToPost_B_fkey" FOREIGN KEY ("B") REFERENCES "Post" (id) ON UPDATE CASCADE);
CREATE UNIQUE INDEX "_CategoryToPost_AB_unique" ON "_CategoryToPost" ("A", "B");
INSERT INTO "_CategoryToPost" SELECT 1 + g % 30, g FROM generate_series(1, 300) g;

--= "Session"
CREATE TABLE "Session" (id text PRIMARY KEY, "sessionToken" text NOT NULL UNIQUE, "userId" text NOT NULL REFERENCES "User"
  ON DELETE CASCADE ON UPDATE CASCADE, expires timestamp(3) NOT NULL);
INSERT INTO "Session" SELECT 's' || g, 'tok' || g, 'c' || g, now() FROM generate_series(1, 300) g;

--= _prisma_migrations
CREATE TABLE _prisma_migrations (id varchar(36) PRIMARY KEY, checksum varchar(64) NOT NULL, finished_at timestamptz,
  migration_name varchar(255) NOT NULL, logs text, started_at timestamptz NOT NULL DEFAULT now(),
  applied_steps_count int NOT NULL DEFAULT 0);
INSERT INTO _prisma_migrations (id, checksum, migration_name) SELECT gen_random_uuid(), md5(g::text), 'm' || g
  FROM generate_series(1, 300) g;

--= keycloak_role DELETE=composite_role
CREATE TABLE realm (id varchar(36) PRIMARY KEY, name varchar(255) UNIQUE, enabled boolean NOT NULL DEFAULT false);
INSERT INTO realm SELECT 'r' || g, 'realm ' || g FROM generate_series(1, 10) g;
CREATE TABLE keycloak_role (id varchar(36) NOT NULL PRIMARY KEY, client_realm_constraint varchar(255), client_role boolean NOT NULL
  DEFAULT false, description varchar(255), name varchar(255), realm_id varchar(255), client varchar(36),
  realm varchar(36) REFERENCES realm, CONSTRAINT "UK_J3RWUVD56ONTGSUHOGM184WW2-2" UNIQUE (name, client_realm_constraint));
INSERT INTO keycloak_role (id, name, client_realm_constraint, realm) SELECT 'role' || g, 'n' || g, 'c', 'r' || 1 + g % 10
  FROM generate_series(1, 300) g;

--= composite_role UPDATE=key
CREATE TABLE composite_role (composite varchar(36) NOT NULL REFERENCES keycloak_role, child_role varchar(36) NOT NULL
  REFERENCES keycloak_role, CONSTRAINT constraint_composite_role PRIMARY KEY (composite, child_role));
INSERT INTO composite_role SELECT 'role' || g, 'role' || g + 1 FROM generate_series(1, 290) g;

--= user_entity
CREATE TABLE user_entity (id varchar(36) NOT NULL PRIMARY KEY, email varchar(255), email_constraint varchar(255),
  enabled boolean NOT NULL DEFAULT false, username varchar(255), realm_id varchar(255), created_timestamp bigint,
  not_before int NOT NULL DEFAULT 0, CONSTRAINT uk_dykn684sl8up1crfei6eckhd7 UNIQUE (realm_id, email_constraint),
  CONSTRAINT uk_ru8tt6t700s9v50bu18ws5ha6 UNIQUE (realm_id, username));
INSERT INTO user_entity (id, email_constraint, username, realm_id) SELECT 'u' || g, 'e' || g, 'n' || g, 'r1'
  FROM generate_series(1, 300) g;

--= executions
CREATE TABLE executions (shard_id int NOT NULL, namespace_id bytea NOT NULL, workflow_id varchar(255) NOT NULL,
  run_id bytea NOT NULL, next_event_id bigint NOT NULL, last_write_version bigint NOT NULL, data bytea NOT NULL,
  data_encoding varchar(16) NOT NULL, state bytea NOT NULL, state_encoding varchar(16) NOT NULL,
  db_record_version bigint NOT NULL DEFAULT 0, PRIMARY KEY (shard_id, namespace_id, workflow_id, run_id));
INSERT INTO executions SELECT g % 4, decode(md5('n'), 'hex'), 'w' || g, decode(md5(g::text), 'hex'), g, g, '\x00', 'Proto3',
  '\x00', 'Proto3' FROM generate_series(1, 300) g;

--= transfer_tasks
CREATE TABLE transfer_tasks (shard_id int NOT NULL, task_id bigint NOT NULL, data bytea NOT NULL, data_encoding varchar(16)
  NOT NULL, PRIMARY KEY (shard_id, task_id));
INSERT INTO transfer_tasks SELECT g % 4, g, '\x01', 'Proto3' FROM generate_series(1, 300) g;

--= sentry_groupedmessage
CREATE TABLE sentry_project (id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, slug varchar(50));
INSERT INTO sentry_project (slug) SELECT 'p' || g FROM generate_series(1, 20) g;
CREATE TABLE sentry_groupedmessage (id bigserial PRIMARY KEY, logger varchar(64) NOT NULL, level int NOT NULL CHECK (level >= 0),
  message text NOT NULL, status int NOT NULL CHECK (status >= 0), times_seen int NOT NULL CHECK (times_seen >= 0),
  last_seen timestamptz NOT NULL, data text, project_id bigint REFERENCES sentry_project DEFERRABLE INITIALLY DEFERRED,
  short_id bigint, UNIQUE (project_id, short_id));
INSERT INTO sentry_groupedmessage (logger, level, message, status, times_seen, last_seen, project_id, short_id)
  SELECT 'x', 40, 'm', 0, g, now(), 1 + g % 20, g FROM generate_series(1, 300) g;
