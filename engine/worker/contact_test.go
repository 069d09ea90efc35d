package worker

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// contactDeadline is when the worker's deadline says that there was contact last.
func (s *server) contactDeadline() time.Time { return s.load.deadline().Add(-protocol.ContactTimeout) }

// lastStatus is the newest Status that the server has heard.
func (s *server) lastStatus() protocol.Status {
	all := messages[protocol.Status](s)
	return all[len(all)-1]
}

// running is a node with a run worker that bears load, whose owner then falls silent at the
// time that is returned.
func running(t *testing.T) (*server, time.Time) {
	s := connect(t, t.TempDir(), newFakeLoad(), nil)
	s.send(assign(), start(1))
	time.Sleep(10 * time.Second)
	synctest.Wait()
	if got := s.last().Status; got != engine.WorkerRunning {
		t.Fatal(got, s.last().Err)
	}
	s.silence()
	return s, s.contactDeadline()
}

// TestContactIsWhatTheOwnerAcknowledged: whatever else a node hears, a worker stops by
// itself a minute after its node sent the last Status that the run's owner acknowledged.
func TestContactIsWhatTheOwnerAcknowledged(t *testing.T) {
	owned := func(epoch int64) []protocol.OwnedRun { return []protocol.OwnedRun{{RunID: runID, Epoch: epoch}} }
	for name, say := range map[string]func(s *server, second int){
		"nothing": func(*server, int) {},
		"pings":   func(s *server, i int) { s.send(protocol.Ping{Seq: int64(i)}) },
		"events and states": func(s *server, i int) {
			s.send(measure(int64(2*i + 2)))
			s.send(protocol.RunState{RunID: runID, Epoch: 3, Status: engine.StatusRunning, Phase: engine.PhaseMeasurement,
				Started: true, LastSequence: int64(2*i + 3)})
		},
		"acknowledgements of a former owner": func(s *server, _ int) {
			s.send(protocol.StatusAck{Sequence: s.lastStatus().Sequence, Runs: owned(2)})
		},
		"acknowledgements that do not name the run": func(s *server, _ int) {
			s.send(protocol.StatusAck{Sequence: s.lastStatus().Sequence,
				Runs: []protocol.OwnedRun{{RunID: "another", Epoch: 9}}})
		},
		"an old Status acknowledged again": func(s *server, _ int) {
			s.send(protocol.StatusAck{Sequence: messages[protocol.Status](s)[2].Sequence, Runs: owned(3)})
		},
		"a Status that was never sent": func(s *server, _ int) {
			s.send(protocol.StatusAck{Sequence: s.lastStatus().Sequence + 1000, Runs: owned(3)},
				protocol.StatusAck{Runs: owned(3)}, protocol.StatusAck{Sequence: -5, Runs: owned(3)})
		},
		"another assignment of the same worker": func(s *server, _ int) { s.send(assign()) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, contact := running(t)
				deadline := contact.Add(protocol.ContactTimeout)
				for i := 0; time.Now().Before(deadline.Add(-2 * time.Second)); i++ {
					say(s, i)
					time.Sleep(time.Second)
				}
				synctest.Wait()
				if got := s.load.deadline(); !got.Equal(deadline) {
					t.Fatalf("the deadline was moved by %v", got.Sub(deadline))
				}
				if got := s.last().Status; got != engine.WorkerRunning {
					t.Fatalf("%s before its time", got)
				}
				time.Sleep(4 * time.Second)
				synctest.Wait()
				got := s.last()
				if got.Status != engine.WorkerFailed || got.Err == nil || !strings.Contains(got.Err.Message, "stopped by itself") {
					t.Fatalf("%s, %v", got.Status, got.Err)
				}
				s.end()
			})
		})
	}
}

// TestContactCountsFromWhenTheStatusWasSent, however late its acknowledgement comes.
func TestContactCountsFromWhenTheStatusWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := running(t)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		m := s.lastStatus()
		time.Sleep(20 * time.Second)
		s.acknowledge(t.Context(), m, 3)
		synctest.Wait()
		if got := s.contactDeadline(); !got.Equal(m.At) {
			t.Errorf("contact is %v after the Status was sent", got.Sub(m.At))
		}
		s.end()
	})
}

// TestContactThatComesTooLateIsNone: a worker whose load issues rarely has issued nothing since its
// deadline and has not been looked at either, and others may have its load: it does not go on.
func TestContactThatComesTooLateIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, contact := running(t)
		deadline := contact.Add(protocol.ContactTimeout)
		time.Sleep(time.Until(deadline) - time.Second)
		synctest.Wait()
		m := s.lastStatus()
		// The worker looks at itself each second, and this comes before it does.
		time.Sleep(time.Until(deadline))
		s.acknowledge(t.Context(), m, 3)
		synctest.Wait()
		got := s.last()
		if !s.load.deadline().Equal(deadline) || got.Err == nil || !strings.Contains(got.Err.Message, "stopped by itself") {
			t.Fatalf("%s, %v, and the deadline was moved by %v", got.Status, got.Err, s.load.deadline().Sub(deadline))
		}
		s.end()
	})
}

// TestALaterOwnerKeepsContactAndAFormerOneDoesNot: what the former owner says is not heard
// from the later one's first word on, also its STOP.
func TestALaterOwnerKeepsContactAndAFormerOneDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := running(t)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		later := s.lastStatus()
		s.acknowledge(t.Context(), later, 4)
		synctest.Wait()
		if !s.contactDeadline().Equal(later.At) {
			t.Fatalf("the later owner's acknowledgement is no contact")
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		s.acknowledge(t.Context(), s.lastStatus(), 3)
		s.send(stop(9), protocol.RunState{RunID: runID, Epoch: 3, Status: engine.StatusCancelling,
			StopReason: engine.StopWorkerFailure, LastSequence: 9})
		synctest.Wait()
		if !s.contactDeadline().Equal(later.At) || s.last().Status != engine.WorkerRunning {
			t.Fatalf("a former owner was heard: %s, contact %v later", s.last().Status, s.contactDeadline().Sub(later.At))
		}
		e := stop(9)
		e.Epoch = 4
		s.send(e)
		synctest.Wait()
		if got := s.last().Status; got != engine.WorkerCompleted {
			t.Fatalf("%s after the later owner's STOP", got)
		}
		s.end()
	})
}

// TestNoLoadBeginsWithoutContact: a START that was under way for long may be of a run that
// somebody else carries by now.
func TestNoLoadBeginsWithoutContact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := connect(t, t.TempDir(), newFakeLoad(), nil)
		synctest.Wait()
		s.silence()
		s.send(assign(), start(1))
		time.Sleep(firstSampleTimeout + time.Second)
		synctest.Wait()
		if calls := s.load.callList(); len(calls) != 0 || s.last().Status != engine.WorkerReady ||
			!s.load.deadline().IsZero() {
			t.Fatalf("%s, %v, deadline %v", s.last().Status, calls, s.load.deadline())
		}
		s.acknowledge(t.Context(), s.lastStatus(), 3)
		synctest.Wait()
		if got := s.last().Status; got != engine.WorkerRunning {
			t.Fatalf("%s with contact", got)
		}
		s.end()
	})
}

// TestAWorkerThatIsNeverAcknowledgedLeaves, a minute after it was assigned.
func TestAWorkerThatIsNeverAcknowledgedLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := connect(t, t.TempDir(), newFakeLoad(), nil)
		s.silence()
		s.send(assign(), start(1))
		time.Sleep(protocol.ContactTimeout + 2*time.Second)
		synctest.Wait()
		if got := s.last(); got.Status != engine.WorkerFailed || !strings.Contains(got.Err.Message, "stopped by itself") {
			t.Fatalf("%+v", got)
		}
		s.end()
	})
}

// TestTheLoadEndsAtThePlannedEndWithoutContact: and not a minute after the last contact, in order. While there is contact
// the STOP is waited for, and who has taken the run over says nothing of the end by another clock.
func TestTheLoadEndsAtThePlannedEndWithoutContact(t *testing.T) {
	for name, tc := range map[string]struct {
		cutAfter, ended, least time.Duration
		ahead                  time.Duration
		epoch                  int64
	}{
		"cut long before":         {cutAfter: 10 * time.Second, least: 30 * time.Second, ended: 30500 * time.Millisecond, epoch: 3},
		"a clock ahead":           {cutAfter: 10 * time.Second, least: 30 * time.Second, ended: 30500 * time.Millisecond, epoch: 3, ahead: time.Hour},
		"cut a second before":     {cutAfter: 29 * time.Second, least: 30 * time.Second, ended: 31500 * time.Millisecond, epoch: 3},
		"cut after the end":       {cutAfter: 40 * time.Second, least: 40 * time.Second, ended: 43 * time.Second, epoch: 3},
		"by the clock of an heir": {cutAfter: 10 * time.Second, least: 58 * time.Second, ended: 61 * time.Second, epoch: 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newFakeLoad()
				s := connectAhead(t, t.TempDir(), l, nil, tc.ahead)
				s.send(assign(), start(1), measure(2))
				time.Sleep(2 * time.Second) // the clocks are compared
				begun := time.Now()
				s.send(protocol.RunState{RunID: runID, Epoch: tc.epoch, Status: engine.StatusRunning, Started: true,
					Phase: engine.PhaseMeasurement, LastSequence: 2, EndAt: begun.Add(tc.ahead + 30*time.Second)})
				time.Sleep(tc.cutAfter)
				s.silence()
				var took time.Duration
				for ; took < 2*time.Minute && s.last().Status == engine.WorkerRunning; took = time.Since(begun) {
					time.Sleep(100 * time.Millisecond)
					synctest.Wait()
				}
				end := s.last()
				if took < tc.least || took > tc.ended+200*time.Millisecond ||
					(end.Err == nil) != (tc.epoch == 3) {
					t.Errorf("%s (%v) after %v, want %v to %v", end.Status, end.Err, took, tc.least, tc.ended)
				}
				l.mu.Lock()
				if until := l.until.Sub(begun); tc.epoch == 3 && tc.cutAfter == 10*time.Second && until > 32*time.Second {
					t.Errorf("it may issue operations until %v", until)
				}
				l.mu.Unlock()
				s.end()
			})
		})
	}
}

// TestTheEndOfAWarmupEndsNoLoad: who takes a run over in its warm-up begins the measurement later, and the end moves. A
// run worker that nobody reaches meanwhile goes on; then the later end counts.
func TestTheEndOfAWarmupEndsNoLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newFakeLoad()
		s := connect(t, t.TempDir(), l, nil)
		s.send(assign(), start(1))
		time.Sleep(2 * time.Second)
		begun := time.Now()
		state := protocol.RunState{RunID: runID, Epoch: 3, Status: engine.StatusRunning, Started: true,
			Phase: engine.PhaseWarmup, LastSequence: 1, EndAt: begun.Add(10 * time.Second)}
		s.send(state)
		s.silence() // the owner has died
		time.Sleep(25 * time.Second)
		synctest.Wait()
		if got := s.last(); got.Status != engine.WorkerRunning {
			t.Fatalf("%s: %v, at the end that was planned before the measurement", got.Status, got.Err)
		}
		if until := l.deadline().Sub(begun); until < 50*time.Second {
			t.Fatalf("in the warm-up it issues operations for %v alone", until)
		}
		s.acknowledge(t.Context(), s.lastStatus(), 4)
		state.Epoch, state.Phase, state.EndAt = 4, engine.PhaseMeasurement, time.Now().Add(20*time.Second)
		s.send(state)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := s.last(); got.Status != engine.WorkerRunning {
			t.Fatalf("%s: %v, before the end that the new owner has planned", got.Status, got.Err)
		}
		time.Sleep(12 * time.Second)
		synctest.Wait()
		if got := s.last(); got.Status == engine.WorkerRunning || got.Err != nil {
			t.Fatalf("%s: %v, after the end that the new owner has planned", got.Status, got.Err)
		}
		s.end()
	})
}
