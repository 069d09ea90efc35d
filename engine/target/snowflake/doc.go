// Package snowflake drives Snowflake through gosnowflake.
//
// A load connection is one Snowflake session. What it runs goes to gosnowflake's
// connection directly, without database/sql in between, so that nothing is
// pooled, retried or prepared behind the load engine's back:
//
//	Exec ── write ──▶ ExecContext ─────────▶ rows affected
//	     ── read ───▶ QueryArrowStream ────▶ rows counted; parts of a large result are
//	     │                                   fetched and thrown away, nothing is decoded
//	     └─ row that others refer to ──────▶ QueryContext, the first row is kept
//
// Values are bound, never written into the text. gosnowflake describes no
// parameters, so the type of a bind follows from the plugin's value (see bind.go).
//
// # Time limits
//
// The statement timeout of the run ends a statement from here: gosnowflake gives
// up the request and sends an abort-request for it, and Exec returns when that has been
// answered. The session's STATEMENT_TIMEOUT_IN_SECONDS, rounded up, is the net below it.
// Cancel and Close do the same. A statement that could not be aborted breaks its
// connection: nobody knows whether it still runs.
//
// # Failures
//
// gosnowflake repeats requests that met 429, 503 or a lost TCP connection, with
// pauses of seconds, and would hide them from the figures. Load connections do not
// let it: each such failure is an execution's error, and the run's own retry
// policy, which counts, decides. A session whose token has expired is renewed by
// gosnowflake inside the execution; one that cannot be renewed, and any that
// lost its TCP connection in the middle of a statement, is broken and opened anew by
// the load engine.
//
// # Trust
//
// A DSN is read by package dsn, against a list of what is allowed, so
// that it cannot make gosnowflake read files, open a browser or use a proxy. All requests go through
// one transport (transport.go), which lets them reach the account and the storage that
// its results name, and nothing else. PUT and GET, which gosnowflake would
// carry out on local files, are refused. Identities of this machine and access tokens
// of OAuth clients are fetched by identity.go: identities only where the process's
// environment allows them, and for Snowflake's hosts alone.
package snowflake
