package run

import (
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// outageReported is within what of the store's return a run worker says that it has stopped because it was away.
const outageReported = 10 * time.Second

// storeOutage says since when and for how long the control store is away, or was until a moment ago; "" where it is not
// and was not, or for less than atLeast.
func (l *runLoop) storeOutage(atLeast time.Duration) string {
	from, to := l.writer.LastOutage()
	end := to
	if to.IsZero() {
		end = time.Now()
	}
	if from.IsZero() || end.Sub(from) < atLeast || time.Since(end) > outageReported {
		return ""
	}
	return outageText(l.clock.At(from), end.Sub(from), to.IsZero())
}

func outageText(from time.Time, took time.Duration, still bool) string {
	since := from.UTC().Format(engine.TimeLayout)
	if still {
		return fmt.Sprintf("the control store has been away since %s (for %.0f s)", since, took.Seconds())
	}
	return fmt.Sprintf("the control store was away for %.0f s, from %s on", took.Seconds(), since)
}

// failureOf is why a run worker has failed.
func (l *runLoop) failureOf(m protocol.WorkerState) string {
	if m.Err == nil || !l.life.Started() {
		return failureText(m, "")
	}
	return failureText(m, l.storeOutage(l.svc.opts.Store.Lease()))
}

// failureText is why a run worker has failed while the control store was away for as long as a lease, as away says, or
// was not. Where the run worker had no contact because this server could not renew its lease of the run, the cause is
// the control store, and not the run worker. One that went with its node has a cause of its own.
func failureText(m protocol.WorkerState, away string) string {
	switch {
	case m.Err == nil:
		return ""
	case away != "" && m.WasOutOfContact():
		return fmt.Sprintf("%s stopped by itself: %s, and a server that cannot renew its lease of a run may not go on with "+
			"its load.", m.WorkerID, away)
	}
	return engine.ErrorText(m.Err)
}
