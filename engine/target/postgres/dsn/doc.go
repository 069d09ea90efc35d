// Package dsn reads connection strings of Postgres: URLs and lists of key=value pairs,
// as libpq and pgx take them.
//
// It shows them without their secrets, puts saved secrets back into what was shown only
// where they lead to the same server, and on a server refuses what reaches into the
// machine (Strict). Where the two readings of a text could differ, ours and pgx's, the
// text is written anew, so that what is shown is what is connected to.
package dsn
