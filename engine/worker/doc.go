// Package worker is a node: a process that hosts run workers and carries the
// load of runs.
//
// A run worker passes through
//
//	STARTING ─connected→ READY ─START→ RUNNING ─STOP→ DRAINING → COMPLETED
//	    └──────────────────┴─────────────┴──error──────┴───────→ FAILED
//
// It follows the run's control events: each at most once, in the order of their
// sequence ids, and only those that address it. RunState, the absolute state,
// stands in for events that were lost. A run worker that joins late inherits the
// run's phase. One whose node has not heard from a server for a minute stops by
// itself, so that no load outlives the one who watches it.
//
// Every execution is recorded in the node's spool before the run worker leaves;
// parts stay there until the server has acknowledged them, across restarts of
// the process too.
package worker
