package run

import (
	"context"
	"time"
)

// enterLimit is how long the row of a run worker that joins may take. Then the run goes on without it.
const enterLimit = 10 * time.Second

// Why run workers are not placed.
const (
	unneeded = "it is not needed any more"
	ending   = "the run ends"
)

// entered goes on with those whose row is stored. The loop has not waited for that.
func (l *scaler) entered(ctx context.Context) {
	e := l.scale.entrance.Next()
	switch {
	case l.life.Stopping():
		l.scale.refuse(ctx, ending, e.Workers...)
	case e.Row.Err() != nil:
		l.scale.refuse(ctx, "the control store does not take it", e.Workers...)
	case len(e.Workers) == 1 && e.Workers[0].Retiring:
		l.scale.refuse(ctx, unneeded, e.Workers...)
	default:
		e.Begin(ctx)
	}
	l.scale.joined()
}

// giveUp refuses those whose rows take too long, and all of them when the run ends.
func (l *scaler) giveUp(ctx context.Context, now time.Time) {
	over := l.scale.entrance.Overdue(now, l.life.Stopping())
	why := "the control store has not taken it in time"
	if l.life.Stopping() {
		why = ending
	}
	for _, e := range over {
		l.scale.refuse(ctx, why, e.Workers...)
	}
	if len(over) > 0 {
		l.scale.joined()
	}
}
