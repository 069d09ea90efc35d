package scaling

import (
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// Target is a run worker with the target that it is told.
type Target struct {
	WorkerID string
	Group    int
	engine.WorkerTarget
}

// TargetChange is what the targets of one change have in common.
type TargetChange struct {
	Reason string
	// At is when the change takes effect, Ramp how long it takes.
	At     time.Time
	Ramp   time.Duration
	StepID string
	Step   protocol.Step
}

// Events are the events of a change, one explicit one for each run worker. A
// run worker is all of its group, and the group goes with it: its retirement
// is told to the group.
func (c TargetChange) Events(workers []Target) []engine.Event {
	out := make([]engine.Event, 0, len(workers))
	for _, w := range workers {
		at, group, n := engine.At(c.At), w.Group, w.TargetConnections
		d := engine.EventData{Scope: engine.ScopeWorker, WorkerID: w.WorkerID, WorkerGroupID: &group, TargetConnections: &n,
			TargetQPS:   w.TargetQPS,
			EffectiveAt: &at, Reason: c.Reason, RampSeconds: c.Ramp.Seconds(),
			StepID: c.StepID, StepNumber: c.Step.Number, SettleSeconds: c.Step.Settle.Seconds(),
			StepSeconds: c.Step.Length.Seconds()}
		if c.Reason == engine.TargetRetire {
			d.Scope = engine.ScopeWorkerGroup
		}
		out = append(out, engine.Event{Type: engine.EventSetWorkerTarget, Data: d})
	}
	return out
}

// StepID names a step of a search, the same in its events, its history and the payload.
func StepID(runID string, number int) string {
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte(runID+"/"+strconv.Itoa(number))).String()
}

// FirstRate is the rate of a run before anything changes it, nil in a closed
// loop and where the workload paces itself.
func FirstRate(sc engine.Scenario) *float64 {
	w := WorkerWorkload(sc)
	if rate := w.StartRate(); w.OpenLoop() && w.Arrival != engine.ArrivalWorkload && rate > 0 {
		return &rate
	}
	return nil
}

// FirstTargets are the targets that a run begins with, by run worker.
func FirstTargets(sc engine.Scenario, shares []int) map[string]engine.WorkerTarget {
	out := make(map[string]engine.WorkerTarget, len(shares))
	for i, n := range shares {
		t := engine.WorkerTarget{TargetConnections: n}
		if rate := FirstRate(sc); rate != nil {
			own := *rate / float64(len(shares))
			t.TargetQPS = &own
		}
		out[WorkerID(i)] = t
	}
	return out
}

// WorkerID names the run worker of that number.
func WorkerID(i int) string { return fmt.Sprintf("worker-%d", i) }
