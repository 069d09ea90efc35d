// Package query reads the statements that return and change rows: SELECT with joins,
// common tables, set operations and QUALIFY, INSERT, UPDATE, DELETE, MERGE and
// TRUNCATE. It also reads what may stand in FROM besides tables: INFORMATION_SCHEMA,
// GENERATOR and RESULT_SCAN; the histories are given to it.
package query
