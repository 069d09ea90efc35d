package scaling

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// TestATargetEventHasEveryFieldOfTheContract: the shape is the one that the source document gives.
func TestATargetEventHasEveryFieldOfTheContract(t *testing.T) {
	rate := 250.0
	at := time.Date(2026, 1, 23, 10, 15, 30, 0, time.UTC)
	about := TargetChange{Reason: engine.TargetStepAdvance, At: at, Ramp: 5 * time.Second, StepID: StepID("r", 3),
		Step: protocol.Step{Number: 3}}
	worker := Target{WorkerID: "worker-3", Group: 3,
		WorkerTarget: engine.WorkerTarget{TargetConnections: 42, TargetQPS: &rate}}
	fields := func(a TargetChange) map[string]any {
		t.Helper()
		events := a.Events([]Target{worker})
		if len(events) != 1 || events[0].Type != engine.EventSetWorkerTarget {
			t.Fatalf("%+v", events)
		}
		text, err := json.Marshal(events[0].Data)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	got := fields(about)
	want := map[string]any{"scope": "WORKER", "worker_id": "worker-3", "worker_group_id": 3.0, "target_connections": 42.0,
		"target_qps": 250.0,
		"step_id":    StepID("r", 3), "step_number": 3.0, "effective_at": "2026-01-23T10:15:30.000Z", "ramp_seconds": 5.0,
		"reason": "step_advance"}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %v, want %v", name, got[name], value)
		}
	}
	if StepID("r", 3) == StepID("r", 4) || StepID("r", 3) == StepID("s", 3) {
		t.Error("two steps have one id")
	}
	about.Ramp = 0
	if got := fields(about); got["ramp_seconds"] != 0.0 {
		t.Errorf("a change at once has ramp_seconds %v", got["ramp_seconds"])
	}
	// A group that leaves is told as a group.
	about.Reason = engine.TargetRetire
	if got := fields(about); got["scope"] != "WORKER_GROUP" || got["worker_group_id"] != 3.0 || got["reason"] != "retire" {
		t.Errorf("a retirement is %v", got)
	}
}
