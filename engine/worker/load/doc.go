// Package load issues a run worker's operations and records every one.
//
// A Group owns the connections of one run worker. Each connection has a slot;
// an I/O engine drives the slots: event loops on Linux, goroutines elsewhere and over TLS:
//
//	plugin.Stream ──whole batches──▶ source ────── batch ─────▶ slot ──Exec──▶ target.Conn
//	                                                            │
//	               histograms, counters ◀── collector ◀──chunks─┘
//	                        Sink ◀──────────────┘
//
// In a closed loop each slot takes its operations itself: from a batch of its own where a
// goroutine drives it, from the loop's where an event loop does. In an open loop (QPS)
// operations are due on a schedule that nothing but the configuration moves:
//
//	schedule ─due times─▶ dispatcher ─arrivals─▶ queue ─▶ slot ──Exec──▶ target.Conn
//	plugin.Stream ─▶ ahead ─batches─┘
//
// The schedule is pure. The dispatcher is one goroutine that waits until the
// next operation is due and offers it, late or not; the queue gives it to a free
// connection, lets it wait for one, or drops it when max_in_flight operations are due
// and not finished. The I/O engine executes what it is handed. Latency is
// counted from the due time: schedule lag (the generator's lateness), pool wait
// (no connection was free) and service time add up to it. An operation belongs to the
// phase in which it was due. At Stop no further operation becomes due; what is
// due already is executed, because leaving the queue out would hide its
// latencies; a run that is given up drops it instead (DropQueued), and counts it.
//
// Nothing between two operations of a slot allocates, does I/O or takes a lock
// that another slot may hold for long: batches are taken whole, one lock a
// batch; records go into a chunk that only the slot writes, or only its event loop; the collector
// reads them behind it. When the collector cannot keep up, the pool of chunks runs dry,
// slots wait for a chunk, and the wait is reported as stalled: memory is
// bounded, and no record is ever dropped.
//
// The accounting identity holds whenever no operation is in flight:
// scheduled = started + dropped, started = succeeded + failed = recorded.
// A transaction is one operation; its statements are recorded beside it and counted apart.
// Operations are repeated only as the workload's retry policy says, and count
// once. One whose connection broke has failed; one cut off at the end of Drain
// has failed with the class cancelled.
package load
