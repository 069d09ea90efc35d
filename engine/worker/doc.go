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
// run's phase.
//
// # Contact
//
// A run worker bears load while the owner of its run, in the latest epoch that was heard of,
// acknowledges the Statuses of its node. Contact is counted from when the node sent the last
// one that was acknowledged; nothing else that is heard is contact, and without it no load
// begins. A minute later the load ends: the connections look at that deadline before each
// operation, and the run worker drains, says why and leaves. Others may have its load a
// moment later. The clock counts while the process is stopped, and not while the machine is
// suspended: what is left of the minute then is used up after it has woken.
//
// Every execution is recorded in the node's spool before the run worker leaves;
// parts stay there until the server has acknowledged them, across restarts of
// the process too.
package worker
