package recovery

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/run/finalize"
	"github.com/loadstone-db/loadstone/engine/store"
)

// countingStore counts how often runs are looked for, of which there are none that can be read.
type countingStore struct {
	Store
	times int
}

func (l *countingStore) Run(context.Context, string) (engine.Run, error) {
	l.times++
	return engine.Run{}, store.ErrUnavailable
}

func partNamed(id string) nodes.Part {
	return nodes.Part{Node: fakeNode("n"),
		WorkReady: protocol.WorkReady{WorkID: id, Artifact: engine.Artifact{RunID: "r", Name: id}}}
}

// TestPartsThatComeWhileARunIsFinishedAreTakenIn: they come too late for what is done, and were forgotten until
// their node announced them again.
func TestPartsThatComeWhileARunIsFinishedAreTakenIn(t *testing.T) {
	seen := &countingStore{}
	s := New(Options{Store: seen, Runs: &idleProcess{}, Log: zerolog.Nop()})
	if !s.beginFinishing("r") {
		t.Fatal("it is in hand")
	}
	s.AddPart(partNamed("late"))
	if err := s.sweepPostponed(t.Context()); err != nil || seen.times != 0 {
		t.Errorf("the run is looked at while it is finished, %v", err)
	}
	s.endFinishing("r")
	if err := s.sweepPostponed(t.Context()); err == nil || seen.times != 1 {
		t.Errorf("the run was looked for %d times when it was finished, %v", seen.times, err)
	}
}

// TestAPartThatCouldNotBeStoredIsTriedAgain: it may have been damaged on its way. It is not tried for ever.
func TestAPartThatCouldNotBeStoredIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := &countingStore{}
		s := New(Options{Store: seen, Runs: &idleProcess{}, Log: zerolog.Nop()})
		parts := []nodes.Part{partNamed("whole"), partNamed("damaged")}
		pause := firstRetryDelay
		for range maxRetries {
			s.scheduleRetry("r", parts, &finalize.Result{Stored: []string{"whole"}})
			if left := s.parts.ofRun("r"); len(left) != 1 || left[0].WorkID != "damaged" {
				t.Fatalf("kept are %v", left)
			}
			before := seen.times
			time.Sleep(pause - time.Second)
			if _ = s.sweepPostponed(t.Context()); seen.times != before {
				t.Fatalf("tried again before %v", pause)
			}
			time.Sleep(time.Second)
			if _ = s.sweepPostponed(t.Context()); seen.times != before+1 {
				t.Fatalf("not tried again after %v", pause)
			}
			pause *= 2
			delete(s.parts, "r") // as who takes them in does
		}
		s.scheduleRetry("r", parts, &finalize.Result{})
		if left := s.parts.ofRun("r"); len(left) != 0 {
			t.Errorf("%d parts are tried again after %d times", len(left), maxRetries)
		}
		s.scheduleRetry("r", parts, &finalize.Result{Stored: []string{"whole", "damaged"}})
		if len(s.retries) != 0 {
			t.Error("what is stored is counted still")
		}
	})
}

// TestAPartThatComesMeanwhileIsKept: while the parts of a run are taken in, or found to be stored, its node announces
// another one. It announces it once.
func TestAPartThatComesMeanwhileIsKept(t *testing.T) {
	s := New(Options{Store: &countingStore{}, Runs: &idleProcess{}, Log: zerolog.Nop()})
	s.AddPart(partNamed("first"))
	inHand := s.parts.ofRun("r")
	s.AddPart(partNamed("late"))
	s.forgetParts("r", inHand)
	if left := s.parts.ofRun("r"); len(left) != 1 || left[0].WorkID != "late" {
		t.Fatalf("kept are %v", left)
	}
	if _, looked := s.postponed["r"]; !looked {
		t.Error("nobody looks at it again")
	}
	s.forgetParts("r", s.parts.ofRun("r"))
	if _, looked := s.postponed["r"]; looked || len(s.parts) != 0 {
		t.Errorf("a run without parts is remembered: %v", s.parts)
	}
}
