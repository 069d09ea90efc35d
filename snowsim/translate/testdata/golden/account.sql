--! Warehouses, roles and privileges.

CREATE WAREHOUSE bench WITH WAREHOUSE_SIZE = 'MEDIUM' MIN_CLUSTER_COUNT = 1 MAX_CLUSTER_COUNT = 3 SCALING_POLICY = ECONOMY AUTO_SUSPEND = 60 AUTO_RESUME = TRUE INITIALLY_SUSPENDED = TRUE
----
status text
Warehouse BENCH successfully created.

SELECT CURRENT_WAREHOUSE()
----
CURRENT_WAREHOUSE() text
BENCH

SHOW WAREHOUSES LIKE 'bench'
----
name text | state text | type text | size text | min_cluster_count fixed(38,0) | max_cluster_count fixed(38,0) | started_clusters fixed(38,0) | running fixed(38,0) | queued fixed(38,0) | is_default text | is_current text | auto_suspend fixed(38,0) | auto_resume text | available text | provisioning text | quiescing text | other text | created_on timestamp_ltz | resumed_on timestamp_ltz | updated_on timestamp_ltz | owner text | comment text | enable_query_acceleration text | query_acceleration_max_scale_factor fixed(38,0) | resource_monitor text | actives text | pendings text | failed text | suspended text | uuid text | scaling_policy text | budget text | owner_role_type text | resource_constraint text | generation text | tables text
BENCH | SUSPENDED | STANDARD | Medium | 1 | 3 | 0 | 0 | 0 | N | Y | 60 | true |  |  |  |  | 2026-03-01T12:00:00Z | NULL | NULL | SYSADMIN |  | false | 8 | null | 0 | 0 | 0 | 1 | 0 | ECONOMY | NULL | ROLE | NULL |  | NULL

CREATE WAREHOUSE bench
----
error 002002 (42710): SQL compilation error:\nObject 'BENCH' already exists.

CREATE WAREHOUSE IF NOT EXISTS bench
----
status text
BENCH already exists, statement succeeded.

ALTER WAREHOUSE bench RESUME IF SUSPENDED
----
status text
Statement executed successfully.

ALTER WAREHOUSE bench RESUME IF SUSPENDED
----
status text
Statement executed successfully.

ALTER WAREHOUSE bench SET WAREHOUSE_SIZE = 'X-Large' STATEMENT_TIMEOUT_IN_SECONDS = 30
----
status text
Statement executed successfully.

ALTER WAREHOUSE bench SET WAREHOUSE_SIZE = 'GIGANTIC'
----
error 001008 (22023): SQL compilation error:\ninvalid value [GIGANTIC] for parameter 'WAREHOUSE_SIZE'

ALTER WAREHOUSE bench SET NONSENSE = 1
----
error 001003 (42000): SQL compilation error:\ninvalid property 'NONSENSE' for 'WAREHOUSE'

ALTER WAREHOUSE bench SUSPEND
----
status text
Statement executed successfully.

CREATE TABLE s (id INT)
----
status text
Table S successfully created.

CREATE INTERACTIVE TABLE i (id INT) CLUSTER BY (id)
----
status text
Table I successfully created.

CREATE INTERACTIVE WAREHOUSE other TABLES (s) WAREHOUSE_SIZE = XSMALL
----
status text
Warehouse OTHER successfully created.

CREATE INTERACTIVE WAREHOUSE fast TABLES (i) WAREHOUSE_SIZE = XSMALL
----
status text
Warehouse FAST successfully created.

ALTER WAREHOUSE fast DROP TABLES (i)
----
status text
Statement executed successfully.

ALTER WAREHOUSE fast ADD TABLES (loadstone.public.i)
----
status text
Statement executed successfully.

SHOW WAREHOUSES
----
name text | state text | type text | size text | min_cluster_count fixed(38,0) | max_cluster_count fixed(38,0) | started_clusters fixed(38,0) | running fixed(38,0) | queued fixed(38,0) | is_default text | is_current text | auto_suspend fixed(38,0) | auto_resume text | available text | provisioning text | quiescing text | other text | created_on timestamp_ltz | resumed_on timestamp_ltz | updated_on timestamp_ltz | owner text | comment text | enable_query_acceleration text | query_acceleration_max_scale_factor fixed(38,0) | resource_monitor text | actives text | pendings text | failed text | suspended text | uuid text | scaling_policy text | budget text | owner_role_type text | resource_constraint text | generation text | tables text
BENCH | SUSPENDED | STANDARD | X-Large | 1 | 3 | 0 | 0 | 0 | N | N | 60 | true |  |  |  |  | 2026-03-01T12:00:00Z | NULL | NULL | SYSADMIN |  | false | 8 | null | 0 | 0 | 0 | 1 | 0 | ECONOMY | NULL | ROLE | NULL |  | NULL
FAST | SUSPENDED | INTERACTIVE | X-Small | 1 | 1 | 0 | 0 | 0 | N | Y | 3600 | true |  |  |  |  | 2026-03-01T12:00:00Z | NULL | NULL | SYSADMIN |  | false | 8 | null | 0 | 0 | 0 | 1 | 0 | STANDARD | NULL | ROLE | NULL | NULL | LOADSTONE.PUBLIC.I
OTHER | SUSPENDED | INTERACTIVE | X-Small | 1 | 1 | 0 | 0 | 0 | N | N | 3600 | true |  |  |  |  | 2026-03-01T12:00:00Z | NULL | NULL | SYSADMIN |  | false | 8 | null | 0 | 0 | 0 | 1 | 0 | STANDARD | NULL | ROLE | NULL | NULL | LOADSTONE.PUBLIC.S
WH | STARTED | STANDARD | X-Small | 1 | 1 | 0 | 0 | 0 | N | N | 60 | true | 100 |  |  |  | 2026-03-01T12:00:00Z | NULL | NULL | SYSADMIN |  | false | 8 | null | 0 | 0 | 0 | 0 | 0 | STANDARD | NULL | ROLE | NULL |  | NULL

ALTER WAREHOUSE nobody RESUME
----
error 002003 (02000): SQL compilation error:\nWarehouse 'NOBODY' does not exist or not authorized.

DROP WAREHOUSE bench
----
status text
BENCH successfully dropped.

DROP WAREHOUSE bench
----
error 002003 (02000): SQL compilation error:\nWarehouse 'BENCH' does not exist or not authorized.

DROP WAREHOUSE IF EXISTS bench
----
status text
Drop statement executed successfully (BENCH already dropped).

USE WAREHOUSE wh
----
status text
Statement executed successfully.

CREATE TABLE guarded (id INT)
----
status text
Table GUARDED successfully created.

DELETE FROM guarded
----
error 003001 (42501): SQL access control error:\nInsufficient privileges to operate on table 'GUARDED'.

CREATE ROLE tester
----
status text
Role TESTER successfully created.

CREATE ROLE tester
----
error 002002 (42710): SQL compilation error:\nObject 'TESTER' already exists.

USE ROLE nobody
----
error 002003 (02000): SQL compilation error:\nRole 'NOBODY' does not exist or not authorized.

GRANT USAGE ON WAREHOUSE wh TO ROLE tester
----
status text
Statement executed successfully.

GRANT USAGE ON DATABASE loadstone TO ROLE tester
----
status text
Statement executed successfully.

GRANT USAGE ON SCHEMA loadstone.public TO ROLE tester
----
status text
Statement executed successfully.

GRANT SELECT, INSERT ON TABLE s TO ROLE tester
----
status text
Statement executed successfully.

USE ROLE tester
----
status text
Statement executed successfully.

SELECT COUNT(*) FROM s
----
COUNT(*) fixed(38,0)
0

INSERT INTO s VALUES (1)
----
number of rows fixed(38,0)
1

UPDATE s SET id = 2
----
error 003001 (42501): SQL access control error:\nInsufficient privileges to operate on table 'S'.

SELECT * FROM i
----
error 002003 (42S02): SQL compilation error:\nObject 'I' does not exist or not authorized.

CREATE TABLE mine (id INT)
----
error 003001 (42501): SQL access control error:\nInsufficient privileges to operate on schema 'PUBLIC'.

SHOW WAREHOUSES
----
name text | state text | type text | size text | min_cluster_count fixed(38,0) | max_cluster_count fixed(38,0) | started_clusters fixed(38,0) | running fixed(38,0) | queued fixed(38,0) | is_default text | is_current text | auto_suspend fixed(38,0) | auto_resume text | available text | provisioning text | quiescing text | other text | created_on timestamp_ltz | resumed_on timestamp_ltz | updated_on timestamp_ltz | owner text | comment text | enable_query_acceleration text | query_acceleration_max_scale_factor fixed(38,0) | resource_monitor text | actives text | pendings text | failed text | suspended text | uuid text | scaling_policy text | budget text | owner_role_type text | resource_constraint text | generation text | tables text
WH | STARTED | STANDARD | X-Small | 1 | 1 | 0 | 0 | 0 | N | Y | 60 | true | 100 |  |  |  | 2026-03-01T12:00:00Z | NULL | NULL | SYSADMIN |  | false | 8 | null | 0 | 0 | 0 | 0 | 0 | STANDARD | NULL | ROLE | NULL |  | NULL

SELECT * FROM SNOWFLAKE.ACCOUNT_USAGE.AGGREGATE_QUERY_HISTORY
----
error 002003 (02000): SQL compilation error:\nSchema 'SNOWFLAKE.ACCOUNT_USAGE' does not exist or not authorized.

USE ROLE sysadmin
----
status text
Statement executed successfully.

GRANT CREATE TABLE ON SCHEMA loadstone.public TO ROLE tester
----
status text
Statement executed successfully.

GRANT IMPORTED PRIVILEGES ON DATABASE snowflake TO ROLE tester
----
status text
Statement executed successfully.

USE ROLE tester
----
status text
Statement executed successfully.

CREATE TABLE mine (id INT)
----
status text
Table MINE successfully created.

INSERT INTO mine VALUES (1)
----
number of rows fixed(38,0)
1

SELECT COUNT(*) FROM SNOWFLAKE.ACCOUNT_USAGE.AGGREGATE_QUERY_HISTORY
----
COUNT(*) fixed(38,0)
0

USE ROLE sysadmin
----
status text
Statement executed successfully.

