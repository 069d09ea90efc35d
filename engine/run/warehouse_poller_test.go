package run_test

import (
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

func TestQueueingEndsASearch(t *testing.T) {
	t.Parallel()
	f, a := newAccount(t)
	const slots = 3
	a.queue = func(open int) bool { return open > slots+1 } // one connection is the preparation's
	f.pollEvery = 50 * time.Millisecond
	f.start()
	run := f.run(func(sc *engine.Scenario) {
		onAccount(sc)
		sc.Workload.LoadMode, sc.Workload.WarmupSeconds = engine.LoadFindMax, 0
		// Throughput grows with each connection on a busy machine, too: it must not be what ends the search.
		sc.Workload.ConcurrentConnections, sc.Workload.ThinkTimeMs = 1, 10
		sc.Scaling.WorkerCount = 1
		sc.FindMax = engine.FindMax{Enabled: true, Unit: engine.FindMaxConnections, StartConcurrency: 1,
			ConcurrencyIncrement: 1, StepDurationSeconds: 1,
			QPSStabilityPct: 0, LatencyStabilityPct: 100_000, MaxErrorRatePct: 50, MaxDurationSeconds: 90}
	})
	p := f.until(run.RunID, func(p *engine.LiveState) bool { return p.Warehouse != nil && p.Warehouse.Queued > 0 })
	if p.Warehouse.Name != "WH" || p.Warehouse.Raw != nil || p.Warehouse.PolledAt.IsZero() {
		t.Fatalf("%+v", p.Warehouse)
	}
	p = f.until(run.RunID, func(p *engine.LiveState) bool {
		for _, s := range p.FindMax.Steps {
			if s.QueueDetected {
				return true
			}
		}
		return false
	})
	last := p.FindMax.Steps[len(p.FindMax.Steps)-1]
	if last.Outcome != engine.OutcomeQueueDetected {
		t.Fatalf("%+v\n%s", last, f.logs(run.RunID))
	}
	if _, err := f.svc.Stop(t.Context(), run.RunID, "tester"); err != nil {
		t.Fatal(err)
	}
	f.wait(run.RunID)
	points, err := f.store.Warehouse(t.Context(), run.RunID)
	if err != nil || len(points) < 3 || points[0].Name != "WH" {
		t.Fatalf("%d polls, %v", len(points), err)
	}
}

func TestAPollerThatFailsFailsNoRun(t *testing.T) {
	t.Parallel()
	f, a := newAccount(t)
	f.pollEvery = 20 * time.Millisecond
	a.queue = nil
	f.start()
	run := f.run(onAccount)
	p := f.until(run.RunID, func(p *engine.LiveState) bool { return p.Warehouse != nil })
	if !strings.Contains(p.Warehouse.Error, "no privilege") {
		t.Fatalf("%+v", p.Warehouse)
	}
	if sum := f.wait(run.RunID); sum.Status != engine.StatusCompleted {
		t.Fatalf("%s", sum.Status)
	}
	if n := strings.Count(f.logs(run.RunID), "The warehouse could not be polled"); n == 0 || n > 10 {
		t.Fatalf("told %d times\n%s", n, f.logs(run.RunID))
	}
}
