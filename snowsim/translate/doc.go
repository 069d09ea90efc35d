// Package translate turns the Snowflake SQL that Loadstone and its users send
// into Postgres SQL, or into an answer made here.
//
// A statement is split into tokens (syntax) and parsed by recursive descent; what is
// parsed is written as Postgres SQL at once, there is no tree in between. Three
// packages each read one kind of statement: query what returns and changes rows, ddl
// what defines objects, metadata what asks about them. They share expression, and the
// catalog of what the account has. This package reads what concerns the session (USE,
// ALTER SESSION, transactions), and remembers plans of texts that repeat.
//
// Every identifier leaves the translator in quotes, every table in a schema that
// stands for a Snowflake schema ("DB.SCHEMA"), and every function comes from a list, so
// no statement reaches more of Postgres than the stand-in means to offer.
//
// What adapters, workloads, tests and the documents send is in scope, and the plain SQL of
// a user's own templates. Out of scope are objects besides tables and views (stages, streams,
// tasks, procedures), files and COPY, Time Travel and cloning, and changes to a table that
// has rows beyond adding and dropping columns: they are refused with 000002 and a sentence
// that they are not simulated (plan.NotSimulated), a function that is in no list with 002140.
// docs/snowflake.md lists what is understood and what is not.
package translate
