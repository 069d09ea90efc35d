// Package orchestrator owns the life of runs: it prepares the target, places
// run workers on nodes, moves the run through its phases, ends it, and computes
// what it showed.
//
// Each live run has one loop, a goroutine that alone decides. Its decisions come
// from engine/lifecycle, which is pure; the loop carries them out:
//
//	nodes ──messages──▶ loop ──happenings──▶ lifecycle ──actions──▶ loop ──▶ nodes, keeper, prepare, finish
//
// The loop never waits for the control store, a node or a subscriber. Writes go
// through the run's keeper, in order, and are retried while the store is away.
// A control event is stored before it is sent, except STOP, which is sent at
// once; when the store does not answer within half a second the others are sent
// too and stored when it is back. Only the owner of a run, fenced by its epoch,
// makes events, so it knows their sequence ids beforehand.
//
// A server that finds live runs at its start ends them as FAILED, with the
// interval that was lost, and computes figures from the parts their workers left.
package orchestrator
