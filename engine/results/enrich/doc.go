// Package enrich asks a database's own query history what it knows of a run's
// executions, and joins the answers to the record by query id.
//
// It is done once the run is over, by the server only. A history may lag behind
// and may leave executions out, so it is polled: each poll reads the history page
// by page, backwards in time, and keeps what matches an execution that had no match
// yet. Course decides when to poll again and when to stop, Cursor which page is
// next; both are pure functions of what has happened. What was matched is written to Parquet parts
// beside the executions, one part for each poll, so that a run whose enrichment
// was interrupted goes on where it stopped.
//
// Memory is one entry of 32 bytes for each execution, whatever the history holds.
package enrich
