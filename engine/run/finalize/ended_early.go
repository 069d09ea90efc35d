package finalize

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// EndedEarly says of a run that nobody stopped that its workload had no more
// operations before its time was over; none of any other.
func EndedEarly(r engine.Run) engine.Note {
	if r.StopReason != engine.StopDurationElapsed || r.Scenario.Workload.IsSearch() {
		return engine.Note{}
	}
	planned := r.Scenario.Workload.Duration()
	if r.WarmupEndTime.IsZero() {
		return engine.Note{Code: engine.NoteEndedInWarmup, Planned: planned.Seconds()}
	}
	took := r.MeasurementEndTime.Sub(r.WarmupEndTime.Time)
	if r.MeasurementEndTime.IsZero() || took >= planned-5*time.Millisecond { // stored times are rounded
		return engine.Note{}
	}
	return engine.Note{Code: engine.NoteEndedEarly, Seconds: took.Seconds(), Planned: planned.Seconds()}
}
