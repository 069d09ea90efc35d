package worker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/engine/control"
	"github.com/loadstone-db/loadstone/engine/meter"
)

// slowEnd lets a second pass between the last word of a run worker and its end.
type slowEnd struct{}

func (slowEnd) Deleted(string) {}

func (slowEnd) Ended(meter.Worker) { time.Sleep(time.Second) }

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
		s.send(control.WorkerAck{RunID: runID, WorkerID: "worker-0", ResultID: "another"})
		synctest.Wait()
		if len(s.node.held) != 1 {
			t.Fatal("it has left before it is acknowledged")
		}
		s.send(control.WorkerAck{RunID: runID, WorkerID: "worker-0", ResultID: "test-1"})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if s.node.Idle(ctx); ctx.Err() != nil {
			t.Errorf("it waits: %d run workers, %d ends, %d parts", len(s.node.held), len(s.node.ended), len(s.node.parts))
		}
		s.end()
	})
}
