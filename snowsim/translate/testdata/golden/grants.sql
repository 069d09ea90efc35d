--! Roles in roles, secondary roles, owners, and grants on all that a schema holds.

CREATE TABLE t (id INT)
----
status text
Table T successfully created.

CREATE TABLE u (id INT)
----
status text
Table U successfully created.

CREATE ROLE reader
----
status text
Role READER successfully created.

CREATE ROLE bench
----
status text
Role BENCH successfully created.

GRANT SELECT ON ALL TABLES IN SCHEMA public TO ROLE reader
----
status text
Statement executed successfully.

GRANT UPDATE, DELETE ON TABLE t TO ROLE bench
----
status text
Statement executed successfully.

GRANT ROLE reader TO ROLE bench
----
status text
Statement executed successfully.

SHOW GRANTS ON TABLE t
----
created_on timestamp_ltz | privilege text | granted_on text | name text | granted_to text | grantee_name text | grant_option text | granted_by text
2026-03-01T12:00:00Z | DELETE | TABLE | LOADSTONE.PUBLIC.T | ROLE | BENCH | false | 
2026-03-01T12:00:00Z | UPDATE | TABLE | LOADSTONE.PUBLIC.T | ROLE | BENCH | false | 
2026-03-01T12:00:00Z | SELECT | TABLE | LOADSTONE.PUBLIC.T | ROLE | READER | false | 
2026-03-01T12:00:00Z | OWNERSHIP | TABLE | LOADSTONE.PUBLIC.T | ROLE | SYSADMIN | false | 

SHOW GRANTS ON TABLE u
----
created_on timestamp_ltz | privilege text | granted_on text | name text | granted_to text | grantee_name text | grant_option text | granted_by text
2026-03-01T12:00:00Z | SELECT | TABLE | LOADSTONE.PUBLIC.U | ROLE | READER | false | 
2026-03-01T12:00:00Z | OWNERSHIP | TABLE | LOADSTONE.PUBLIC.U | ROLE | SYSADMIN | false | 

SHOW GRANTS ON SCHEMA public
----
created_on timestamp_ltz | privilege text | granted_on text | name text | granted_to text | grantee_name text | grant_option text | granted_by text
2026-03-01T12:00:00Z | OWNERSHIP | SCHEMA | LOADSTONE.PUBLIC | ROLE | SYSADMIN | false | 

SHOW GRANTS ON WAREHOUSE wh
----
created_on timestamp_ltz | privilege text | granted_on text | name text | granted_to text | grantee_name text | grant_option text | granted_by text
2026-03-01T12:00:00Z | OWNERSHIP | WAREHOUSE | WH | ROLE | SYSADMIN | false | 

SHOW GRANTS ON TABLE nowhere
----
error 002003 (42S02): SQL compilation error:\nObject 'NOWHERE' does not exist or not authorized.

GRANT SELECT ON TABLE nowhere TO ROLE bench
----
error 002003 (42S02): SQL compilation error:\nTable 'LOADSTONE.PUBLIC.NOWHERE' does not exist or not authorized.

SELECT IS_ROLE_IN_SESSION('READER'), IS_ROLE_IN_SESSION('BENCH'), IS_ROLE_IN_SESSION('NOBODY')
----
IS_ROLE_IN_SESSION('READER') boolean | IS_ROLE_IN_SESSION('BENCH') boolean | IS_ROLE_IN_SESSION('NOBODY') boolean
t | t | f

USE ROLE reader
----
status text
Statement executed successfully.

SELECT IS_ROLE_IN_SESSION('READER'), IS_ROLE_IN_SESSION('BENCH'), IS_ROLE_IN_SESSION('SYSADMIN'), IS_ROLE_IN_SESSION('PUBLIC')
----
IS_ROLE_IN_SESSION('READER') boolean | IS_ROLE_IN_SESSION('BENCH') boolean | IS_ROLE_IN_SESSION('SYSADMIN') boolean | IS_ROLE_IN_SESSION('PUBLIC') boolean
t | f | f | t

SELECT COUNT(*) FROM u
----
COUNT(*) fixed(38,0)
0

UPDATE t SET id = 1
----
error 003001 (42501): SQL access control error:\nInsufficient privileges to operate on table 'T'.

GRANT UPDATE ON TABLE t TO ROLE reader
----
error 003001 (42501): SQL access control error:\nGrant not executed: Insufficient privileges.

USE ROLE bench
----
status text
Statement executed successfully.

SELECT IS_ROLE_IN_SESSION('READER'), IS_ROLE_IN_SESSION('BENCH')
----
IS_ROLE_IN_SESSION('READER') boolean | IS_ROLE_IN_SESSION('BENCH') boolean
t | t

UPDATE t SET id = 1 WHERE id IN (SELECT id FROM u)
----
number of rows fixed(38,0)
0

INSERT INTO t VALUES (1)
----
error 003001 (42501): SQL access control error:\nInsufficient privileges to operate on table 'T'.

DROP TABLE t
----
error 003001 (42501): SQL access control error:\nInsufficient privileges to operate on table 'T'.

CREATE OR REPLACE TABLE t (id INT)
----
error 003001 (42501): SQL access control error:\nInsufficient privileges to operate on schema 'PUBLIC'.

CREATE HYBRID TABLE h (id INT PRIMARY KEY)
----
error 003001 (42501): SQL access control error:\nInsufficient privileges to operate on schema 'PUBLIC'.

USE ROLE sysadmin
----
status text
Statement executed successfully.

GRANT CREATE TABLE ON SCHEMA public TO ROLE bench
----
status text
Statement executed successfully.

USE ROLE bench
----
status text
Statement executed successfully.

CREATE HYBRID TABLE h (id INT PRIMARY KEY)
----
error 003001 (42501): SQL access control error:\nInsufficient privileges to operate on schema 'PUBLIC'.

CREATE OR REPLACE TABLE t (id INT)
----
error 003001 (42501): SQL access control error:\nInsufficient privileges to operate on table 'T'.

CREATE TABLE mine (id INT)
----
status text
Table MINE successfully created.

DROP TABLE mine
----
status text
MINE successfully dropped.

USE ROLE sysadmin
----
status text
Statement executed successfully.

GRANT CREATE HYBRID TABLE ON SCHEMA public TO ROLE bench
----
status text
Statement executed successfully.

CREATE ROLE second
----
status text
Role SECOND successfully created.

GRANT INSERT ON TABLE t TO ROLE second
----
status text
Statement executed successfully.

GRANT ROLE second TO USER anna
----
status text
Statement executed successfully.

USE ROLE bench
----
status text
Statement executed successfully.

SELECT CURRENT_SECONDARY_ROLES(), IS_ROLE_IN_SESSION('SECOND')
----
CURRENT_SECONDARY_ROLES() text | IS_ROLE_IN_SESSION('SECOND') boolean
{"roles":"SECOND","value":"ALL"} | t

INSERT INTO t VALUES (1)
----
number of rows fixed(38,0)
1

CREATE HYBRID TABLE h (id INT PRIMARY KEY)
----
status text
Table H successfully created.

USE SECONDARY ROLES NONE
----
status text
Statement executed successfully.

SELECT CURRENT_SECONDARY_ROLES(), IS_ROLE_IN_SESSION('SECOND')
----
CURRENT_SECONDARY_ROLES() text | IS_ROLE_IN_SESSION('SECOND') boolean
{"roles":"","value":""} | f

INSERT INTO t VALUES (1)
----
error 003001 (42501): SQL access control error:\nInsufficient privileges to operate on table 'T'.

USE SECONDARY ROLES second
----
status text
Statement executed successfully.

SELECT CURRENT_SECONDARY_ROLES(), IS_ROLE_IN_SESSION('SECOND')
----
CURRENT_SECONDARY_ROLES() text | IS_ROLE_IN_SESSION('SECOND') boolean
{"roles":"SECOND","value":"SECOND"} | t

USE SECONDARY ROLES reader
----
error 002003 (02000): SQL compilation error:\nRole 'READER' does not exist or not authorized.

USE SECONDARY ROLES NONE
----
status text
Statement executed successfully.

USE ROLE public
----
status text
Statement executed successfully.

SELECT TABLE_NAME FROM INFORMATION_SCHEMA.TABLES
----
TABLE_NAME text

SHOW TABLES LIKE 't'
----
created_on timestamp_ltz | name text | database_name text | schema_name text | kind text | comment text | cluster_by text | rows fixed(38,0) | bytes fixed(38,0) | owner text | retention_time text | automatic_clustering text | change_tracking text | search_optimization text | search_optimization_progress text | search_optimization_bytes text | is_external text | enable_schema_evolution text | owner_role_type text | is_event text | budget text | is_hybrid text | is_iceberg text | is_dynamic text | is_immutable text | is_interactive text

USE ROLE reader
----
status text
Statement executed successfully.

SELECT TABLE_NAME FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA = 'PUBLIC' ORDER BY 1
----
TABLE_NAME text
H
T
U

USE ROLE public
----
status text
Statement executed successfully.

SELECT COUNT(*) FROM t
----
error 002003 (42S02): SQL compilation error:\nObject 'T' does not exist or not authorized.

CREATE TABLE t (id INT)
----
error 003001 (42501): SQL access control error:\nInsufficient privileges to operate on schema 'PUBLIC'.

USE ROLE sysadmin
----
status text
Statement executed successfully.

CREATE TABLE guarded (id INT)
----
status text
Table GUARDED successfully created.

SHOW GRANTS ON TABLE guarded
----
created_on timestamp_ltz | privilege text | granted_on text | name text | granted_to text | grantee_name text | grant_option text | granted_by text
2026-03-01T12:00:00Z | SELECT | TABLE | LOADSTONE.PUBLIC.GUARDED | ROLE | READER | false | 
2026-03-01T12:00:00Z | OWNERSHIP | TABLE | LOADSTONE.PUBLIC.GUARDED | ROLE | SNOWSIM | false | 
2026-03-01T12:00:00Z | INSERT | TABLE | LOADSTONE.PUBLIC.GUARDED | ROLE | SYSADMIN | false | 
2026-03-01T12:00:00Z | REFERENCES | TABLE | LOADSTONE.PUBLIC.GUARDED | ROLE | SYSADMIN | false | 
2026-03-01T12:00:00Z | SELECT | TABLE | LOADSTONE.PUBLIC.GUARDED | ROLE | SYSADMIN | false | 
2026-03-01T12:00:00Z | TRUNCATE | TABLE | LOADSTONE.PUBLIC.GUARDED | ROLE | SYSADMIN | false | 
2026-03-01T12:00:00Z | UPDATE | TABLE | LOADSTONE.PUBLIC.GUARDED | ROLE | SYSADMIN | false | 

