package worker

import (
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// targetOf is an event of an epoch that tells a run worker what to bear.
func targetOf(epoch, sequence int64, connections int, rate float64, atMost bool) protocol.RunEvent {
	e := event(sequence, engine.EventSetWorkerTarget, engine.EventData{Scope: engine.ScopeWorker, WorkerID: "worker-0",
		TargetConnections: &connections, TargetQPS: &rate, RampSeconds: 5})
	e.Epoch, e.AtMost = epoch, atMost
	return e
}

// TestWhoTakesARunOverGivesNobodyMore until it says so: what it knows may be older than what its predecessor has told.
// A run worker answers it once it has followed its absolute state, and says nothing of its events before that.
func TestWhoTakesARunOverGivesNobodyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := connect(t, t.TempDir(), newFakeLoad(), nil)
		s.send(assign(), start(1), targetOf(3, 2, 3, 5, false))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		said := 0
		has := func(when string, epoch, sequence int64, want ...string) {
			t.Helper()
			synctest.Wait()
			got := append([]string{}, s.load.callList()[said:]...)
			if said += len(got); !reflect.DeepEqual(got, append([]string{}, want...)) {
				t.Errorf("%s: the load heard %q, want %q", when, got, want)
			}
			time.Sleep(1100 * time.Millisecond) // a heartbeat
			synctest.Wait()
			if w := s.last(); w.Epoch != epoch || w.LastSequence != sequence {
				t.Errorf("%s: it follows event %d of epoch %d, want %d of %d", when, w.LastSequence, w.Epoch, sequence, epoch)
			}
		}
		synctest.Wait()
		said = len(s.load.callList())
		has("its first owner", 3, 2)
		state := protocol.RunState{RunID: runID, Epoch: 4, Status: engine.StatusRunning, Phase: engine.PhaseWarmup,
			Started: true, LastSequence: 1, AtMost: true,
			Targets: map[string]engine.WorkerTarget{"worker-0": bearing(4, 9)}}
		s.send(targetOf(4, 2, 9, 9, true))
		has("an event before the state", 3, 0)
		state.LastSequence = 2
		s.send(state)
		has("the state", 4, 2)
		s.send(targetOf(4, 3, 2, 7, true))
		has("less of one thing", 4, 3, "target 2 in 0s")
		s.send(targetOf(4, 4, 4, 8, false))
		has("more, slowly", 4, 4, "target 4 in 5s", "rate 8 in 5s")
		state.LastSequence = 4
		s.send(state)
		has("and at once, if at most", 4, 4, "target 4 in 0s", "rate 8 in 0s")
		s.send(state)
		has("again", 4, 4)
		state.AtMost, state.Targets["worker-0"] = false, bearing(5, 9)
		s.send(state)
		has("when all have answered", 4, 4, "target 5 in 0s", "rate 9 in 0s")
		s.send(targetOf(4, 5, 6, 10, false))
		has("and then", 4, 5, "target 6 in 5s", "rate 10 in 5s")
		e := stop(9)
		e.Epoch = 4
		s.send(e)
		synctest.Wait()
		s.end()
	})
}

func bearing(connections int, rate float64) engine.WorkerTarget {
	return engine.WorkerTarget{TargetConnections: connections, TargetQPS: &rate}
}
