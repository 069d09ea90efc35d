// Package wire is PostgreSQL's protocol as far as a load connection speaks it: the
// messages of a prepared statement's round trip, values in the form that the server
// takes, and answers, of which rows are counted and nothing else is decoded.
//
// A Link carries a request and its answer in one write and one read. Answer can be fed
// by whoever reads instead, an event loop for one. Nothing here allocates once a
// connection has run for a moment; errors are the exception. Log-in, TLS and preparing
// are pgconn's, and whose connection it is and how long it may take are the caller's.
package wire
