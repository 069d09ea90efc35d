package worker

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/worker/load"
)

func start(seq int64) protocol.RunEvent {
	return event(seq, engine.EventStart, engine.EventData{Phase: engine.PhaseWarmup})
}
func measure(seq int64) protocol.RunEvent {
	return event(seq, engine.EventSetPhase, engine.EventData{Phase: engine.PhaseMeasurement})
}
func stop(seq int64) protocol.RunEvent {
	return event(seq, engine.EventStop, engine.EventData{Reason: "user_requested", DrainTimeoutSeconds: 30})
}

func TestEventsApplyAtMostOnceInOrderAndInScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := connect(t, t.TempDir(), newFakeLoad(), nil)
		s.send(assign())
		synctest.Wait()
		if got := s.last(); got.Status != engine.WorkerReady {
			t.Fatalf("%+v", got)
		}
		five, nine, group := 5, 9, 1
		s.send(start(1), start(1), measure(3), measure(3),
			event(2, engine.EventStop, engine.EventData{}), // late
			event(4, engine.EventSetWorkerTarget,
				engine.EventData{Scope: engine.ScopeWorker, WorkerID: "worker-1", TargetConnections: &nine}),
			event(5, engine.EventSetWorkerTarget,
				engine.EventData{Scope: engine.ScopeWorkerGroup, WorkerGroupID: &group, TargetConnections: &nine}),
			// Nobody asks about another one any more: that is no event of the run, and nothing is behind it.
			event(math.MaxInt64, engine.EventStop, engine.EventData{Scope: engine.ScopeWorker, WorkerID: "worker-1"}),
			event(6, engine.EventSetWorkerTarget,
				engine.EventData{Scope: engine.ScopeWorker, WorkerID: "worker-0", TargetConnections: &five, RampSeconds: 2}),
			event(7, engine.EventSetPhase, engine.EventData{Phase: engine.PhaseWarmup}), // never back
		)
		synctest.Wait()
		if got, want := s.load.callList(),
			[]string{"start WARMUP", "phase MEASUREMENT", "target 5 in 2s"}; !reflect.DeepEqual(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
		time.Sleep(2500 * time.Millisecond)
		synctest.Wait()
		shots := messages[protocol.Snapshot](s)
		if len(shots) != 3 || shots[0].Tick != 1 || shots[0].Phase != engine.PhaseWarmup || shots[2].Tick != 3 ||
			shots[2].Phase != engine.PhaseMeasurement || shots[2].Started != 7 {
			t.Fatalf("%d snapshots: %+v", len(shots), shots)
		}
		if got := s.last(); got.Status != engine.WorkerRunning || got.LastSequence != 7 {
			t.Fatalf("%+v", got)
		}
		s.send(protocol.RunEvent{Epoch: 2, Event: stop(8).Event}) // of a former owner
		synctest.Wait()
		if got := s.last().Status; got != engine.WorkerRunning {
			t.Fatalf("an old epoch stopped the worker: %s", got)
		}
		s.send(stop(8), stop(9))
		synctest.Wait()
		if got := s.last(); got.Status != engine.WorkerCompleted || got.Totals == nil {
			t.Fatalf("%+v", got)
		}
		s.end()
	})
}

// TestTheEndOfTheWarmUpIsReported: what it counted since its last tick is in a snapshot of its own, made before the
// counters begin anew.
func TestTheEndOfTheWarmUpIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := connect(t, t.TempDir(), newFakeLoad(), nil)
		s.send(assign())
		synctest.Wait()
		s.send(start(1))
		time.Sleep(2500 * time.Millisecond)
		now := time.Now()
		s.send(measure(2))
		synctest.Wait()
		shots := messages[protocol.Snapshot](s)
		last := shots[len(shots)-1]
		if last.Phase != engine.PhaseWarmup || !last.Timestamp.Equal(engine.At(now).Time) || last.Scheduled != 1 {
			t.Fatalf("%d snapshots, the last is %+v", len(shots), last)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		shots = messages[protocol.Snapshot](s)
		if next := shots[len(shots)-1]; next.Phase != engine.PhaseMeasurement || next.Tick != last.Tick+1 ||
			next.Scheduled != 2 {
			t.Fatalf("then %+v", next)
		}
		s.send(stop(3))
		synctest.Wait()
		s.end()
	})
}

func TestTheAbsoluteStateHealsLostEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := connect(t, t.TempDir(), newFakeLoad(), nil)
		s.send(assign())
		state := protocol.RunState{RunID: runID, Epoch: 3, Status: engine.StatusRunning, Phase: engine.PhaseMeasurement,
			Started: true, LastSequence: 4,
			Targets: map[string]engine.WorkerTarget{"worker-0": {TargetConnections: 3}}}
		s.send(state, state, measure(3))
		synctest.Wait()
		if got, want := s.load.callList(), []string{"target 3 in 0s", "start MEASUREMENT"}; !reflect.DeepEqual(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
		stale := state
		stale.LastSequence, stale.Status = 2, engine.StatusCancelling
		s.send(stale)
		synctest.Wait()
		if got := s.last().Status; got != engine.WorkerRunning {
			t.Fatalf("a stale state made it %s", got)
		}
		state.Status, state.StopReason, state.LastSequence = engine.StatusCancelling, engine.StopUserRequested, 5
		s.send(state)
		synctest.Wait()
		if got := s.last().Status; got != engine.WorkerCompleted {
			t.Fatalf("%s after the run was stopped", got)
		}
		s.end()
	})
}

func TestWithoutSTARTAReadyWorkerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := connect(t, t.TempDir(), newFakeLoad(), nil)
		s.send(assign())
		time.Sleep(130 * time.Second)
		synctest.Wait()
		if got := s.last(); got.Status != engine.WorkerFailed || !strings.Contains(got.Err.Message, "no START") {
			t.Fatalf("%+v", got)
		}
		s.end()
	})
}

func TestSTOPWhileConnectingEndsTheAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := connect(t, t.TempDir(), nil, func(ctx context.Context, _ load.Config, _ int, _ func(int, int)) (Load, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		s.send(assign(), stop(1))
		synctest.Wait()
		if got := s.last(); got.Status != engine.WorkerCompleted || got.Err != nil || got.Totals == nil {
			t.Fatalf("%+v", got)
		}
		s.end()
	})
}

func TestAWorkerThatCannotConnectSaysWhy(t *testing.T) {
	spool := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := connect(t, spool, nil, func(context.Context, load.Config, int, func(int, int)) (Load, error) {
			return nil, &engine.Error{Code: engine.CodeTarget, Message: "The password is wrong."}
		})
		s.send(assign())
		synctest.Wait()
		if got := s.last(); got.Status != engine.WorkerFailed || got.Err.Message != "The password is wrong." {
			t.Fatalf("%+v", got)
		}
		if len(s.node.workersOf(runID)) != 0 {
			t.Fatal("the node still holds it")
		}
		s.end()
	})
	if left, _ := filepath.Glob(filepath.Join(spool, "*")); len(left) != 0 {
		t.Fatalf("left in the spool: %v", left)
	}
}

func TestAWorkerWithoutARecordLeavesNoFolder(t *testing.T) {
	spool := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := connect(t, spool, newFakeLoad(), nil)
		s.send(assign(), stop(1))
		synctest.Wait()
		if got := s.last().Status; got != engine.WorkerCompleted {
			t.Fatal(got)
		}
		s.end()
	})
	if left, _ := filepath.Glob(filepath.Join(spool, "*")); len(left) != 0 {
		t.Fatalf("left in the spool: %v", left)
	}
}

func TestADrainIsCutOffAtItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newFakeLoad()
		l.hang = true
		s := connect(t, t.TempDir(), l, nil)
		s.send(assign(), start(1))
		synctest.Wait()
		s.send(stop(2))
		time.Sleep(29 * time.Second)
		synctest.Wait()
		if got := s.last().Status; got != engine.WorkerDraining {
			t.Fatalf("%s", got)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		calls := l.callList()
		if got := s.last().Status; got != engine.WorkerCompleted || calls[len(calls)-1] != "drained after 30s" {
			t.Fatalf("%s %v", got, calls)
		}
		s.end()
	})
}

func TestACancelledDrainEndsSooner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newFakeLoad()
		l.hang = true
		s := connect(t, t.TempDir(), l, nil)
		s.send(assign(), start(1))
		synctest.Wait()
		s.send(event(2, engine.EventStop,
			engine.EventData{Reason: "duration_elapsed",
				DrainTimeoutSeconds: protocol.DrainTimeoutFor(engine.StopDurationElapsed).Seconds()}))
		time.Sleep(20 * time.Second)
		s.send(event(3, engine.EventStop,
			engine.EventData{Reason: "user_requested",
				DrainTimeoutSeconds: protocol.DrainTimeoutFor(engine.StopUserRequested).Seconds()}))
		time.Sleep(6 * time.Second)
		synctest.Wait()
		calls := l.callList()
		if got := s.last().Status; got != engine.WorkerCompleted || calls[len(calls)-1] != "drained after 25s" {
			t.Fatalf("%s %v", got, calls)
		}
		s.end()
	})
}

func TestAFailedLoadFailsTheWorkerAndKeepsItsRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newFakeLoad()
		l.records = 3
		s := connect(t, t.TempDir(), l, nil)
		s.send(assign(), start(1))
		synctest.Wait()
		l.failed <- &engine.Error{Code: engine.CodeTarget, Message: "The target closed all connections."}
		l.Stop() // as a real group does
		time.Sleep(time.Second)
		synctest.Wait()
		got := s.last()
		if got.Status != engine.WorkerFailed || got.Err.Message != "The target closed all connections." || got.Parts != 1 ||
			got.Totals.Started != 3 {
			t.Fatalf("%+v", got)
		}
		s.end()
	})
}

// Parts are announced before the end, kept until acknowledged, and found by the next process.
func TestPartsOutliveTheirProcessUntilAcknowledged(t *testing.T) {
	spool := t.TempDir()
	var part protocol.WorkReady
	synctest.Test(t, func(t *testing.T) {
		l := newFakeLoad()
		l.records = 10
		s := connect(t, spool, l, nil)
		s.send(assign(), start(1))
		synctest.Wait()
		s.send(stop(2))
		time.Sleep(time.Second)
		synctest.Wait()
		parts := messages[protocol.WorkReady](s)
		if len(parts) != 1 || parts[0].Artifact.RowCount != 10 || parts[0].Artifact.ResultID != "test-1" ||
			s.last().Status != engine.WorkerCompleted || s.last().Parts != 1 {
			t.Fatalf("%+v, %+v", parts, s.last())
		}
		part = parts[0]
		s.end()
	})
	path := filepath.Join(spool, part.WorkID)
	synctest.Test(t, func(t *testing.T) {
		s := connect(t, spool, newFakeLoad(), nil)
		synctest.Wait()
		hello := messages[protocol.Hello](s)[0]
		if len(hello.Parts) != 1 || hello.Parts[0].WorkID != part.WorkID || !hello.Parts[0].Salvaged ||
			hello.Parts[0].Artifact.SHA256 != part.Artifact.SHA256 {
			t.Fatalf("%+v", hello)
		}
		s.send(protocol.ArtifactAck{RunID: runID, WorkerID: "worker-0", Name: part.Artifact.Name, SHA256: "another"})
		synctest.Wait()
		if _, err := os.Stat(path); err != nil {
			t.Fatalf("a wrong checksum deleted the part: %v", err)
		}
		s.send(protocol.ArtifactAck{RunID: runID, WorkerID: "worker-0", Name: part.Artifact.Name,
			SHA256: part.Artifact.SHA256})
		synctest.Wait()
		s.end()
	})
	if left, _ := filepath.Glob(filepath.Join(spool, "*")); len(left) != 0 {
		t.Fatalf("left in the spool: %v", left)
	}
}

func TestADrainingNodeTakesNothingNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := connect(t, t.TempDir(), newFakeLoad(), nil)
		s.send(protocol.Drain{}, assign())
		synctest.Wait()
		if got := messages[protocol.RunRejected](s); len(got) != 1 || got[0].Err == nil {
			t.Fatalf("%+v", got)
		}
		// The operator takes it back; a process that is ending takes nothing, whatever it is told.
		s.send(protocol.Drain{Over: true}, assign())
		synctest.Wait()
		if got := messages[protocol.RunAccepted](s); len(got) != 1 {
			t.Errorf("accepted after it was resumed: %+v", got)
		}
		s.node.Drain()
		other := assign()
		other.WorkerID = "worker-1"
		s.send(protocol.Drain{Over: true}, other)
		synctest.Wait()
		if got := messages[protocol.RunRejected](s); len(got) != 2 {
			t.Errorf("rejected while the process is ending: %+v", got)
		}
		s.end()
	})
}

// TestANodeThatLeavesEndsItsRunWorkersAndHandsOver: when its drain limit has passed, and not before. The owner of the
// run hears who left and why, and what was recorded is to be fetched at once.
func TestANodeThatLeavesEndsItsRunWorkersAndHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newFakeLoad()
		l.records = 3
		s := connect(t, t.TempDir(), l, nil)
		s.send(assign(), start(1))
		synctest.Wait()
		gone := make(chan Remainder, 1)
		go func() { gone <- s.node.Leave(t.Context(), 20*time.Second) }()
		time.Sleep(19 * time.Second)
		synctest.Wait()
		if got := s.last(); got.Status != engine.WorkerRunning {
			t.Fatalf("%s before the limit", got.Status)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		got, parts := s.last(), messages[protocol.WorkReady](s)
		if got.Status != engine.WorkerFailed || got.Err.Code != engine.CodeUnavailable || got.Totals.Started != 3 ||
			!strings.Contains(got.Err.Message, "worker-0 has left with its node n") {
			t.Fatalf("%+v: %v", got, got.Err)
		}
		if len(parts) != 1 || !parts[0].Pressing {
			t.Fatalf("%+v", parts)
		}
		select {
		case left := <-gone:
			t.Fatalf("it has left with %+v that nobody has", left)
		default:
		}
		s.send(protocol.WorkerAck{RunID: runID, WorkerID: "worker-0", ResultID: "test-1"},
			protocol.ArtifactAck{RunID: runID, WorkerID: "worker-0", Name: parts[0].Artifact.Name,
				SHA256: parts[0].Artifact.SHA256})
		if left := <-gone; !left.None() {
			t.Errorf("left: %+v", left)
		}
		s.end()
	})
}

// TestWhatANodeKeepsIsAskedForWhenItLeaves: run workers that have ended before leave their record on it until the run
// ends. A server that is away keeps no node for ever.
func TestWhatANodeKeepsIsAskedForWhenItLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newFakeLoad()
		l.records = 3
		s := connect(t, t.TempDir(), l, nil)
		s.send(assign(), start(1), stop(2))
		time.Sleep(time.Second)
		synctest.Wait()
		if parts := messages[protocol.WorkReady](s); len(parts) != 1 || parts[0].Pressing {
			t.Fatalf("%+v", parts)
		}
		begun := time.Now()
		left := s.node.Leave(t.Context(), time.Minute)
		if took := time.Since(
			begun,
		); left != (Remainder{Ends: 1, Parts: 1}) ||
			took > time.Minute+HandoverTimeout+time.Second {
			t.Errorf("left after %v: %+v", took, left)
		}
		if parts := messages[protocol.WorkReady](s); len(parts) != 2 || !parts[1].Pressing {
			t.Errorf("%+v", parts)
		}
		s.end()
	})
}

func TestSeedsOfSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Int64Range(0, 1<<53-1).Draw(t, "seed")
		seen := map[int64]int{}
		for slot := range 200 {
			s := plugin.StreamSeed(seed, slot)
			if s < 0 || s >= 1<<53 {
				t.Fatalf("slot %d has the seed %d", slot, s)
			}
			if other, twice := seen[s]; twice {
				t.Fatalf("slots %d and %d share the seed %d", other, slot, s)
			}
			seen[s] = slot
		}
		if plugin.StreamSeed(seed, 0) != seed {
			t.Fatal("slot 0 does not have the scenario's seed")
		}
	})
}
