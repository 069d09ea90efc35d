// Package load issues a run worker's operations and records every one.
//
// A Group owns the connections of one run worker. Each connection has a slot;
// an I/O engine (goroutines now) drives the slots:
//
//	plugin.Stream ──whole batches──▶ source ──private batch──▶ slot ──Exec──▶ target.Conn
//	                                                            │
//	               histograms, counters ◀── collector ◀──chunks─┘
//	                        Sink ◀──────────────┘
//
// Nothing between two operations of a slot allocates, does I/O or takes a lock
// that another slot may hold for long: batches are taken whole, one lock a
// batch; records go into a chunk that only the slot writes; the collector
// reads them behind it. When the collector cannot keep up, the pool of chunks runs dry,
// slots wait for a chunk, and the wait is reported as stalled: memory is
// bounded, and no record is ever dropped.
//
// The accounting identity holds whenever no operation is in flight:
// scheduled = started + dropped, started = succeeded + failed = recorded.
// Operations are never retried. One whose connection broke has failed; one cut
// off at the end of Drain has failed with the class cancelled.
package load
