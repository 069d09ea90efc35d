// Package ddl reads the statements that define what an account has: CREATE, ALTER and
// DROP of databases, schemas, tables, warehouses and roles, COMMENT ON, GRANT and
// REVOKE. What it changes in Postgres and in the catalog happens in one transaction.
package ddl
