package live

import (
	"fmt"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// The payload has each error once, with how often all run workers met it, and when first and last.
func TestErrorsAreMetByAllWorkers(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	second := func(n int) engine.Time { return engine.At(begin.Add(time.Duration(n) * time.Second)) }
	clash := engine.ExecutionError{Class: engine.ErrClassConstraint, Code: "23505", Message: "duplicate key"}
	late := engine.ExecutionError{Class: engine.ErrClassTimeout, Message: "no answer in time"}
	a := New()
	tell := func(worker string, tick int64, met ...engine.ObservedError) []engine.ObservedError {
		a.Add(&engine.WorkerSnapshot{WorkerID: worker, Tick: tick, Phase: engine.PhaseMeasurement, TickSeconds: 1,
			Timestamp: second(int(tick)), LastErrors: met})
		return a.Tick(engine.PhaseMeasurement, []Worker{
			{WorkerID: "a", Status: engine.WorkerRunning, LastHeartbeat: second(int(tick)).Time},
			{WorkerID: "b", Status: engine.WorkerRunning, LastHeartbeat: second(int(tick)).Time},
		}).Payload.Errors.Recent
	}
	tell("a", 1, engine.ObservedError{ExecutionError: clash, Count: 2, FirstAt: second(1), LastAt: second(1)})
	tell("b", 1, engine.ObservedError{ExecutionError: late, Count: 1, FirstAt: second(0), LastAt: second(0)},
		engine.ObservedError{ExecutionError: clash, Count: 5, FirstAt: second(0), LastAt: second(0)})
	got := tell("a", 2, engine.ObservedError{ExecutionError: clash, Count: 4, FirstAt: second(1), LastAt: second(2)})
	if len(got) != 2 || got[0].ExecutionError != late || got[0].Count != 1 {
		t.Fatalf("%+v", got)
	}
	if e := got[1]; e.ExecutionError != clash || e.Count != 9 || e.FirstAt != second(0) || e.LastAt != second(2) {
		t.Errorf("%+v", e)
	}
	// A run worker tells of few. What it told of before is not forgotten with the next that it tells of.
	var last []engine.ObservedError
	for i := range 100 {
		last = tell("b", int64(i+2), engine.ObservedError{ExecutionError: engine.ExecutionError{Class: engine.ErrClassOther,
			Message: fmt.Sprint("of key ", i)}, Count: 1, FirstAt: second(i + 2), LastAt: second(i + 2)})
	}
	if len(last) != maxRecentErrors || last[maxRecentErrors-1].Message != "of key 99" || last[0].Message != "of key 90" {
		t.Errorf("%d, from %+v to %+v", len(last), last[0], last[len(last)-1])
	}
	if n := len(a.workers["b"].errors); n != maxKeptErrors {
		t.Errorf("%d are remembered", n)
	}
}
