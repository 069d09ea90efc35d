package run

import (
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/run/lifecycle"
)

// facts are what is known of a run: its loop keeps them, and the parts of the loop that decide read them. What run
// workers are to bear is the scaler's to change, everything else the loop's.
type facts struct {
	runID string
	// sc is the scenario as users have changed it while the run goes on.
	sc   engine.Scenario
	life *lifecycle.Machine
	// plan is nil before the target is prepared.
	plan *prepare.Prepared
	WorkerTable
}
