// Package run owns the life of runs: it prepares the target, places
// run workers on nodes, moves the run through its phases, ends it, and computes
// what it showed.
//
// Each live run has one loop, a goroutine that alone decides. Its decisions come
// from engine/run/lifecycle, which is pure; the loop carries them out:
//
//	nodes ─messages─▶ loop ─events─▶ lifecycle ─actions─▶ loop ─▶ nodes, writer, prepare, outcome
//
// The loop never waits for the control store, a node or a subscriber. Writes go
// through the run's writer, in order, and are retried while the store is away.
// A control event is stored before it is sent, except STOP, which is sent at
// once; when the store does not answer within half a second the others are sent
// too and stored when it is back. Only the owner of a run, fenced by its epoch,
// makes events, so it knows their sequence ids beforehand.
//
// What follows a run's end is engine/run/finalize's, and runs that lost the process that
// carried them are engine/run/recovery's. The loop speaks to nodes through engine/cluster/nodes.
package run
