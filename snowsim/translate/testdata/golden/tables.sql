--! The three types of tables.

CREATE TABLE s (id INT PRIMARY KEY, v VARCHAR(10) NOT NULL DEFAULT 'd' COMMENT 'note', n NUMBER(10,3), f FLOAT, b BOOLEAN, d DATE, t TIME, ts TIMESTAMP, ltz TIMESTAMP_LTZ(3), tz TIMESTAMP_TZ, va VARIANT, o OBJECT, a ARRAY, bi BINARY) COMMENT = 'standard'
----
status text
Table S successfully created.

DESCRIBE TABLE s
----
name text | type text | kind text | null? text | default text | primary key text | unique key text | check text | expression text | comment text | policy name text | privacy domain text
ID | NUMBER(38,0) | COLUMN | N | NULL | Y | N | NULL | NULL | NULL | NULL | NULL
V | VARCHAR(10) | COLUMN | N | 'd' | N | N | NULL | NULL | note | NULL | NULL
N | NUMBER(10,3) | COLUMN | Y | NULL | N | N | NULL | NULL | NULL | NULL | NULL
F | FLOAT | COLUMN | Y | NULL | N | N | NULL | NULL | NULL | NULL | NULL
B | BOOLEAN | COLUMN | Y | NULL | N | N | NULL | NULL | NULL | NULL | NULL
D | DATE | COLUMN | Y | NULL | N | N | NULL | NULL | NULL | NULL | NULL
T | TIME(9) | COLUMN | Y | NULL | N | N | NULL | NULL | NULL | NULL | NULL
TS | TIMESTAMP_NTZ(9) | COLUMN | Y | NULL | N | N | NULL | NULL | NULL | NULL | NULL
LTZ | TIMESTAMP_LTZ(3) | COLUMN | Y | NULL | N | N | NULL | NULL | NULL | NULL | NULL
TZ | TIMESTAMP_TZ(9) | COLUMN | Y | NULL | N | N | NULL | NULL | NULL | NULL | NULL
VA | VARIANT | COLUMN | Y | NULL | N | N | NULL | NULL | NULL | NULL | NULL
O | OBJECT | COLUMN | Y | NULL | N | N | NULL | NULL | NULL | NULL | NULL
A | ARRAY | COLUMN | Y | NULL | N | N | NULL | NULL | NULL | NULL | NULL
BI | BINARY(8388608) | COLUMN | Y | NULL | N | N | NULL | NULL | NULL | NULL | NULL

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

INSERT INTO s (id, d, t, ts, ltz, tz, bi) SELECT 2, '2024-02-29', '12:34:56', '2024-02-29 12:34:56.789', '2024-02-29 12:34:56 +0200', '2024-02-29 12:34:56.789 -05:30'::TIMESTAMP_TZ, TO_BINARY('CAFE')
----
number of rows fixed(38,0)
1

INSERT INTO s (id, va, o, a) SELECT 3, PARSE_JSON('{"k": {"n": 5, "s": "x"}}'), OBJECT_CONSTRUCT('a', 1, 'b', NULL), ARRAY_CONSTRUCT(1, 'two')
----
number of rows fixed(38,0)
1

SELECT d, t, ts, ltz, tz, bi FROM s WHERE id = 2
----
D date | T time | TS timestamp_ntz | LTZ timestamp_ltz | TZ timestamp_tz | BI binary
2024-02-29 | 12:34:56 | 2024-02-29 12:34:56.789 | 2024-02-29 10:34:56+00 | ("2024-02-29 18:04:56.789+00",-330) | CAFE

SELECT va, o, a, va:k.n + 1 AS n, va:k.s::STRING AS s, va:k:n::INT AS i, a[1]::STRING AS two, va['k']['s'] AS js, ARRAY_SIZE(a) AS size FROM s WHERE va:k.n = 5 AND va:k.s = 'x'
----
VA variant | O variant | A variant | N fixed | S text | I fixed(38,0) | TWO text | JS variant | SIZE fixed(38,0)
{"k": {"n": 5, "s": "x"}} | {"a": 1} | [1, "two"] | 6 | x | 5 | two | "x" | 2

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

CREATE HYBRID TABLE h (id INT AUTOINCREMENT START 10 INCREMENT 5, email VARCHAR(50) UNIQUE, a INT, b INT, CONSTRAINT pk PRIMARY KEY (id), INDEX by_a (a, b) INCLUDE (email))
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
10 | x | 1 | 2
15 | y | 1 | 3

INSERT INTO h (id, email) VALUES (10, 'z')
----
error 200001 (22000): A primary key already exists.

INSERT INTO h (id, email) VALUES (11, 'x')
----
error 200001 (22000): Duplicate key value violates unique constraint "H_EMAIL_key"

INSERT INTO h (id) VALUES (NULL)
----
error 100072 (22000): NULL result in a non-nullable column

UPDATE h SET id = 15 WHERE id = 10
----
error 200001 (22000): A primary key already exists.

SHOW INDEXES IN TABLE h
----
created_on timestamp_ltz | name text | is_unique text | columns text | included_columns text | table text | database_name text | schema_name text | owner text | owner_role_type text | status text
2026-03-01 12:00:00+00 | BY_A | N | [A, B] | [EMAIL] | H | LOADSTONE | PUBLIC | SYSADMIN | ROLE | ACTIVE
2026-03-01 12:00:00+00 | PK | Y | [ID] | [] | H | LOADSTONE | PUBLIC |  | ROLE | ACTIVE
2026-03-01 12:00:00+00 | SYS_CONSTRAINT_h_email | Y | [EMAIL] | [] | H | LOADSTONE | PUBLIC |  | ROLE | ACTIVE

SHOW HYBRID TABLES
----
created_on timestamp_ltz | name text | database_name text | schema_name text | owner text | rows fixed(38,0) | bytes fixed(38,0) | comment text | owner_role_type text
2026-03-01 12:00:00+00 | H | LOADSTONE | PUBLIC | SYSADMIN | 2 | … |  | ROLE

CREATE INDEX by_b ON h (b)
----
status text
Statement executed successfully.

DROP INDEX h.by_a
----
status text
BY_A successfully dropped.

SELECT name, columns FROM TABLE(RESULT_SCAN(LAST_QUERY_ID()))
----
error 000709 (02000): Statement 01b00000-0000-0000-0000-000000000023 not found, or its result is not one of SHOW or DESCRIBE.

SHOW INDEXES
----
created_on timestamp_ltz | name text | is_unique text | columns text | included_columns text | table text | database_name text | schema_name text | owner text | owner_role_type text | status text
2026-03-01 12:00:00+00 | BY_B | N | [B] | [] | H | LOADSTONE | PUBLIC | SYSADMIN | ROLE | ACTIVE
2026-03-01 12:00:00+00 | PK | Y | [ID] | [] | H | LOADSTONE | PUBLIC |  | ROLE | ACTIVE
2026-03-01 12:00:00+00 | SYS_CONSTRAINT_h_email | Y | [EMAIL] | [] | H | LOADSTONE | PUBLIC |  | ROLE | ACTIVE

SELECT "name", "is_unique" FROM TABLE(RESULT_SCAN(LAST_QUERY_ID())) WHERE "name" LIKE 'BY%'
----
name text | is_unique text
BY_B | N

CREATE INTERACTIVE TABLE i AS SELECT * FROM h
----
error 001003 (42000): SQL compilation error:\nInteractive table 'I' must have a CLUSTER BY clause.

CREATE INTERACTIVE TABLE i CLUSTER BY (a, id) AS SELECT id, a, email FROM h
----
status text
Table I successfully created.

CREATE OR REPLACE INTERACTIVE TABLE i2 (id INT, at TIMESTAMP_NTZ) CLUSTER BY (DATE_TRUNC('day', at), id) COMMENT = 'by hand'
----
status text
Table I2 successfully created.

CREATE INTERACTIVE TABLE i3 CLUSTER BY (id) TARGET_LAG = '20 minutes' WAREHOUSE = wh AS SELECT id FROM h
----
status text
Table I3 successfully created.

CREATE INTERACTIVE TABLE i4 CLUSTER BY (id) TARGET_LAG = 'soon' WAREHOUSE = wh AS SELECT id FROM h
----
error 001003 (42000): SQL compilation error:\nInvalid value 'soon' for TARGET_LAG.

SELECT * FROM i ORDER BY id
----
ID fixed(38,0) | A fixed(38,0) | EMAIL text
10 | 1 | x
15 | 1 | y

INSERT INTO i VALUES (100, 7, 'n')
----
number of rows fixed(38,0)
1

INSERT OVERWRITE INTO i SELECT id, a, email FROM h WHERE id = 15
----
number of rows fixed(38,0)
1

SELECT * FROM i
----
ID fixed(38,0) | A fixed(38,0) | EMAIL text
15 | 1 | y

UPDATE i SET a = 1
----
error 001422 (42601): SQL compilation error:\nUPDATE is not supported on interactive table 'I'. Interactive tables take INSERT and INSERT OVERWRITE only.

DELETE FROM i WHERE id = 1
----
error 001422 (42601): SQL compilation error:\nDELETE is not supported on interactive table 'I'. Interactive tables take INSERT and INSERT OVERWRITE only.

MERGE INTO i USING h ON i.id = h.id WHEN MATCHED THEN DELETE
----
error 001422 (42601): SQL compilation error:\nMERGE is not supported on interactive table 'I'. Interactive tables take INSERT and INSERT OVERWRITE only.

TRUNCATE TABLE i
----
error 001422 (42601): SQL compilation error:\nTRUNCATE is not supported on interactive table 'I'.

SHOW INTERACTIVE TABLES
----
created_on timestamp_ltz | name text | database_name text | schema_name text | cluster_by text | rows fixed(38,0) | bytes fixed(38,0) | owner text | target_lag text | warehouse text | comment text | owner_role_type text
2026-03-01 12:00:00+00 | I | LOADSTONE | PUBLIC | LINEAR(a,id) | 1 | … | SYSADMIN |  |  |  | ROLE
2026-03-01 12:00:00+00 | I2 | LOADSTONE | PUBLIC | LINEAR(DATE_TRUNC('day',at),id) | 0 | … | SYSADMIN |  |  | by hand | ROLE
2026-03-01 12:00:00+00 | I3 | LOADSTONE | PUBLIC | LINEAR(id) | 2 | … | SYSADMIN | 20 minutes | WH |  | ROLE

SHOW TABLES LIKE 'S' IN SCHEMA loadstone.public
----
created_on timestamp_ltz | name text | database_name text | schema_name text | kind text | comment text | cluster_by text | rows fixed(38,0) | bytes fixed(38,0) | owner text | retention_time text | automatic_clustering text | change_tracking text | search_optimization text | search_optimization_progress text | search_optimization_bytes text | is_external text | enable_schema_evolution text | owner_role_type text | is_event text | budget text | is_hybrid text | is_iceberg text | is_dynamic text | is_immutable text | is_interactive text
2026-03-01 12:00:00+00 | S | LOADSTONE | PUBLIC | TABLE | standard |  | 4 | … | SYSADMIN | 1 | OFF | OFF | OFF | NULL | NULL | N | N | ROLE | N | NULL | N | N | N | N | N

CREATE TABLE c CLUSTER BY (a) AS SELECT id, a, COUNT(*) OVER () AS n, 'x' AS text, NULL AS nothing, 1.50 AS dec, TRUE AS yes FROM h
----
status text
Table C successfully created.

DESC TABLE c
----
name text | type text | kind text | null? text | default text | primary key text | unique key text | check text | expression text | comment text | policy name text | privacy domain text
ID | NUMBER(38,0) | COLUMN | Y | NULL | N | N | NULL | NULL | NULL | NULL | NULL
A | NUMBER(38,0) | COLUMN | Y | NULL | N | N | NULL | NULL | NULL | NULL | NULL
N | NUMBER(38,0) | COLUMN | Y | NULL | N | N | NULL | NULL | NULL | NULL | NULL
TEXT | VARCHAR(16777216) | COLUMN | Y | NULL | N | N | NULL | NULL | NULL | NULL | NULL
NOTHING | VARCHAR(16777216) | COLUMN | Y | NULL | N | N | NULL | NULL | NULL | NULL | NULL
DEC | NUMBER(38,6) | COLUMN | Y | NULL | N | N | NULL | NULL | NULL | NULL | NULL
YES | BOOLEAN | COLUMN | Y | NULL | N | N | NULL | NULL | NULL | NULL | NULL

CREATE TABLE l LIKE s
----
status text
Table L successfully created.

SELECT COUNT(*) FROM l
----
COUNT(*) fixed(38,0)
0

ALTER TABLE c ADD COLUMN more VARCHAR(5)
----
status text
Statement executed successfully.

ALTER TABLE c RENAME COLUMN n TO renamed
----
error 000002 (0A000): Unsupported feature 'ALTER TABLE … RENAME'. It is not simulated: docs/snowflake.md lists the SQL that the stand-in understands.

ALTER TABLE c CLUSTER BY (id)
----
error 000002 (0A000): Unsupported feature 'ALTER TABLE … CLUSTER'. It is not simulated: docs/snowflake.md lists the SQL that the stand-in understands.

ALTER TABLE c SET COMMENT = 'changed'
----
status text
Statement executed successfully.

ALTER TABLE c ADD SEARCH OPTIMIZATION ON EQUALITY(id, text), SUBSTRING(text)
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
2026-03-01 12:00:00+00 | C2 | LOADSTONE | PUBLIC | TABLE | changed | LINEAR(a) | 2 | … | SYSADMIN | 1 | ON | OFF | ON | NULL | NULL | N | N | ROLE | N | NULL | N | N | N | N | N
2026-03-01 12:00:00+00 | H | LOADSTONE | PUBLIC | TABLE |  |  | 2 | … | SYSADMIN | 1 | OFF | OFF | OFF | NULL | NULL | N | N | ROLE | N | NULL | Y | N | N | N | N
2026-03-01 12:00:00+00 | I | LOADSTONE | PUBLIC | TABLE |  | LINEAR(a,id) | 1 | … | SYSADMIN | 1 | ON | OFF | OFF | NULL | NULL | N | N | ROLE | N | NULL | N | N | N | N | Y
2026-03-01 12:00:00+00 | I2 | LOADSTONE | PUBLIC | TABLE | by hand | LINEAR(DATE_TRUNC('day',at),id) | 0 | … | SYSADMIN | 1 | ON | OFF | OFF | NULL | NULL | N | N | ROLE | N | NULL | N | N | N | N | Y
2026-03-01 12:00:00+00 | I3 | LOADSTONE | PUBLIC | TABLE |  | LINEAR(id) | 2 | … | SYSADMIN | 1 | ON | OFF | OFF | NULL | NULL | N | N | ROLE | N | NULL | N | N | N | N | Y
2026-03-01 12:00:00+00 | L | LOADSTONE | PUBLIC | TABLE |  |  | 0 | … | SYSADMIN | 1 | OFF | OFF | OFF | NULL | NULL | N | N | ROLE | N | NULL | N | N | N | N | N
2026-03-01 12:00:00+00 | S | LOADSTONE | PUBLIC | TABLE | said so |  | 4 | … | SYSADMIN | 1 | OFF | OFF | OFF | NULL | NULL | N | N | ROLE | N | NULL | N | N | N | N | N

SELECT "name", "rows", "cluster_by", "search_optimization" FROM TABLE(RESULT_SCAN(LAST_QUERY_ID())) WHERE "is_hybrid" = 'N' ORDER BY 1
----
name text | rows fixed(38,0) | cluster_by text | search_optimization text
C2 | 2 | LINEAR(a) | ON
I | 1 | LINEAR(a,id) | OFF
I2 | 0 | LINEAR(DATE_TRUNC('day',at),id) | OFF
I3 | 2 | LINEAR(id) | OFF
L | 0 |  | OFF
S | 4 |  | OFF

SELECT * FROM c
----
error 002003 (42S02): SQL compilation error:\nObject 'C' does not exist or not authorized.

SHOW COLUMNS IN TABLE c2
----
table_name text | schema_name text | column_name text | data_type text | null? text | default text | kind text | expression text | comment text | database_name text | autoincrement text | schema_evolution_record text
C2 | PUBLIC | ID | {"type":"FIXED","precision":38,"scale":0,"nullable":true} | true |  | COLUMN |  |  | LOADSTONE |  | NULL
C2 | PUBLIC | A | {"type":"FIXED","precision":38,"scale":0,"nullable":true} | true |  | COLUMN |  |  | LOADSTONE |  | NULL
C2 | PUBLIC | N | {"type":"FIXED","precision":38,"scale":0,"nullable":true} | true |  | COLUMN |  |  | LOADSTONE |  | NULL
C2 | PUBLIC | TEXT | {"type":"TEXT","length":16777216,"byteLength":16777216,"nullable":true,"fixed":false} | true |  | COLUMN |  |  | LOADSTONE |  | NULL
C2 | PUBLIC | NOTHING | {"type":"TEXT","length":16777216,"byteLength":16777216,"nullable":true,"fixed":false} | true |  | COLUMN |  |  | LOADSTONE |  | NULL
C2 | PUBLIC | DEC | {"type":"FIXED","precision":38,"scale":6,"nullable":true} | true |  | COLUMN |  |  | LOADSTONE |  | NULL
C2 | PUBLIC | MORE | {"type":"TEXT","length":5,"byteLength":20,"nullable":true,"fixed":false} | true |  | COLUMN |  |  | LOADSTONE |  | NULL

SHOW PRIMARY KEYS IN TABLE h
----
created_on timestamp_ltz | database_name text | schema_name text | table_name text | column_name text | key_sequence fixed(9,0) | constraint_name text | rely text | comment text
2026-03-01 12:00:00+00 | LOADSTONE | PUBLIC | H | ID | 1 | PK | false | NULL

SHOW UNIQUE KEYS IN h
----
created_on timestamp_ltz | database_name text | schema_name text | table_name text | column_name text | key_sequence fixed(9,0) | constraint_name text | rely text | comment text
2026-03-01 12:00:00+00 | LOADSTONE | PUBLIC | H | EMAIL | 1 | SYS_CONSTRAINT_h_email | false | NULL

SHOW IMPORTED KEYS IN TABLE h
----
created_on timestamp_ltz | pk_database_name text | pk_schema_name text | pk_table_name text | pk_column_name text | fk_database_name text | fk_schema_name text | fk_table_name text | fk_column_name text | key_sequence fixed(9,0) | update_rule text | delete_rule text | fk_name text | pk_name text | deferrability text | rely text | comment text

SELECT table_name, table_type, clustering_key, row_count, comment, is_hybrid, is_interactive FROM information_schema.tables WHERE table_schema = 'PUBLIC' ORDER BY table_name
----
TABLE_NAME text | TABLE_TYPE text | CLUSTERING_KEY text | ROW_COUNT fixed(38,0) | COMMENT text | IS_HYBRID text | IS_INTERACTIVE text
C2 | BASE TABLE | LINEAR(a) | 2 | changed | NO | NO
H | BASE TABLE | NULL | 2 | NULL | YES | NO
I | BASE TABLE | LINEAR(a,id) | 1 | NULL | NO | YES
I2 | BASE TABLE | LINEAR(DATE_TRUNC('day',at),id) | 0 | by hand | NO | YES
I3 | BASE TABLE | LINEAR(id) | 2 | NULL | NO | YES
L | BASE TABLE | NULL | 0 | NULL | NO | NO
S | BASE TABLE | NULL | 4 | said so | NO | NO

SELECT column_name, ordinal_position, column_default, is_nullable, data_type, character_maximum_length, numeric_precision, numeric_scale, is_identity FROM loadstone.information_schema.columns WHERE table_name = 'H' ORDER BY 2
----
COLUMN_NAME text | ORDINAL_POSITION fixed(9,0) | COLUMN_DEFAULT text | IS_NULLABLE text | DATA_TYPE text | CHARACTER_MAXIMUM_LENGTH fixed(9,0) | NUMERIC_PRECISION fixed(9,0) | NUMERIC_SCALE fixed(9,0) | IS_IDENTITY text
ID | 1 | NULL | NO | NUMBER | NULL | 38 | 0 | YES
EMAIL | 2 | NULL | YES | TEXT | 50 | NULL | NULL | NO
A | 3 | NULL | YES | NUMBER | NULL | 38 | 0 | NO
B | 4 | NULL | YES | NUMBER | NULL | 38 | 0 | NO

SELECT constraint_name, constraint_type, enforced FROM information_schema.table_constraints WHERE table_name IN ('H', 'S') ORDER BY 1
----
CONSTRAINT_NAME text | CONSTRAINT_TYPE text | ENFORCED text
PK | PRIMARY KEY | YES
SYS_CONSTRAINT_h_email | UNIQUE | YES
SYS_CONSTRAINT_s_id | PRIMARY KEY | NO

SELECT constraint_name, column_name, ordinal_position FROM information_schema.key_column_usage WHERE table_name = 'H' ORDER BY 1, 3
----
CONSTRAINT_NAME text | COLUMN_NAME text | ORDINAL_POSITION fixed(9,0)
PK | ID | 1
SYS_CONSTRAINT_h_email | EMAIL | 1

TRUNCATE TABLE s
----
status text
Statement executed successfully.

SELECT COUNT(*) FROM s
----
COUNT(*) fixed(38,0)
0

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

CREATE DATABASE other
----
status text
Database OTHER successfully created.

CREATE TABLE t (x INT)
----
status text
Table T successfully created.

SELECT CURRENT_DATABASE(), CURRENT_SCHEMA()
----
CURRENT_DATABASE() text | CURRENT_SCHEMA() text
OTHER | PUBLIC

SELECT COUNT(*) FROM other.public.t
----
COUNT(*) fixed(38,0)
0

CREATE SCHEMA mine
----
status text
Schema MINE successfully created.

SHOW SCHEMAS
----
created_on timestamp_ltz | name text | is_default text | is_current text | database_name text | owner text | comment text | options text | retention_time text | owner_role_type text
2026-03-01 12:00:00+00 | MINE | N | N | OTHER | SYSADMIN |  |  | 1 | ROLE
2026-03-01 12:00:00+00 | PUBLIC | N | N | OTHER | SYSADMIN |  |  | 1 | ROLE

USE loadstone.public
----
status text
Statement executed successfully.

SHOW DATABASES
----
created_on timestamp_ltz | name text | is_default text | is_current text | origin text | owner text | comment text | options text | retention_time text | kind text | budget text | owner_role_type text
2026-03-01 12:00:00+00 | LOADSTONE | N | N |  | SYSADMIN |  |  | 1 | STANDARD | NULL | ROLE
2026-03-01 12:00:00+00 | OTHER | N | N |  | SYSADMIN |  |  | 1 | STANDARD | NULL | ROLE

DROP DATABASE other
----
status text
OTHER successfully dropped.

SELECT * FROM other.public.t
----
error 002003 (42S02): SQL compilation error:\nObject 'T' does not exist or not authorized.

CREATE SCHEMA loadstone.public
----
error 002002 (42710): SQL compilation error:\nObject 'PUBLIC' already exists.

SHOW GRANTS TO ROLE nobody
----
error 002003 (02000): SQL compilation error:\nRole 'NOBODY' does not exist or not authorized.

