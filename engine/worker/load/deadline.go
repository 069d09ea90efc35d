package load

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// ErrDeadlinePassed is the error of a group whose deadline has passed.
var ErrDeadlinePassed = &engine.Error{Code: engine.CodeUnavailable,
	Message: "The time until which load may be issued has passed.",
	Hint:    "The server that owns the run could not be heard."}

// SetDeadline says until when operations may be issued; the zero time is that none may. Each
// connection looks at it before each operation, with the reading of the clock that it takes
// anyway, so that a process that was stopped issues nothing of what became due meanwhile.
// A group that finds it passed fails with ErrDeadlinePassed. Without a call there is no deadline.
//
// Once the load has begun a deadline that has passed is not moved any more, although nothing was due
// since: others may have the load by then, and a group that went on would be one too many.
func (g *Group) SetDeadline(until time.Time) {
	select {
	case <-g.begun:
		if g.pastDeadline(g.clock.now()) {
			return
		}
	default:
	}
	g.deadline.Store(g.clock.at(until))
}

// pastDeadline reports whether nothing may be issued at now, and ends the group then.
func (g *Group) pastDeadline(now int64) bool {
	if now < g.deadline.Load() {
		return false
	}
	g.fail(ErrDeadlinePassed)
	return true
}

// codeDeadlinePassed is the code of a transaction that was cut off by the deadline.
const codeDeadlinePassed = "out_of_contact"

// cutShort ends the group in work before its next operation.
func (s *slot) cutShort(g *Group) {
	s.errorText = ""
	s.lastError = g.errors.Add(engine.ExecutionError{Class: engine.ErrClassCancelled, Code: codeDeadlinePassed,
		Message: "cut off: the time until which operations may be issued had passed"})
	s.progress.Cut(s.lastError)
}

// refuse drops the group in work, which has not begun.
func (s *slot) refuse(g *Group) {
	if g.queue != nil {
		g.queue.drop(&s.arrival, droppedStopped)
		g.queue.finish()
		return
	}
	s.batch.Next -= len(s.work.Ops) // another slot may have it, which drops it too
	s.books.drawn.Add(-1)
}
