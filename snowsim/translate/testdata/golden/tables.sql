--! The three types of tables.

CREATE TABLE s (id INT PRIMARY KEY, v VARCHAR(10), n NUMBER(10,3), f FLOAT, b BOOLEAN, d DATE, t TIME, ts TIMESTAMP, ltz TIMESTAMP_LTZ(3), tz TIMESTAMP_TZ, va VARIANT, o OBJECT, a ARRAY, bi BINARY) COMMENT = 'standard'
----
status text
Table S successfully created.

CREATE TABLE s (id INT)
----
error 002002 (42710): SQL compilation error:\nObject 'LOADSTONE.PUBLIC.S' already exists.

CREATE TABLE IF NOT EXISTS s (id INT)
----
status text
S already exists, statement succeeded.

INSERT INTO s (id) VALUES (1), (1)
----
number of rows fixed(38,0)
2

INSERT INTO s (id, d, t, ts, ltz, tz, bi) SELECT 2, '2024-02-29', '12:34:56', '2024-02-29 12:34:56.789', '2024-02-29 12:34:56 +0200', '2024-02-29 12:34:56.789 -05:30'::TIMESTAMP_TZ, 'CAFE'::BINARY
----
number of rows fixed(38,0)
1

INSERT INTO s (id, va, o, a) SELECT 3, PARSE_JSON('{"k": {"n": 5, "s": "x"}}'), PARSE_JSON('{"a": 1}'), PARSE_JSON('[1, "two"]')
----
number of rows fixed(38,0)
1

SELECT d, t, ts, ltz, tz, bi FROM s WHERE id = 2
----
D date | T time | TS timestamp_ntz | LTZ timestamp_ltz | TZ timestamp_tz | BI binary
2024-02-29 | 12:34:56 | 2024-02-29 12:34:56.789 | 2024-02-29 10:34:56+00 | ("2024-02-29 18:04:56.789+00",-330) | CAFE

SELECT va, o, a, va:k::STRING AS k, o:"a"::INT AS n FROM s WHERE id = 3
----
VA variant | O variant | A variant | K text | N fixed(38,0)
{"k": {"n": 5, "s": "x"}} | {"a": 1} | [1, "two"] | {"n": 5, "s": "x"} | 1

SELECT tz::TIMESTAMP_NTZ AS local, tz::TIMESTAMP_LTZ AS moment, TO_VARCHAR(tz) AS text FROM s WHERE id = 2
----
LOCAL timestamp_ntz | MOMENT timestamp_ltz | TEXT text
2024-02-29 12:34:56.789 | 2024-02-29 18:04:56.789+00 | 2024-02-29 12:34:56.789 -0530

CREATE HYBRID TABLE nokey (id INT)
----
error 391420 (0A000): SQL compilation error:\nHybrid table 'NOKEY' must have a primary key.

CREATE HYBRID TABLE clustered (id INT PRIMARY KEY) CLUSTER BY (id)
----
error 391420 (0A000): SQL compilation error:\nClustering keys are not supported on hybrid tables.

CREATE HYBRID TABLE h (id INT AUTOINCREMENT, email VARCHAR(50) UNIQUE, a INT, b INT, PRIMARY KEY (id), INDEX by_a (a, b) INCLUDE (email))
----
status text
Table H successfully created.

INSERT INTO h (email, a, b) VALUES ('x', 1, 2), ('y', 1, 3)
----
number of rows fixed(38,0)
2

SELECT * FROM h ORDER BY id
----
ID fixed(38,0) | EMAIL text | A fixed(38,0) | B fixed(38,0)
1 | x | 1 | 2
2 | y | 1 | 3

INSERT INTO h (id, email) VALUES (1, 'z')
----
error 200001 (22000): A primary key already exists.

INSERT INTO h (id, email) VALUES (11, 'x')
----
error 200001 (22000): Duplicate key value violates unique constraint "H_EMAIL_key"

INSERT INTO h (id) VALUES (NULL)
----
error 100072 (22000): NULL result in a non-nullable column

UPDATE h SET id = 2 WHERE id = 1
----
error 200001 (22000): A primary key already exists.

SHOW INDEXES IN TABLE h
----
created_on timestamp_ltz | name text | is_unique text | columns text | included_columns text | table text | database_name text | schema_name text | owner text | owner_role_type text | status text
2026-03-01 12:00:00+00 | BY_A | N | [A, B] | [EMAIL] | H | LOADSTONE | PUBLIC | SYSADMIN | ROLE | ACTIVE
2026-03-01 12:00:00+00 | SYS_CONSTRAINT_h_email | Y | [EMAIL] | [] | H | LOADSTONE | PUBLIC |  | ROLE | ACTIVE
2026-03-01 12:00:00+00 | SYS_CONSTRAINT_h_id | Y | [ID] | [] | H | LOADSTONE | PUBLIC |  | ROLE | ACTIVE

SHOW INDEXES
----
created_on timestamp_ltz | name text | is_unique text | columns text | included_columns text | table text | database_name text | schema_name text | owner text | owner_role_type text | status text
2026-03-01 12:00:00+00 | BY_A | N | [A, B] | [EMAIL] | H | LOADSTONE | PUBLIC | SYSADMIN | ROLE | ACTIVE
2026-03-01 12:00:00+00 | SYS_CONSTRAINT_h_email | Y | [EMAIL] | [] | H | LOADSTONE | PUBLIC |  | ROLE | ACTIVE
2026-03-01 12:00:00+00 | SYS_CONSTRAINT_h_id | Y | [ID] | [] | H | LOADSTONE | PUBLIC |  | ROLE | ACTIVE

CREATE INTERACTIVE TABLE i AS SELECT * FROM h
----
error 001003 (42000): SQL compilation error:\nInteractive table 'I' must have a CLUSTER BY clause.

CREATE INTERACTIVE TABLE i CLUSTER BY (a, id) AS SELECT id, a, email FROM h
----
status text
Table I successfully created.

CREATE OR REPLACE INTERACTIVE TABLE i2 (id INT, at TIMESTAMP_NTZ) CLUSTER BY (at, id) COMMENT = 'by hand'
----
status text
Table I2 successfully created.

SELECT * FROM i ORDER BY id
----
ID fixed(38,0) | A fixed(38,0) | EMAIL text
1 | 1 | x
2 | 1 | y

INSERT INTO i VALUES (100, 7, 'n')
----
number of rows fixed(38,0)
1

SELECT * FROM i
----
ID fixed(38,0) | A fixed(38,0) | EMAIL text
1 | 1 | x
2 | 1 | y
100 | 7 | n

UPDATE i SET a = 1
----
error 001422 (42601): SQL compilation error:\nUPDATE is not supported on interactive table 'I'. Interactive tables take INSERT and INSERT OVERWRITE only.

DELETE FROM i WHERE id = 1
----
error 001422 (42601): SQL compilation error:\nDELETE is not supported on interactive table 'I'. Interactive tables take INSERT and INSERT OVERWRITE only.

SHOW TABLES LIKE 'S' IN SCHEMA loadstone.public
----
created_on timestamp_ltz | name text | database_name text | schema_name text | kind text | comment text | cluster_by text | rows fixed(38,0) | bytes fixed(38,0) | owner text | retention_time text | automatic_clustering text | change_tracking text | search_optimization text | search_optimization_progress text | search_optimization_bytes text | is_external text | enable_schema_evolution text | owner_role_type text | is_event text | budget text | is_hybrid text | is_iceberg text | is_dynamic text | is_immutable text | is_interactive text
2026-03-01 12:00:00+00 | S | LOADSTONE | PUBLIC | TABLE | standard |  | 4 | … | SYSADMIN | 1 | OFF | OFF | OFF | NULL | NULL | N | N | ROLE | N | NULL | N | N | N | N | N

CREATE TABLE c CLUSTER BY (a) AS SELECT id, a, COUNT(*) OVER () AS n, 'x' AS text, NULL AS nothing, 1.50 AS dec, TRUE AS yes FROM h
----
status text
Table C successfully created.

ALTER TABLE c ADD COLUMN more VARCHAR(5)
----
status text
Statement executed successfully.

ALTER TABLE c RENAME COLUMN n TO renamed
----
error 000002 (0A000): Unsupported feature 'ALTER TABLE … RENAME'. It is not simulated: docs/guides/snowflake-stand-in.md lists the SQL that the stand-in understands.

ALTER TABLE c CLUSTER BY (id)
----
error 000002 (0A000): Unsupported feature 'ALTER TABLE … CLUSTER'. It is not simulated: docs/guides/snowflake-stand-in.md lists the SQL that the stand-in understands.

ALTER TABLE c ADD SEARCH OPTIMIZATION ON EQUALITY(id, text)
----
status text
Statement executed successfully.

ALTER TABLE c DROP COLUMN yes
----
status text
Statement executed successfully.

COMMENT ON TABLE s IS 'said so'
----
status text
Statement executed successfully.

ALTER TABLE c RENAME TO c2
----
status text
Statement executed successfully.

SHOW TABLES
----
created_on timestamp_ltz | name text | database_name text | schema_name text | kind text | comment text | cluster_by text | rows fixed(38,0) | bytes fixed(38,0) | owner text | retention_time text | automatic_clustering text | change_tracking text | search_optimization text | search_optimization_progress text | search_optimization_bytes text | is_external text | enable_schema_evolution text | owner_role_type text | is_event text | budget text | is_hybrid text | is_iceberg text | is_dynamic text | is_immutable text | is_interactive text
2026-03-01 12:00:00+00 | C2 | LOADSTONE | PUBLIC | TABLE |  | LINEAR(a) | 2 | … | SYSADMIN | 1 | ON | OFF | ON | NULL | NULL | N | N | ROLE | N | NULL | N | N | N | N | N
2026-03-01 12:00:00+00 | H | LOADSTONE | PUBLIC | TABLE |  |  | 2 | … | SYSADMIN | 1 | OFF | OFF | OFF | NULL | NULL | N | N | ROLE | N | NULL | Y | N | N | N | N
2026-03-01 12:00:00+00 | I | LOADSTONE | PUBLIC | TABLE |  | LINEAR(a,id) | 3 | … | SYSADMIN | 1 | ON | OFF | OFF | NULL | NULL | N | N | ROLE | N | NULL | N | N | N | N | Y
2026-03-01 12:00:00+00 | I2 | LOADSTONE | PUBLIC | TABLE | by hand | LINEAR(at,id) | 0 | … | SYSADMIN | 1 | ON | OFF | OFF | NULL | NULL | N | N | ROLE | N | NULL | N | N | N | N | Y
2026-03-01 12:00:00+00 | S | LOADSTONE | PUBLIC | TABLE | said so |  | 4 | … | SYSADMIN | 1 | OFF | OFF | OFF | NULL | NULL | N | N | ROLE | N | NULL | N | N | N | N | N

SELECT * FROM c
----
error 002003 (42S02): SQL compilation error:\nObject 'C' does not exist or not authorized.

SHOW PRIMARY KEYS IN TABLE h
----
created_on timestamp_ltz | database_name text | schema_name text | table_name text | column_name text | key_sequence fixed(9,0) | constraint_name text | rely text | comment text
2026-03-01 12:00:00+00 | LOADSTONE | PUBLIC | H | ID | 1 | SYS_CONSTRAINT_h_id | false | NULL

SHOW UNIQUE KEYS IN TABLE h
----
created_on timestamp_ltz | database_name text | schema_name text | table_name text | column_name text | key_sequence fixed(9,0) | constraint_name text | rely text | comment text
2026-03-01 12:00:00+00 | LOADSTONE | PUBLIC | H | EMAIL | 1 | SYS_CONSTRAINT_h_email | false | NULL

SHOW IMPORTED KEYS IN TABLE h
----
created_on timestamp_ltz | pk_database_name text | pk_schema_name text | pk_table_name text | pk_column_name text | fk_database_name text | fk_schema_name text | fk_table_name text | fk_column_name text | key_sequence fixed(9,0) | update_rule text | delete_rule text | fk_name text | pk_name text | deferrability text | rely text | comment text

SELECT table_name, table_type, clustering_key, row_count, comment, is_hybrid, is_interactive FROM information_schema.tables WHERE table_schema = 'PUBLIC' ORDER BY table_name
----
TABLE_NAME text | TABLE_TYPE text | CLUSTERING_KEY text | ROW_COUNT fixed(38,0) | COMMENT text | IS_HYBRID text | IS_INTERACTIVE text
C2 | BASE TABLE | LINEAR(a) | 2 | NULL | NO | NO
H | BASE TABLE | NULL | 2 | NULL | YES | NO
I | BASE TABLE | LINEAR(a,id) | 3 | NULL | NO | YES
I2 | BASE TABLE | LINEAR(at,id) | 0 | by hand | NO | YES
S | BASE TABLE | NULL | 4 | said so | NO | NO

SELECT column_name, ordinal_position, column_default, is_nullable, data_type, character_maximum_length, numeric_precision, numeric_scale, is_identity FROM loadstone.information_schema.columns WHERE table_name = 'H' ORDER BY 2
----
COLUMN_NAME text | ORDINAL_POSITION fixed(9,0) | COLUMN_DEFAULT text | IS_NULLABLE text | DATA_TYPE text | CHARACTER_MAXIMUM_LENGTH fixed(9,0) | NUMERIC_PRECISION fixed(9,0) | NUMERIC_SCALE fixed(9,0) | IS_IDENTITY text
ID | 1 | NULL | NO | NUMBER | NULL | 38 | 0 | YES
EMAIL | 2 | NULL | YES | TEXT | 50 | NULL | NULL | NO
A | 3 | NULL | YES | NUMBER | NULL | 38 | 0 | NO
B | 4 | NULL | YES | NUMBER | NULL | 38 | 0 | NO

SELECT COUNT(*) FROM s
----
COUNT(*) fixed(38,0)
4

CREATE TABLE bad (id INT, id INT)
----
error 002025 (42S21): SQL compilation error:\nduplicate column name 'ID'

CREATE TABLE bad (id GEOGRAPHY)
----
error 001003 (42000): SQL compilation error:\nUnsupported data type 'GEOGRAPHY'.

CREATE TABLE bad (id NUMBER(39,0))
----
error 001003 (42000): SQL compilation error:\nUnsupported data type 'NUMBER(39)'.

CREATE TABLE bad (id INT, PRIMARY KEY (nope))
----
error 000904 (42000): SQL compilation error:\ninvalid identifier 'NOPE'

CREATE TABLE t (x INT)
----
status text
Table T successfully created.

--! CREATE OR ALTER TABLE, and rows from JSON.

CREATE OR ALTER TABLE altered (A INT NOT NULL, B VARCHAR, C FLOAT) COMMENT = 'one'
----
status text
Table ALTERED successfully created.

INSERT INTO altered (A, B, C) SELECT f.VALUE:a::NUMBER(38,0), f.VALUE:b::VARCHAR, f.VALUE:c::FLOAT FROM TABLE(FLATTEN(INPUT => PARSE_JSON('[{"a": 1, "b": "x", "c": 0.1}, {"a": 2, "b": null}]'))) f
----
number of rows fixed(38,0)
2

CREATE OR ALTER TABLE altered (A INT, B VARCHAR, D VARIANT) COMMENT = 'two'
----
status text
Statement executed successfully.

SELECT A, B, D FROM altered ORDER BY A
----
A fixed(38,0) | B text | D variant
1 | x | NULL
2 | NULL | NULL

CREATE OR ALTER TABLE altered (A INT, B VARCHAR, D VARIANT) COMMENT = 'two'
----
status text
Statement executed successfully.

CREATE OR ALTER TABLE altered (E INT, A INT, B VARCHAR, D VARIANT)
----
error 391420 (0A000): SQL compilation error:\nCREATE OR ALTER TABLE: a new column stands before 'D'; new ones come last.

CREATE OR ALTER TABLE altered (A VARCHAR, B VARCHAR, D VARIANT)
----
error 000002 (0A000): Unsupported feature 'CREATE OR ALTER TABLE that changes the type of a column'. It is not simulated: docs/guides/snowflake-stand-in.md lists the SQL that the stand-in understands.

CREATE OR ALTER HYBRID TABLE altered (A INT PRIMARY KEY)
----
error 000002 (0A000): Unsupported feature 'CREATE OR ALTER HYBRID'. It is not simulated: docs/guides/snowflake-stand-in.md lists the SQL that the stand-in understands.

CREATE OR ALTER VIEW altered AS SELECT 1 AS A
----
error 000002 (0A000): Unsupported feature 'CREATE OR ALTER VIEW'. It is not simulated: docs/guides/snowflake-stand-in.md lists the SQL that the stand-in understands.

SELECT COMMENT FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_NAME = 'ALTERED'
----
COMMENT text
two

SELECT f.INDEX, f.PATH FROM TABLE(FLATTEN(PARSE_JSON('[true]'))) f
----
INDEX fixed(38,0) | PATH text
0 | [0]

SELECT f.VALUE FROM TABLE(FLATTEN(INPUT => PARSE_JSON('{"a": 1}'), OUTER => TRUE)) f
----
error 000002 (0A000): Unsupported feature 'FLATTEN with more than INPUT'. It is not simulated: docs/guides/snowflake-stand-in.md lists the SQL that the stand-in understands.

