--! Views: the query is read when the view is, with the rights of its owner.

CREATE TABLE base (id INT, v VARCHAR(10), f FLOAT, at TIMESTAMP_NTZ)
----
status text
Table BASE successfully created.

INSERT INTO base VALUES (1, 'a', 0.5, '2026-01-01'), (2, 'b', 1.5, '2026-01-02')
----
number of rows fixed(38,0)
2

CREATE VIEW v1 COMMENT = 'one' AS SELECT id, f * 2 AS twice, at FROM base WHERE id > 0
----
status text
View V1 successfully created.

CREATE VIEW v1 AS SELECT 1 AS x
----
error 002002 (42710): SQL compilation error:\nObject 'LOADSTONE.PUBLIC.V1' already exists.

SELECT * FROM v1 ORDER BY id
----
ID fixed(38,0) | TWICE real | AT timestamp_ntz
1 | 1 | 2026-01-01 00:00:00
2 | 3 | 2026-01-02 00:00:00

SELECT x.twice, b.v FROM v1 AS x JOIN base b ON b.id = x.id WHERE x.id = 2
----
TWICE real | V text
3 | b

SELECT v1.id FROM v1 WHERE twice = 1
----
ID fixed(38,0)
1

CREATE OR REPLACE VIEW v2 AS WITH s AS (SELECT SUM(twice) AS t FROM v1) SELECT t AS total, 'x' AS "odd ""name""" FROM s
----
status text
View V2 successfully created.

SELECT total, "odd ""name""" FROM v2
----
TOTAL real | odd "name" text
4 | x

CREATE OR REPLACE VIEW v1 AS SELECT total AS again FROM v2
----
error 002037 (42601): SQL compilation error:\nView definition for 'LOADSTONE.PUBLIC.V1' refers to view being defined

CREATE OR REPLACE VIEW v3 AS SELECT * FROM base
----
status text
View V3 successfully created.

ALTER TABLE base ADD COLUMN more INT
----
status text
Statement executed successfully.

SELECT * FROM v3 WHERE id = 1
----
ID fixed(38,0) | V text | F real | AT timestamp_ntz
1 | a | 0.5 | 2026-01-01 00:00:00

SHOW VIEWS LIKE 'v%'
----
created_on timestamp_ltz | name text | reserved text | database_name text | schema_name text | owner text | comment text | text text | is_secure text | is_materialized text | owner_role_type text | change_tracking text
2026-03-01 12:00:00+00 | V1 |  | LOADSTONE | PUBLIC | SYSADMIN | one | CREATE VIEW V1 AS SELECT id, f * 2 AS twice, at FROM base WHERE id > 0 | false | false | ROLE | OFF
2026-03-01 12:00:00+00 | V2 |  | LOADSTONE | PUBLIC | SYSADMIN |  | CREATE VIEW V2 AS WITH s AS (SELECT SUM(twice) AS t FROM v1) SELECT t AS total, 'x' AS "odd ""name""" FROM s | false | false | ROLE | OFF
2026-03-01 12:00:00+00 | V3 |  | LOADSTONE | PUBLIC | SYSADMIN |  | CREATE VIEW V3 AS SELECT * FROM base | false | false | ROLE | OFF

SELECT TABLE_NAME, TABLE_TYPE FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_NAME IN ('BASE', 'V1') ORDER BY 1
----
TABLE_NAME text | TABLE_TYPE text
BASE | BASE TABLE
V1 | VIEW

--! What is refused.

CREATE OR REPLACE VIEW base AS SELECT 1 AS x
----
error 001998 (42710): SQL compilation error:\nObject 'LOADSTONE.PUBLIC.BASE' already exists as TABLE

CREATE OR REPLACE TABLE v1 (id INT)
----
error 001998 (42710): SQL compilation error:\nObject 'LOADSTONE.PUBLIC.V1' already exists as VIEW

INSERT INTO v1 VALUES (1, 2, '2026-01-01')
----
error 002203 (02000): SQL compilation error:\nObject found is of type 'VIEW', not specified type 'TABLE'.

ALTER TABLE v1 ADD COLUMN x INT
----
error 002203 (02000): SQL compilation error:\nObject found is of type 'VIEW', not specified type 'TABLE'.

DROP TABLE v1
----
error 002203 (02000): SQL compilation error:\nObject found is of type 'VIEW', not specified type 'TABLE'.

DROP VIEW base
----
error 002203 (02000): SQL compilation error:\nObject found is of type 'TABLE', not specified type 'VIEW'.

CREATE VIEW v4 AS SELECT nothing FROM base
----
error 000904 (42000): SQL compilation error:\nerror line 1 at position 0\ninvalid identifier 'NOTHING'

CREATE VIEW v4 AS SELECT * FROM nowhere
----
error 002003 (42S02): SQL compilation error:\nObject 'NOWHERE' does not exist or not authorized.

CREATE VIEW v4 AS SELECT 1 AS a, 2 AS a
----
error 002025 (42S21): SQL compilation error:\nduplicate column name 'A'

CREATE SECURE VIEW v4 AS SELECT 1 AS x
----
error 000002 (0A000): Unsupported feature 'CREATE SECURE'. It is not simulated: docs/guides/snowflake-stand-in.md lists the SQL that the stand-in understands.

CREATE VIEW v4 (a) AS SELECT 1
----
error 000002 (0A000): Unsupported feature 'a view with a list of columns'. It is not simulated: docs/guides/snowflake-stand-in.md lists the SQL that the stand-in understands.

CREATE VIEW IF NOT EXISTS v4 AS SELECT 1 AS x
----
error 000002 (0A000): Unsupported feature 'CREATE VIEW IF NOT EXISTS'. It is not simulated: docs/guides/snowflake-stand-in.md lists the SQL that the stand-in understands.

SELECT * FROM v1 SAMPLE (10)
----
error 000002 (0A000): Unsupported feature 'SAMPLE of a view'. It is not simulated: docs/guides/snowflake-stand-in.md lists the SQL that the stand-in understands.

CREATE VIEW GUARDED_VIEWS.v4 AS SELECT 1 AS x
----
error 002003 (02000): SQL compilation error:\nSchema 'LOADSTONE.GUARDED_VIEWS' does not exist or not authorized.

--! What a view selects from may be made anew.

DROP TABLE base
----
status text
BASE successfully dropped.

SELECT * FROM v1
----
error 002037 (42601): SQL compilation error:\nFailure during expansion of view 'V1': 002003 (42S02): SQL compilation error:\nObject 'BASE' does not exist or not authorized.

CREATE TABLE base (id INT, v VARCHAR(10), f FLOAT, at TIMESTAMP_NTZ)
----
status text
Table BASE successfully created.

SELECT COUNT(*) AS n FROM v1
----
N fixed(38,0)
0

DROP VIEW IF EXISTS nowhere
----
status text
Drop statement executed successfully (NOWHERE already dropped).

DROP VIEW nowhere
----
error 002003 (42S02): SQL compilation error:\nView 'LOADSTONE.PUBLIC.NOWHERE' does not exist or not authorized.

DROP VIEW v1
----
status text
V1 successfully dropped.

SELECT * FROM v2
----
error 002037 (42601): SQL compilation error:\nFailure during expansion of view 'V2': 002003 (42S02): SQL compilation error:\nObject 'V1' does not exist or not authorized.

DROP VIEW v2
----
status text
V2 successfully dropped.

