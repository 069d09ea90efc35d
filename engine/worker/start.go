package worker

import (
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

const (
	// maxStartDelay is how far ahead a START may lie. One that lies further is not of this run's clock,
	// and the load begins at once.
	maxStartDelay = 10 * time.Second
	// lateLogThreshold is from what on a run worker that begins late says so in the log of its run.
	lateLogThreshold = 20 * time.Millisecond
)

// tryBegin begins the load that has been started, once there is contact with who owns the run,
// and the instant has come that START named.
func (w *runWorker) tryBegin() {
	if w.load == nil || !w.started || w.stopping || w.loadStarted || !w.hadContact {
		return
	}
	if !w.startAt.IsZero() {
		switch ahead := w.startAt.Sub(w.ownerNow()); { // both without monotonic readings
		case ahead > maxStartDelay:
			w.log(engine.LogWarning, "START names an instant that is %.0f s ahead by the clock of %s, compared with the "+
				"server's: the load of %s begins at once", ahead.Seconds(), w.node.opts.NodeID, w.a.WorkerID)
			w.startAt = time.Time{}
		case ahead > 0:
			w.clearBegin()
			w.startsAt = time.NewTimer(ahead)
			return
		}
	}
	w.loadStarted = true
	w.startLoad()
}

// ownerNow is the present moment by the clock of who owns the run, as it is known best now.
// What is recorded is on a line that was set when the load was opened; both differ by no more
// than the error that is stated.
func (w *runWorker) ownerNow() time.Time {
	if w.a.Clock != nil {
		return w.a.Clock.Now().Round(0)
	}
	now := w.node.clock.Now()
	ahead, _ := w.server.estimate(now)
	return now.Round(0).Add(ahead + w.a.ClockAhead)
}

// began is when the load has begun, by the owner's clock, and how long after the instant at which
// it could have.
func (w *runWorker) began() (at time.Time, late time.Duration) {
	at = w.ownerNow()
	if w.startAt.IsZero() {
		return at, 0
	}
	// Who joins a run that has begun is late by what it takes from when it is ready.
	late = max(min(at.Sub(w.startAt), time.Since(w.readyAt)), 0)
	if late >= lateLogThreshold {
		w.logWith(map[string]any{"start_at": engine.At(w.startAt), "late_ms": engine.Milliseconds(late)}, engine.LogWarning,
			fmt.Sprintf("%s began %.0f ms after the instant that START named: it heard of it too late, or its machine was busy",
				w.a.WorkerID, engine.Milliseconds(late)))
	}
	return at, late
}

// beginDue fires when the instant has come; nil while none is waited for.
func (w *runWorker) beginDue() <-chan time.Time {
	if w.startsAt == nil {
		return nil
	}
	return w.startsAt.C
}

// clearBegin waits for no instant any more.
func (w *runWorker) clearBegin() {
	if w.startsAt != nil {
		w.startsAt.Stop()
		w.startsAt = nil
	}
}
