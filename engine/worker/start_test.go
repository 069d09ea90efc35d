package worker

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// begunAt waits until the load has begun, and returns when.
func (s *server) begunAt(within time.Duration) time.Time {
	s.t.Helper()
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(100 * time.Microsecond) {
		synctest.Wait()
		if slices.Contains(s.load.callList(), "start WARMUP") {
			return time.Now()
		}
	}
	s.t.Fatalf("the load has not begun within %v: %v", within, s.load.callList())
	return time.Time{}
}

func startAt(seq int64, at time.Time) protocol.RunEvent {
	e := start(seq)
	t := engine.At(at)
	e.Event.Data.EffectiveAt = &t
	return e
}

// TestTheLoadBeginsAtTheInstantThatSTARTNames, by the owner's clock, whatever the node's says,
// also when it is the absolute state that brings START.
func TestTheLoadBeginsAtTheInstantThatSTARTNames(t *testing.T) {
	for name, c := range map[string]struct {
		ahead time.Duration // the server's clock of the node's
		by    func(at time.Time) protocol.ToNode
	}{
		"an hour behind, by the event": {time.Hour, func(at time.Time) protocol.ToNode { return startAt(1, at) }},
		"an hour ahead, by the event":  {-time.Hour, func(at time.Time) protocol.ToNode { return startAt(1, at) }},
		"an hour behind, by the state": {time.Hour, func(at time.Time) protocol.ToNode {
			return protocol.RunState{RunID: runID, Epoch: 3, Status: engine.StatusRunning, Phase: engine.PhaseWarmup,
				Started: true, LastSequence: 1, StartAt: at}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := connectAhead(t, t.TempDir(), newFakeLoad(), nil, c.ahead)
				a := assign()
				a.ClockAhead = 3 * time.Second // the run's line of that clock
				s.send(a)
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if got := s.last().Status; got != engine.WorkerReady {
					t.Fatal(got)
				}
				instant := time.Now().Add(300 * time.Millisecond)
				m := c.by(instant.Add(c.ahead + a.ClockAhead))
				s.send(m, m)
				if off := s.begunAt(time.Second).Sub(instant); off.Abs() > time.Millisecond {
					t.Errorf("the load began %v from the instant", off)
				}
				w := s.last()
				if off := w.BeganAt.Sub(instant.Add(c.ahead + a.ClockAhead)); off.Abs() > time.Millisecond {
					t.Errorf("the worker says that it began %v from the instant", off)
				}
				if w.Status != engine.WorkerRunning || w.BeganLate > time.Millisecond {
					t.Errorf("%+v", w)
				}
				s.end()
			})
		})
	}
}

// TestARunWorkerIsReadyWhenWhatIsBesideItHasGivenWay, or after five seconds where it does not.
func TestARunWorkerIsReadyWhenWhatIsBesideItHasGivenWay(t *testing.T) {
	for takes, want := range map[time.Duration]time.Duration{2 * time.Second: 2 * time.Second,
		time.Hour: 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s := connect(t, t.TempDir(), newFakeLoad(), nil)
			var carries bool
			s.node.SetGiveWay(func(ctx context.Context) {
				carries = s.node.HasWorker()
				select {
				case <-ctx.Done():
				case <-time.After(takes):
				}
			})
			s.send(assign())
			time.Sleep(want - time.Millisecond)
			synctest.Wait()
			if got := s.last().Status; got == engine.WorkerReady || !carries {
				t.Errorf("it is %s before all has given way, and carries: %v", got, carries)
			}
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if got := s.last().Status; got != engine.WorkerReady {
				t.Errorf("it is %s when all has given way", got)
			}
			s.end()
		})
	}
}

// TestWhoHearsOfSTARTTooLateSaysHowLate, begins at once, and says so in the run's log.
func TestWhoHearsOfSTARTTooLateSaysHowLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := connect(t, t.TempDir(), newFakeLoad(), nil)
		s.send(assign())
		time.Sleep(2 * time.Second)
		synctest.Wait()
		s.send(startAt(1, time.Now().Add(-140*time.Millisecond)))
		synctest.Wait()
		w := s.last()
		if w.Status != engine.WorkerRunning || (w.BeganLate-140*time.Millisecond).Abs() > 2*time.Millisecond {
			t.Errorf("%s, %v late", w.Status, w.BeganLate)
		}
		said := false
		for _, l := range messages[protocol.Log](s) {
			said = said || strings.Contains(l.Message, "worker-0 began 140 ms after the instant") &&
				l.Level == engine.LogWarning
		}
		if !said {
			t.Errorf("%+v", messages[protocol.Log](s))
		}
		s.end()
	})
}

// TestWhoJoinsLaterIsNotLate: its own readiness is what it is measured by.
func TestWhoJoinsLaterIsNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := connect(t, t.TempDir(), newFakeLoad(), nil)
		s.send(assign(), protocol.RunState{RunID: runID, Epoch: 3, Status: engine.StatusRunning,
			Phase: engine.PhaseWarmup, Started: true, LastSequence: 1, StartAt: time.Now().Add(-time.Minute)})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if w := s.last(); w.Status != engine.WorkerRunning || w.BeganLate > time.Millisecond || w.BeganAt.IsZero() {
			t.Errorf("%s, %v late", w.Status, w.BeganLate)
		}
		s.end()
	})
}

// TestAnInstantOfAnotherClockIsNotWaitedFor: it cannot be the owner's.
func TestAnInstantOfAnotherClockIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := connect(t, t.TempDir(), newFakeLoad(), nil)
		s.send(assign())
		time.Sleep(2 * time.Second)
		synctest.Wait()
		s.send(startAt(1, time.Now().Add(time.Hour)))
		synctest.Wait()
		if w := s.last(); w.Status != engine.WorkerRunning || w.BeganLate != 0 {
			t.Errorf("%s, %v late", w.Status, w.BeganLate)
		}
		s.end()
	})
}

// TestAStopBeforeTheInstantLeavesTheTargetAlone.
func TestAStopBeforeTheInstantLeavesTheTargetAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := connect(t, t.TempDir(), newFakeLoad(), nil)
		s.send(assign())
		time.Sleep(2 * time.Second)
		synctest.Wait()
		s.send(startAt(1, time.Now().Add(time.Second)))
		time.Sleep(100 * time.Millisecond)
		s.send(stop(2))
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if said := s.load.callList(); slices.Contains(said, "start WARMUP") {
			t.Errorf("%v", said)
		}
		if w := s.last(); w.Status != engine.WorkerCompleted || !w.BeganAt.IsZero() {
			t.Errorf("%+v", w)
		}
		s.end()
	})
}
