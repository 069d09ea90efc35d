package live

import (
	"fmt"
	"maps"
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
	maps.DeleteFunc(v.open, func(_ string, i *interval) bool { return i.cause == engine.CauseFailing })
	delete(v.unlisted, engine.CauseFailing)
	for _, t := range times {
		to := t.From.Add(time.Duration(t.Seconds * float64(time.Second)))
		subject, about := "", engine.Note{Code: engine.AboutFailing}
		if t.Kind != nil {
			// What lay between two times of a statement is not known here, and each is told with its own counts.
			subject = fmt.Sprintf("%s %s at %d", t.Kind, t.StatementID, t.From.UnixNano())
			about.Kind, about.Statement, about.Count, about.Total = *t.Kind, t.StatementID, t.Errors, t.Operations
		}
		v.mark(engine.CauseFailing, subject, t.From.Time, to, 100*float64(t.Errors)/float64(t.Operations), about)
		// A statement is told however few its executions are of all.
		if i := v.open[engine.CauseFailing+"\x00"+subject]; i != nil && (t.ToTheEnd || t.Kind != nil) {
			i.final = true
		}
	}
}

// wholeShare of a measurement in which operations went on failing is all of it: its errors tell of that.
const wholeShare = 0.95

// listsFailing reports whether a stretch of errors is to be told: it is one in a measurement that went otherwise, and
// it weighs in the figures, or nothing says for how long it would have gone on, or it is of a statement.
func (v *Validity) listsFailing(i *interval) bool {
	o := v.outcome
	if o.Search || o.Operations == 0 {
		return false
	}
	share := float64(o.Errors) / float64(o.Operations)
	if share > errorLimit && i.to.Sub(i.from) >= time.Duration(wholeShare*float64(o.To.Sub(o.From))) {
		return false
	}
	return i.final || share > errorNote
}

// withShare says of the failures of a statement how much of all operations they were.
func (v *Validity) withShare(i interval) interval {
	if n := v.outcome.Operations; i.cause == engine.CauseFailing && i.about.Total > 0 && n > 0 {
		i.about.Percent = 100 * float64(i.about.Count) / float64(n)
	}
	return i
}
