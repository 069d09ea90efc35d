package run

import (
	"context"
	"time"
)

// workerRowTimeout is how long the row of a run worker that joins may take. Then the run goes on without it.
const workerRowTimeout = 10 * time.Second

// Why run workers are not placed.
const (
	reasonUnneeded  = "it is not needed any more"
	reasonRunEnding = "the run ends"
)

// startStored goes on with those whose row is stored. The loop has not waited for that.
func (l *scaler) startStored(ctx context.Context) {
	e := l.scale.pendingStarts.Pop()
	switch {
	case l.life.Stopping():
		l.scale.rejectWorkers(ctx, reasonRunEnding, e.Workers...)
	case e.Row.Err() != nil:
		l.scale.rejectWorkers(ctx, "the control store does not take it", e.Workers...)
	case len(e.Workers) == 1 && e.Workers[0].Retiring:
		l.scale.rejectWorkers(ctx, reasonUnneeded, e.Workers...)
	default:
		e.Start(ctx)
	}
	l.scale.onJoined()
}

// failExpired refuses those whose rows take too long, and all of them when the run ends.
func (l *scaler) failExpired(ctx context.Context, now time.Time) {
	over := l.scale.pendingStarts.TakeExpired(now, l.life.Stopping())
	why := "the control store has not taken it in time"
	if l.life.Stopping() {
		why = reasonRunEnding
	}
	for _, e := range over {
		l.scale.rejectWorkers(ctx, why, e.Workers...)
	}
	if len(over) > 0 {
		l.scale.onJoined()
	}
}
