-- Casts between types of Postgres's own, which only a superuser may make. Rerunnable.
CREATE SCHEMA IF NOT EXISTS snowsim_casts;
GRANT USAGE ON SCHEMA snowsim_casts TO PUBLIC;
CREATE OR REPLACE FUNCTION snowsim_casts.numeric_of(boolean) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$ SELECT $1::int::numeric $$;
CREATE OR REPLACE FUNCTION snowsim_casts.boolean_of(numeric) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT $1 <> 0 $$;
DO $$ BEGIN
  IF NOT EXISTS (SELECT 1 FROM pg_cast WHERE castsource = 'boolean'::regtype AND casttarget = 'numeric'::regtype) THEN
    CREATE CAST (boolean AS numeric) WITH FUNCTION snowsim_casts.numeric_of(boolean) AS ASSIGNMENT;
  END IF;
  IF NOT EXISTS (SELECT 1 FROM pg_cast WHERE castsource = 'numeric'::regtype AND casttarget = 'boolean'::regtype) THEN
    CREATE CAST (numeric AS boolean) WITH FUNCTION snowsim_casts.boolean_of(numeric) AS ASSIGNMENT;
  END IF;
END $$;
