package run

import (
	"slices"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/run/finalize"
	"github.com/loadstone-db/loadstone/engine/target"
)

func heldPart(id string) nodes.Part { return nodes.Part{WorkReady: protocol.WorkReady{WorkID: id}} }

func idsOf(parts []nodes.Part) (ids []string) {
	for _, p := range parts {
		ids = append(ids, p.WorkID)
	}
	return ids
}

// TestFinisherLosesNoPart: what is neither stored nor given to who finishes the run would be missing in the figures.
func TestFinisherLosesNoPart(t *testing.T) {
	f := newFinisher()
	for _, id := range []string{"c", "a", "b"} {
		f.parts[id] = heldPart(id)
	}
	if got := idsOf(f.unstored()); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("before the figures %v are left", got)
	}
	if got := idsOf(f.collect()); !slices.Equal(got, []string{"a", "b", "c"}) || len(f.parts) != 0 {
		t.Errorf("%v are stored, %d kept", got, len(f.parts))
	}
	f.parts["b"] = heldPart("b") // its node announces it again
	f.parts["d"] = heldPart("d")
	if got := idsOf(f.unstored()); !slices.Equal(got, []string{"a", "b", "c", "d"}) {
		t.Errorf("while figures are computed %v are left", got)
	}
	f.markStored([]string{"a", "b"})
	if got := idsOf(f.unstored()); !slices.Equal(got, []string{"b", "c", "d"}) {
		t.Errorf("%v are left: b was announced again, c is not stored, d is new", got)
	}
}

func TestFinisherWithoutEnrichment(t *testing.T) {
	if f := newFinisher(); f.enrichmentDone() != nil {
		t.Error("it waits for an enrichment that there is not")
	}
}

func TestEnvironmentOfARun(t *testing.T) {
	var workerTable WorkerTable
	workerTable.Register(&Worker{ID: "worker-0", Node: fakeNode("a"), State: protocol.WorkerState{IOEngine: "events"}})
	workerTable.Register(&Worker{ID: "worker-1", Node: fakeNode("b")})
	calibration := &engine.Calibration{}
	e := environmentOf("1.2", calibration, &workerTable, nil)
	if e.Nodes != 2 || e.IOEngine != "events" || e.Calibration != calibration || e.Driver != "" {
		t.Errorf("before it is prepared: %+v", e)
	}
	e = environmentOf("1.2", nil, &workerTable, &prepare.Prepared{Plan: &engine.Plan{Driver: "postgres"},
		Server: target.ServerInfo{Version: "17", MaxConnections: 100, Local: true}})
	if e.Driver != "postgres" || e.ServerVersion != "17" || e.TargetMaxConnections != 100 || !e.TargetIsLocal {
		t.Errorf("of a prepared one: %+v", e)
	}
}

func TestCountsAreThoseThatWereTold(t *testing.T) {
	told := &Worker{ID: "worker-0", ResultID: "r0", DeadReason: "gone",
		State: protocol.WorkerState{Totals: &engine.Totals{}, Err: &engine.Error{Message: "no memory"}}}
	workers := evidenceOf([]*Worker{told, {ID: "worker-1", ResultID: "r1", DeadReason: "silent"}})
	if workers[0].Failure != "no memory" || workers[1].Failure != "silent" {
		t.Errorf("they failed with %q and %q", workers[0].Failure, workers[1].Failure)
	}
	rows := countsOf(engine.Run{RunID: "run-1"}, workers)
	if len(rows) != 1 || rows[0].ResultID != "r0" {
		t.Errorf("%+v", rows)
	}
	if rows := countsOf(engine.Run{}, []finalize.Worker{}); rows != nil {
		t.Errorf("of nobody: %+v", rows)
	}
}

// TestAnotherEngineThanWasAskedFor is noted with the reason, and nothing is where auto chose.
func TestAnotherEngineThanWasAskedFor(t *testing.T) {
	for _, c := range []struct {
		asked engine.IOEngine
		drove string
		want  string
	}{
		{engine.IOAuto, "events", ""}, {"", "events", ""}, {engine.IOUring, "io_uring", ""}, {engine.IOUring, "", ""},
		{engine.IOUring, "events", "workload.io_engine asks for io_uring, but events drove the connections: why."},
		{engine.IOEvents, "goroutines", "workload.io_engine asks for events, but goroutines drove the connections: why."},
	} {
		note := otherEngine(c.asked, engine.Environment{IOEngine: c.drove, IOEngineReason: "why"})
		if note.String() != c.want {
			t.Errorf("%q of %q: %q", c.drove, c.asked, note.String())
		}
	}
	// A version before stored the code alone.
	if s := (engine.Note{Code: engine.NoteIOEngine}).String(); s != "workload.io_engine asks for events, but goroutines "+
		"drove the connections: event loops need Linux and connections without TLS." {
		t.Error(s)
	}
}
