package orchestrator_test

import (
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

func TestARunFromStartToFigures(t *testing.T) {
	f := newFixture(t).start()
	run := f.run(func(sc *engine.Scenario) {
		sc.Thresholds = []string{"qps > 1", "p95_ms < 0.000001"}
		sc.Tags = map[string]string{"ticket": "PERF-1"}
	})
	updates, cancel, err := f.svc.Subscribe(run.RunID)
	if err != nil {
		t.Fatal(err)
	}
	defer cancel()
	var phases []engine.Phase
	var final *engine.Payload
	for p := range updates {
		final = p
		if p.Phase != nil && (len(phases) == 0 || phases[len(phases)-1] != *p.Phase) {
			phases = append(phases, *p.Phase)
		}
	}
	if final.Status != engine.StatusCompleted || final.Phase != nil {
		t.Fatalf("final payload: %s %v\n%s", final.Status, final.Phase, f.logs(run.RunID))
	}
	t.Log(phases)
	sum := f.wait(run.RunID)
	if !sum.Accounting.Balanced || sum.Operations == 0 || sum.Accounting.Warmup == 0 || sum.Accounting.Recorded != sum.Accounting.Warmup+sum.Operations {
		t.Fatalf("accounting %+v, %d operations", sum.Accounting, sum.Operations)
	}
	if len(sum.Thresholds) != 2 || !sum.Thresholds[0].Passed || sum.Thresholds[1].Passed || sum.Passed {
		t.Fatalf("thresholds %+v, passed %v", sum.Thresholds, sum.Passed)
	}
	if len(sum.Plugins) != 2 || sum.Plugins[0].SHA256 == "" || sum.Environment.ServerVersion == "" || sum.Environment.IOEngine == "" {
		t.Fatalf("plugins %+v, environment %+v", sum.Plugins, sum.Environment)
	}
	d := f.detail(run.RunID)
	if d.Status != engine.StatusCompleted || d.Phase != engine.PhaseNone || len(d.Workers) != 2 || len(d.Artifacts) != 2 || d.Plan == nil || d.Live != nil || d.Summary == nil {
		t.Fatalf("detail: %s/%q, %d workers, %d artifacts", d.Status, d.Phase, len(d.Workers), len(d.Artifacts))
	}
	var types []engine.EventType
	for i, e := range d.Events {
		if e.SequenceID != int64(i+1) {
			t.Fatalf("event %d has the sequence id %d", i, e.SequenceID)
		}
		types = append(types, e.Type)
	}
	want := []engine.EventType{engine.EventStart, engine.EventSetPhase, engine.EventSetPhase, engine.EventStop}
	if len(types) != len(want) {
		t.Fatalf("events %v", types)
	}
	var operations int64
	for _, w := range d.Workers {
		if w.Figures == nil || w.Status != engine.StatusCompleted || !w.Figures.Accounting.Balanced {
			t.Fatalf("worker %+v", w)
		}
		operations += w.Figures.Operations
	}
	if operations != sum.Operations {
		t.Fatalf("the workers have %d operations, the run %d", operations, sum.Operations)
	}
	if took := sum.EndTime.Sub(d.WarmupStartTime.Time); took < 1600*time.Millisecond || took > 5*time.Second {
		t.Fatalf("load took %v", took)
	}
	points, err := f.store.Points(t.Context(), run.RunID)
	if err != nil || len(points) == 0 {
		t.Fatalf("%d points, %v", len(points), err)
	}
}
