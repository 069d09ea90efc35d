--! Schemas are made and dropped with what is in them.

CREATE SCHEMA one
----
status text
Schema ONE successfully created.

CREATE SCHEMA LOADSTONE.one
----
error 002002 (42710): SQL compilation error:\nObject 'LOADSTONE.ONE' already exists.

CREATE SCHEMA IF NOT EXISTS one
----
status text
ONE already exists, statement succeeded.

CREATE SCHEMA nowhere.one
----
error 002003 (42S02): SQL compilation error:\nDatabase 'NOWHERE' does not exist or not authorized.

CREATE TABLE LOADSTONE.one.t (id INT)
----
status text
Table T successfully created.

INSERT INTO LOADSTONE.one.t VALUES (1)
----
number of rows fixed(38,0)
1

SELECT COUNT(*) AS n FROM LOADSTONE.one.t
----
N fixed(38,0)
1

DROP SCHEMA LOADSTONE.one CASCADE
----
status text
ONE successfully dropped.

SELECT COUNT(*) AS n FROM LOADSTONE.one.t
----
error 002003 (42S02): SQL compilation error:\nObject 'T' does not exist or not authorized.

DROP SCHEMA LOADSTONE.one
----
error 002003 (42S02): SQL compilation error:\nSchema 'LOADSTONE.ONE' does not exist or not authorized.

DROP SCHEMA IF EXISTS LOADSTONE.one
----
status text
Drop statement executed successfully (ONE already dropped).

--! MERGE, and a property that CREATE OR ALTER TABLE does not name.

USE SCHEMA LOADSTONE.PUBLIC
----
status text
Statement executed successfully.

CREATE TABLE merged (id INT, v VARCHAR)
----
status text
Table MERGED successfully created.

INSERT INTO merged VALUES (1, 'a'), (2, 'b')
----
number of rows fixed(38,0)
2

MERGE INTO merged t USING (SELECT 2 AS id, 'B' AS v UNION ALL SELECT 3, 'C') s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)
----
number of rows fixed(38,0)
2

SELECT id, v FROM merged ORDER BY id
----
ID fixed(38,0) | V text
1 | a
2 | B
3 | C

MERGE INTO merged USING merged s ON merged.id = s.id WHEN MATCHED AND s.id = 1 THEN DELETE
----
number of rows fixed(38,0)
1

CREATE INTERACTIVE TABLE merged_i CLUSTER BY (id) AS SELECT id, v FROM merged
----
status text
Table MERGED_I successfully created.

MERGE INTO merged_i t USING merged s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v
----
error 001422 (42601): SQL compilation error:\nMERGE is not supported on interactive table 'MERGED_I'. Interactive tables take INSERT and INSERT OVERWRITE only.

CREATE TABLE keyed (id INT NOT NULL, v VARCHAR) CLUSTER BY (id)
----
status text
Table KEYED successfully created.

CREATE OR ALTER TABLE keyed (id INT NOT NULL, v VARCHAR, w FLOAT)
----
status text
Statement executed successfully.

SHOW PRIMARY KEYS IN TABLE keyed
----
created_on timestamp_ltz | database_name text | schema_name text | table_name text | column_name text | key_sequence fixed(9,0) | constraint_name text | rely text | comment text

SELECT TABLE_NAME, CLUSTERING_KEY FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_NAME = 'KEYED'
----
TABLE_NAME text | CLUSTERING_KEY text
KEYED | NULL

