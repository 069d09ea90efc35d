--! Statements that every driver and adapter sends.

SELECT 1
----
1 fixed(38,0)
1

select 1 as one, 'it''s' as "Quoted", 2.50, null, true
----
ONE fixed(38,0) | Quoted text | 2.50 fixed | NULL text | TRUE boolean
1 | it's | 2.50 | NULL | t

SELECT CURRENT_VERSION(), current_warehouse(), CURRENT_DATABASE(), CURRENT_SCHEMA(), CURRENT_ROLE(), CURRENT_USER()
----
CURRENT_VERSION() text | CURRENT_WAREHOUSE() text | CURRENT_DATABASE() text | CURRENT_SCHEMA() text | CURRENT_ROLE() text | CURRENT_USER() text
10.0.0 snowsim | WH | LOADSTONE | PUBLIC | SYSADMIN | ANNA

CREATE OR REPLACE TABLE orders (id INT, name VARCHAR(20), amount NUMBER(12,2), "lower" STRING, created TIMESTAMP_NTZ, PRIMARY KEY (id)) CLUSTER BY (id)
----
status text
Table ORDERS successfully created.

INSERT INTO orders (id, name, amount, created) VALUES (1, 'a', 10.5, '2026-01-01 10:00:00'), (2, 'b', 20, '2026-01-02'), (3, NULL, 30, NULL)
----
number of rows fixed(38,0)
3

SELECT * FROM ORDERS ORDER BY ID
----
ID fixed(38,0) | NAME text | AMOUNT fixed(12,2) | lower text | CREATED timestamp_ntz
1 | a | 10.50 | NULL | 2026-01-01 10:00:00
2 | b | 20.00 | NULL | 2026-01-02 00:00:00
3 | NULL | 30.00 | NULL | NULL

select o.id, o.NAME, "lower", count(*) from Orders o where o.id in (1, 2) group by 1, 2, 3 order by o.id desc
----
ID fixed(38,0) | NAME text | lower text | COUNT(*) fixed(38,0)
2 | b | NULL | 1
1 | a | NULL | 1

INSERT INTO orders (id) VALUES (1)
----
number of rows fixed(38,0)
1

INSERT INTO orders (id) VALUES (NULL)
----
error 100072 (22000): NULL result in a non-nullable column

INSERT INTO orders (id, amount) VALUES (9, 'abc')
----
error 100038 (22018): Numeric value 'abc' is not recognized

INSERT INTO orders (id, name) VALUES (9, 'far too long for twenty characters')
----
error 100078 (22000): String is too long and would be truncated

UPDATE orders SET name = 'z' || id, amount = amount / 3 WHERE id = 2
----
number of rows fixed(38,0)
1

SELECT name, amount FROM loadstone.public.orders WHERE id = 2
----
NAME text | AMOUNT fixed(12,2)
z2 | 6.67

DELETE FROM orders WHERE id = 1
----
number of rows fixed(38,0)
2

SELECT COUNT(*), SUM(amount), AVG(amount), MIN(name), MAX(id) FROM orders
----
COUNT(*) fixed(38,0) | SUM(AMOUNT) fixed | AVG(AMOUNT) fixed | MIN(NAME) text | MAX(ID) fixed
2 | 36.67 | 18.3350000000000000 | z2 | 3

SELECT nothing FROM orders
----
error 000904 (42000): SQL compilation error:\nerror line 1 at position 0\ninvalid identifier 'NOTHING'

SELECT * FROM nowhere
----
error 002003 (42S02): SQL compilation error:\nObject 'NOWHERE' does not exist or not authorized.

SELECT FORM orders
----
error 000904 (42000): SQL compilation error:\nerror line 1 at position 0\ninvalid identifier 'FORM'

DROP TABLE orders
----
status text
ORDERS successfully dropped.

DROP TABLE orders
----
error 002003 (42S02): SQL compilation error:\nTable 'LOADSTONE.PUBLIC.ORDERS' does not exist or not authorized.

DROP TABLE IF EXISTS orders
----
status text
Drop statement executed successfully (ORDERS already dropped).

USE WAREHOUSE wh
----
status text
Statement executed successfully.

USE WAREHOUSE nobody
----
error 002043 (02000): SQL compilation error:\nObject does not exist, or operation cannot be performed: NOBODY.

USE SCHEMA public
----
status text
Statement executed successfully.

USE DATABASE nowhere
----
error 002043 (02000): SQL compilation error:\nObject does not exist, or operation cannot be performed: NOWHERE.

ALTER SESSION SET QUERY_TAG = '{"run":1}', USE_CACHED_RESULT = FALSE
----
status text
Statement executed successfully.

ALTER SESSION SET USE_CACHED_RESULT = 'perhaps'
----
error 001008 (22023): SQL compilation error:\ninvalid value [PERHAPS] for parameter 'USE_CACHED_RESULT'

SHOW PARAMETERS LIKE 'query_tag'
----
key text | value text | default text | level text | description text | type text
QUERY_TAG | {"run":1} |  | SESSION | Text that the history keeps for each statement. | STRING

ALTER SESSION UNSET QUERY_TAG
----
status text
Statement executed successfully.

BEGIN
----
status text
Statement executed successfully.

COMMIT
----
status text
Statement executed successfully.

ROLLBACK
----
status text
Statement executed successfully.

START TRANSACTION
----
status text
Statement executed successfully.

SHOW WAREHOUSES
----
name text | state text | type text | size text | min_cluster_count fixed(38,0) | max_cluster_count fixed(38,0) | started_clusters fixed(38,0) | running fixed(38,0) | queued fixed(38,0) | is_default text | is_current text | auto_suspend fixed(38,0) | auto_resume text | available text | provisioning text | quiescing text | other text | created_on timestamp_ltz | resumed_on timestamp_ltz | updated_on timestamp_ltz | owner text | comment text | enable_query_acceleration text | query_acceleration_max_scale_factor fixed(38,0) | resource_monitor text | actives text | pendings text | failed text | suspended text | uuid text | scaling_policy text | budget text | owner_role_type text | resource_constraint text | generation text | tables text
WH | STARTED | STANDARD | X-Small | 1 | 1 | 0 | 0 | 0 | N | Y | 60 | true | 100 |  |  |  | 2026-03-01T12:00:00Z | NULL | NULL | SYSADMIN |  | false | 8 | null | 0 | 0 | 0 | 0 | 0 | STANDARD | NULL | ROLE | NULL |  | NULL

SHOW WAREHOUSES LIKE 'nothing%'
----
name text | state text | type text | size text | min_cluster_count fixed(38,0) | max_cluster_count fixed(38,0) | started_clusters fixed(38,0) | running fixed(38,0) | queued fixed(38,0) | is_default text | is_current text | auto_suspend fixed(38,0) | auto_resume text | available text | provisioning text | quiescing text | other text | created_on timestamp_ltz | resumed_on timestamp_ltz | updated_on timestamp_ltz | owner text | comment text | enable_query_acceleration text | query_acceleration_max_scale_factor fixed(38,0) | resource_monitor text | actives text | pendings text | failed text | suspended text | uuid text | scaling_policy text | budget text | owner_role_type text | resource_constraint text | generation text | tables text

--! What is refused.

MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE
----
error 002003 (42S02): SQL compilation error:\nObject 'T' does not exist or not authorized.

TRUNCATE TABLE t
----
error 000002 (0A000): Unsupported feature 'TRUNCATE'. It is not simulated: docs/guides/snowflake-stand-in.md lists the SQL that the stand-in understands.

INSERT OVERWRITE INTO t VALUES (1)
----
error 000002 (0A000): Unsupported feature 'INSERT OVERWRITE'. It is not simulated: docs/guides/snowflake-stand-in.md lists the SQL that the stand-in understands.

REVOKE SELECT ON TABLE t FROM ROLE r
----
error 002003 (42S02): SQL compilation error:\nTable 'LOADSTONE.PUBLIC.T' does not exist or not authorized.

DESCRIBE TABLE t
----
error 000002 (0A000): Unsupported feature 'DESCRIBE'. It is not simulated: docs/guides/snowflake-stand-in.md lists the SQL that the stand-in understands.

EXPLAIN SELECT 1
----
error 000002 (0A000): Unsupported feature 'EXPLAIN'. It is not simulated: docs/guides/snowflake-stand-in.md lists the SQL that the stand-in understands.

CREATE DATABASE d
----
error 000002 (0A000): Unsupported feature 'CREATE DATABASE'. It is not simulated: docs/guides/snowflake-stand-in.md lists the SQL that the stand-in understands.

CREATE TEMPORARY TABLE t (id INT)
----
error 000002 (0A000): Unsupported feature 'CREATE TEMPORARY'. It is not simulated: docs/guides/snowflake-stand-in.md lists the SQL that the stand-in understands.

CREATE INDEX i ON t (id)
----
error 000002 (0A000): Unsupported feature 'CREATE INDEX'. It is not simulated: docs/guides/snowflake-stand-in.md lists the SQL that the stand-in understands.

DROP SCHEMA s
----
error 002003 (42S02): SQL compilation error:\nSchema 'LOADSTONE.S' does not exist or not authorized.

SHOW COLUMNS
----
error 000002 (0A000): Unsupported feature 'SHOW COLUMNS'. It is not simulated: docs/guides/snowflake-stand-in.md lists the SQL that the stand-in understands.

SHOW DATABASES
----
created_on timestamp_ltz | name text | is_default text | is_current text | origin text | owner text | comment text | options text | retention_time text | kind text | budget text | owner_role_type text
2026-03-01 12:00:00+00 | LOADSTONE | N | N |  | SYSADMIN |  |  | 1 | STANDARD | NULL | ROLE

SHOW TABLES IN ACCOUNT
----
error 000002 (0A000): Unsupported feature 'SHOW … IN ACCOUNT'. It is not simulated: docs/guides/snowflake-stand-in.md lists the SQL that the stand-in understands.

SHOW GRANTS TO ROLE r
----
error 000002 (0A000): Unsupported feature 'SHOW GRANTS other than ON TABLE, VIEW, SCHEMA or WAREHOUSE'. It is not simulated: docs/guides/snowflake-stand-in.md lists the SQL that the stand-in understands.

SELECT * FROM INFORMATION_SCHEMA.SCHEMATA
----
error 000002 (0A000): Unsupported feature 'INFORMATION_SCHEMA.SCHEMATA'. It is not simulated: docs/guides/snowflake-stand-in.md lists the SQL that the stand-in understands.

SELECT * FROM TABLE(RESULT_SCAN('x'))
----
error 000002 (0A000): Unsupported feature 'TABLE(RESULT_SCAN)'. It is not simulated: docs/guides/snowflake-stand-in.md lists the SQL that the stand-in understands.

SELECT 1 INTERSECT SELECT 2
----
error 000002 (0A000): Unsupported feature 'INTERSECT'. It is not simulated: docs/guides/snowflake-stand-in.md lists the SQL that the stand-in understands.

SELECT 1 GROUP BY ALL
----
error 000002 (0A000): Unsupported feature 'GROUP BY ALL'. It is not simulated: docs/guides/snowflake-stand-in.md lists the SQL that the stand-in understands.

WITH RECURSIVE c AS (SELECT 1) SELECT * FROM c
----
error 000002 (0A000): Unsupported feature 'WITH RECURSIVE'. It is not simulated: docs/guides/snowflake-stand-in.md lists the SQL that the stand-in understands.

SELECT * FROM VALUES (1)
----
error 000002 (0A000): Unsupported feature 'FROM VALUES'. It is not simulated: docs/guides/snowflake-stand-in.md lists the SQL that the stand-in understands.

SELECT $1
----
error 001003 (42000): SQL compilation error:\nsyntax error line 1 at position 7 unexpected '$'.

SELECT 1 RLIKE 2
----
error 001003 (42000): SQL compilation error:\nsyntax error line 1 at position 9 unexpected 'RLIKE'.

SELECT CURRENT_DATE
----
error 000904 (42000): SQL compilation error:\nerror line 1 at position 0\ninvalid identifier 'CURRENT_DATE'

SELECT IDENTIFIER('x')
----
error 002140 (42601): SQL compilation error:\nUnknown function IDENTIFIER.

CREATE TABLE t (id INT DEFAULT 1)
----
error 000002 (0A000): Unsupported feature 'a column with DEFAULT'. It is not simulated: docs/guides/snowflake-stand-in.md lists the SQL that the stand-in understands.

CREATE TABLE t (id INT AUTOINCREMENT START 5)
----
error 000002 (0A000): Unsupported feature 'AUTOINCREMENT with a start or an increment'. It is not simulated: docs/guides/snowflake-stand-in.md lists the SQL that the stand-in understands.

CREATE TABLE t (id INT, CONSTRAINT pk PRIMARY KEY (id))
----
error 000002 (0A000): Unsupported feature 'a named CONSTRAINT'. It is not simulated: docs/guides/snowflake-stand-in.md lists the SQL that the stand-in understands.

CREATE TABLE t LIKE s
----
error 000002 (0A000): Unsupported feature 'CREATE TABLE … LIKE'. It is not simulated: docs/guides/snowflake-stand-in.md lists the SQL that the stand-in understands.

ALTER SESSION SET QUERY_TAG
----
error 001003 (42000): SQL compilation error:\nsyntax error line 1 at position 27 unexpected '<EOF>'.

ALTER ROLE r RENAME TO s
----
error 000002 (0A000): Unsupported feature 'ALTER ROLE'. It is not simulated: docs/guides/snowflake-stand-in.md lists the SQL that the stand-in understands.

COMMENT ON COLUMN t.id IS 'x'
----
error 000002 (0A000): Unsupported feature 'COMMENT ON COLUMN'. It is not simulated: docs/guides/snowflake-stand-in.md lists the SQL that the stand-in understands.

ALTER WAREHOUSE wh ABORT ALL QUERIES
----
error 000002 (0A000): Unsupported feature 'ALTER WAREHOUSE … ABORT'. It is not simulated: docs/guides/snowflake-stand-in.md lists the SQL that the stand-in understands.

