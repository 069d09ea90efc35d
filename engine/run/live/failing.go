package live

import (
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// Over half of the operations fail for so long, so many of them: what they ask for is not there any more.
const (
	failHold  = 3 * time.Second
	failCount = 20
)

// failing follows the seconds in which over half of the operations failed.
type failing struct {
	since  time.Time // zero in a second in which they did not
	failed int64
	worst  float64
}

// observeFailures judges whether operations went on failing, as where a table was dropped. Seconds in which none ended
// do not interrupt that.
func (v *Validity) observeFailures(at time.Time, snapshots []engine.WorkerSnapshot) {
	var ended, failed int64
	covered := 0.0
	for i := range snapshots {
		if s := &snapshots[i]; s.Phase == engine.PhaseMeasurement {
			ended, failed, covered = ended+s.TickStarted, failed+s.TickErrors, max(covered, s.TickSeconds)
		}
	}
	f := &v.failing
	switch share := float64(failed) / float64(ended); {
	case ended == 0:
		return
	case share <= errorLimit:
		*f = failing{}
		return
	case f.since.IsZero():
		f.since = at.Add(-time.Duration(covered * float64(time.Second)))
		fallthrough
	default:
		f.failed, f.worst = f.failed+failed, max(f.worst, share)
	}
	if at.Sub(f.since) < failHold || f.failed < failCount {
		return
	}
	v.mark(engine.CauseFailing, "", f.since, at, 100*f.worst, engine.Note{Code: engine.AboutFailing})
}

// SetFailing replaces what the ticks showed of operations that went on failing by what the record says: it knows the
// last second too.
func (v *Validity) SetFailing(times []engine.FailingTime) {
	v.failing = failing{}
	v.causes = slices.DeleteFunc(v.causes, func(i *interval) bool { return i.cause == engine.CauseFailing })
	delete(v.open, engine.CauseFailing+"\x00")
	delete(v.unlisted, engine.CauseFailing)
	for _, t := range times {
		to := t.From.Add(time.Duration(t.Seconds * float64(time.Second)))
		v.mark(engine.CauseFailing, "", t.From.Time, to, 100*float64(t.Errors)/float64(t.Operations),
			engine.Note{Code: engine.AboutFailing})
		if i := v.open[engine.CauseFailing+"\x00"]; t.ToTheEnd && i != nil {
			i.final = true
		}
	}
}

// failedAtEnd reports whether a stretch of errors that was not over when the measurement ended is to be told: nothing
// says for how long it would have gone on, so that it counts however short it was.
func (o Outcome) failedAtEnd() bool {
	return !o.Search && o.Operations > 0 && float64(o.Errors) <= errorLimit*float64(o.Operations)
}

// failed reports whether a stretch of errors weighs in the figures, and is not nearly all of them.
func (o Outcome) failed() bool {
	if o.Search || o.Operations == 0 {
		return false
	}
	share := float64(o.Errors) / float64(o.Operations)
	return share > errorNote && share <= errorLimit
}
