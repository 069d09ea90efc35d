package worker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// slowEnd lets a second pass between the last word of a run worker and its end.
type slowEnd struct{}

func (slowEnd) Deleted(string) {}

func (slowEnd) Ended(EndedWorker) { time.Sleep(time.Second) }

// TestAnEndThatIsAcknowledgedAtOnceIsForgotten: a node that drains would wait for it until its limit.
func TestAnEndThatIsAcknowledgedAtOnceIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := connect(t, t.TempDir(), newFakeLoad(), nil)
		s.node.opts.Meter = slowEnd{}
		s.send(assign())
		synctest.Wait()
		s.send(start(1), stop(2))
		synctest.Wait()
		if end := s.last(); !end.Status.Ended() {
			t.Fatalf("%+v", end)
		}
		s.send(protocol.WorkerAck{RunID: runID, WorkerID: "worker-0", ResultID: "another"})
		synctest.Wait()
		if len(s.node.held) != 1 {
			t.Fatal("it has left before it is acknowledged")
		}
		s.send(protocol.WorkerAck{RunID: runID, WorkerID: "worker-0", ResultID: "test-1"})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if s.node.WaitIdle(ctx); ctx.Err() != nil {
			t.Errorf("it waits: %d run workers, %d ends, %d parts", len(s.node.held), len(s.node.ended), len(s.node.parts))
		}
		s.end()
	})
}

// TestAnEndTellsOfTheClockOfWhoOwnsTheRun: who takes a run over goes by its time, and an end that was said to another
// server is compared with the clock of that one.
func TestAnEndTellsOfTheClockOfWhoOwnsTheRun(t *testing.T) {
	for name, mute := range map[string]bool{"compared before": false, "compared afterwards": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := connectAhead(t, t.TempDir(), newFakeLoad(), nil, time.Hour)
				synctest.Wait()
				s.send(assign(), start(1))
				time.Sleep(3 * time.Second)
				s.send(stop(2))
				synctest.Wait()
				ended := s.last()
				if !ended.Status.Ended() || ended.LineAhead.Abs() > time.Second || ended.LineError <= 0 {
					t.Fatalf("%s, ahead by %v to within %v", ended.Status, ended.LineAhead, ended.LineError)
				}
				heir := s.anotherMute("heir", 4, mute)
				heir.send(protocol.RunState{RunID: runID, Epoch: 4, Status: engine.StatusRunning})
				synctest.Wait()
				hellos := messages[protocol.Hello](heir)
				said := hellos[len(hellos)-1].Workers[0]
				if mute {
					if said.LineAhead != 0 || said.LineError != 0 {
						t.Errorf("ahead by %v to within %v of a clock that is not compared", said.LineAhead, said.LineError)
					}
					heir.mu.Lock()
					heir.mute = false
					heir.mu.Unlock()
					time.Sleep(2 * time.Second)
					synctest.Wait()
					said = heir.last()
				}
				if said.LineAhead != time.Hour || said.LineError <= 0 || !said.At.Equal(ended.At) || !said.Status.Ended() {
					t.Errorf("%s at %v, ahead by %v to within %v; it ended at %v", said.Status, said.At, said.LineAhead,
						said.LineError, ended.At)
				}
				heir.kill()
				s.end()
			})
		})
	}
}
