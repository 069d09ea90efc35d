package snowflake

import (
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/worker/load"
	"github.com/loadstone-db/loadstone/snowsim"
)

// TestLoadThroughFaults: under load everything goes wrong that the stand-in can do.
// Each execution is counted once, with the class of what met it; sessions that are
// renewed or opened anew go on, and none is left at the end.
func TestLoadThroughFaults(t *testing.T) {
	s := standIn(t, func(o *snowsim.Options) {
		// The connection is dropped a few times only: a run ends when all are lost at once.
		o.Faults = []snowsim.Fault{{Kind: snowsim.FaultThrottle, Every: 31}, {Kind: snowsim.FaultUnavailable, Every: 37},
			{Kind: snowsim.FaultExpired, Every: 23},
			{Kind: snowsim.FaultDrop, Every: 41, Times: 2}, {Kind: snowsim.FaultDropAnswer, Every: 43, Times: 2},
			{Kind: snowsim.FaultSlow, Every: 47, DelayMs: 20}}
	})
	db := openDSN(t, s.DSN(), target.Config{})
	sink := &memory{}
	g, err := load.Open(t.Context(), load.Config{Plan: &engine.Plan{Driver: "snowflake", Statements: []engine.Statement{
		{ID: "one", SQL: "SELECT ? AS a", Binds: []engine.Bind{{Type: engine.TypeI64}}, Columns: []string{"a"}}}},
		Workload: engine.Workload{LoadMode: engine.LoadConcurrency, ConcurrentConnections: 8}, Stream: &endless{},
		Database: db, Sink: sink, Log: zerolog.Nop()}, 8, nil)
	if err != nil {
		t.Fatal(err)
	}
	g.Start(engine.PhaseMeasurement)
	waitFor(t, func() bool { return s.Stats().Queries > 600 && s.Stats().Sessions == 8 })
	endLoad(t, g, db, 5*time.Second)
	classes := map[engine.ErrorClass]int{}
	for _, r := range sink.recs {
		if !r.Success {
			classes[g.Error(r.ErrorID).Class]++
		}
	}
	n, stats := g.Totals(), s.Stats()
	if n.Started != n.Succeeded+n.Failed || n.Recorded != n.Started || n.Succeeded < n.Failed {
		t.Errorf("%+v", n)
	}
	for _, class := range []engine.ErrorClass{engine.ErrClassThrottled, engine.ErrClassConnection} {
		if classes[class] == 0 {
			t.Errorf("no execution failed with %s: %v", class, classes)
		}
		delete(classes, class)
	}
	if len(classes) != 0 {
		t.Errorf("classes that were not expected: %v", classes)
	}
	if stats.Renewals == 0 || stats.Faults < 50 || stats.Sessions != 0 {
		t.Errorf("%+v", stats)
	}
}
