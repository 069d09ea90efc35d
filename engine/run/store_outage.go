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

// failureOf is why a run worker has failed. Where it had no contact because this server could not renew its lease of
// the run, the cause is the control store, and not the run worker.
func (l *runLoop) failureOf(m protocol.WorkerState) string {
	if m.Err == nil {
		return ""
	}
	lonely := m.Err.Code == engine.CodeUnavailable && m.Err.Hint == "" && l.life.Started()
	if away := l.storeOutage(l.svc.opts.Store.Lease()); lonely && away != "" {
		return fmt.Sprintf("%s stopped by itself: %s, and a server that cannot renew its lease of a run may not go on with "+
			"its load.", m.WorkerID, away)
	}
	return engine.ErrorText(m.Err)
}
