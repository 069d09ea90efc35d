// Package catalog keeps what a simulated account has: databases, schemas, tables,
// roles and the privileges on them, and what its contract allows.
//
// Postgres holds the truth. A Snowflake schema is a Postgres schema called
// "DB.SCHEMA"; what a Postgres table cannot say of itself (its Snowflake type,
// clustering key, unenforced keys, comment) is JSON in the table's Postgres comment,
// so that it is made and dropped with the table and in its transaction. Snowflake's
// rules that Postgres does not have live in functions, types and views of the Postgres
// schema snowsim (prelude.sql), which OpenAccount installs.
//
// Names are kept here in both worlds (Name, Quote, Display), and so are errors: Error
// turns one of Postgres into what an account would report.
package catalog
