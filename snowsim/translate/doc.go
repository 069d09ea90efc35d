// Package translate turns the Snowflake SQL that Loadstone and its users send
// into Postgres SQL, or into an answer made here.
//
// A statement is split into tokens and parsed by recursive descent; what is
// parsed is written as Postgres SQL at once, there is no tree in between. Every
// identifier leaves this package in quotes, every table in a schema that stands
// for a Snowflake schema ("DB.SCHEMA"), and every function comes from a list, so
// no statement reaches more of Postgres than the stand-in means to offer.
//
// Snowflake's rules that Postgres does not have live in functions, types and
// views of the Postgres schema snowsim (prelude.sql), which New installs. What a
// Postgres table cannot say of itself (its Snowflake type, clustering key,
// unenforced keys, comment) is JSON in the table's Postgres comment, so that it is
// made and dropped with the table and in its transaction.
//
// docs/snowflake.md lists what is understood and what is not.
package translate
