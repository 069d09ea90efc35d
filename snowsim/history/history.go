// Package history stores what the stand-in has executed, as an account does:
// each execution with its times, and the aggregates of every minute.
//
// Memory is bounded: an execution takes some eighty bytes, texts and contexts
// are stored once, and beyond the limit the oldest executions are forgotten. As on
// an account, executions become visible only after a lag, and short statements
// on hybrid and interactive tables are in the aggregates only.
package history

import "time"

// Context is what many executions have in common.
type Context struct {
	SessionID     int64
	User          string
	Role          string
	Database      string
	Schema        string
	Warehouse     string
	WarehouseSize string
	WarehouseType string
	Cluster       int
	Tag           string
}

// Record is one execution. Times are the account's, UTC.
type Record struct {
	Context
	QueryID   [16]byte
	Text      string
	QueryType string // "SELECT", "INSERT", "CREATE_TABLE" …
	Start     time.Time
	// End is Start plus everything below.
	End                time.Time
	Compilation        time.Duration
	QueuedProvisioning time.Duration // the warehouse was starting or resuming
	QueuedOverload     time.Duration
	Execution          time.Duration
	RowsProduced       int64
	BytesScanned       int64
	ErrorCode          string // empty when it succeeded
	ErrorMessage       string
	// Table is the type of the table: "none", "standard", "hybrid", "interactive".
	Table string
	// Throttled counts the requests to hybrid storage that had to wait; it is in the aggregates only.
	Throttled int64
}

// Total is the time from start to end.
func (r *Record) Total() time.Duration { return r.End.Sub(r.Start) }

// Filter selects executions.
type Filter struct {
	// From and To bound the end of the execution, both included; zero is unbounded.
	From, To time.Time
	// User, Warehouse and Session narrow what counts for the limit; the zero value does not.
	User, Warehouse string
	Session         int64
	// Visible, if any, says whose executions may be seen, by user and warehouse.
	Visible func(user, warehouse string) bool
	// Limit is how many of the latest are returned; 0 is 100, as in Snowflake.
	Limit int
	// Now is the time of the query: what ended after Now minus the lag is not visible yet.
	Now time.Time
}

// Aggregate is one row of AGGREGATE_QUERY_HISTORY: all executions of one text
// in one context in one interval, including those that QUERY_HISTORY leaves out.
type Aggregate struct {
	Context
	Text           string
	QueryType      string
	IntervalStart  time.Time
	IntervalEnd    time.Time
	Calls          int64
	Total          Distribution
	Compilation    Distribution
	Execution      Distribution
	QueuedOverload Distribution
	Throttled      int64
}

// Distribution summarizes a duration, in milliseconds.
type Distribution struct {
	Sum, Avg, Min, Max, Median, P90, P99, P999, StdDev float64
}
