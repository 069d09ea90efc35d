package worker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

func stepEvent(seq int64, number, connections int) protocol.RunEvent {
	return event(seq, engine.EventSetWorkerTarget,
		engine.EventData{Scope: engine.ScopeWorker, WorkerID: "worker-0", TargetConnections: &connections,
			StepNumber: number, SettleSeconds: 0.5, StepSeconds: 2.5})
}

// TestTicksAreCutAtTheBordersOfAStep: a tick lies in one step as a whole, or in
// none; the last one of a step says so.
func TestTicksAreCutAtTheBordersOfAStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := connect(t, t.TempDir(), newFakeLoad(), nil)
		s.send(assign())
		synctest.Wait()
		s.send(start(1), measure(2), stepEvent(3, 1, 5), stepEvent(3, 1, 9))
		time.Sleep(10 * time.Second)
		s.send(protocol.RunState{RunID: runID, Epoch: 3, Status: engine.StatusRunning, Phase: engine.PhaseMeasurement,
			Started: true, LastSequence: 4,
			Step: protocol.Step{Number: 2, Settle: 500 * time.Millisecond, Length: 2 * time.Second}})
		time.Sleep(5 * time.Second)
		synctest.Wait()
		begun := map[int]time.Time{}
		ended := map[int]time.Time{}
		before := time.Time{}
		for _, shot := range messages[protocol.Snapshot](s) {
			if n := shot.Step; n > 0 {
				if begun[n].IsZero() {
					begun[n] = before // where the tick before ended
				}
				if !ended[n].IsZero() {
					t.Errorf("step %d goes on after its end", n)
				}
				if shot.StepOver {
					ended[n] = shot.Timestamp.Time
				}
			}
			before = shot.Timestamp.Time
		}
		for n, want := range map[int]time.Duration{1: 2500 * time.Millisecond, 2: 2 * time.Second} {
			if got := ended[n].Sub(begun[n]); got != want {
				t.Errorf("step %d was measured for %v, want %v", n, got, want)
			}
		}
		steps := 0
		for _, c := range s.load.callList() {
			if c == "step 1" || c == "step 2" {
				steps++
			}
		}
		if steps != 2 {
			t.Errorf("the load heard %v", s.load.callList())
		}
		s.send(stop(5))
		synctest.Wait()
		s.end()
	})
}
