package finalize

import (
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// EndedEarly says of a run that nobody stopped that its workload had no more
// operations before its time was over; "" for any other.
func EndedEarly(r engine.Run) string {
	if r.StopReason != engine.StopDurationElapsed || r.Scenario.Workload.IsSearch() {
		return ""
	}
	planned := r.Scenario.Workload.Duration()
	if r.WarmupEndTime.IsZero() {
		return fmt.Sprintf("The workload ended by itself in the warm-up: nothing of the %.6g s was measured.",
			planned.Seconds())
	}
	took := r.MeasurementEndTime.Sub(r.WarmupEndTime.Time)
	if r.MeasurementEndTime.IsZero() || took >= planned-5*time.Millisecond { // stored times are rounded
		return ""
	}
	return fmt.Sprintf("The workload ended by itself after %.3g of %.6g s: it had no more operations.", took.Seconds(),
		planned.Seconds())
}
