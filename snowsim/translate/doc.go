// Package translate turns the Snowflake SQL that Loadstone and its users send
// into Postgres SQL, or into an answer made in Go.
//
// A Parser reads a statement by recursive descent and writes Postgres SQL at once; there
// is no tree in between. Its files follow the kinds of statements: select.go and dml.go
// read and change rows, createtable.go and its neighbours define objects, show.go and
// history.go describe the account, session.go changes the session. All of them share
// the expressions (expression.go, call.go) and the catalog of the account (account.go).
//
// Every identifier leaves the translator in quotes, every table in a schema that
// stands for a Snowflake schema ("DB.SCHEMA"), and every function comes from a list
// (functions.go, specialfunctions.go), so that no statement reaches more of Postgres
// than the stand-in offers.
//
// What adapters, enrichment, exports and the documented demonstrations send is in scope,
// and plain SQL of a user's own templates. Everything else is refused: a statement with
// 000002 and a sentence that it is not simulated (protocol.NotSimulated), a function
// that is in no list with 002140. docs/guides/snowflake-stand-in.md lists what is understood.
package translate
