package orchestrator_test

import (
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

// TestQuotasOfLiveRuns starts runs until a user has as many as one may have, and
// until the node is full: another user may go on with what is left.
func TestQuotasOfLiveRuns(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.mostLive, f.capacity = 2, 10
	f.start()
	long := func(connections int) func(*engine.Scenario) {
		return func(sc *engine.Scenario) {
			sc.Workload.DurationSeconds, sc.Workload.ConcurrentConnections = 60, connections
			sc.Target.Prepare = nil
		}
	}
	f.wait(f.run(nil).RunID) // makes the table; it is over and counts no more
	start := func(by string, connections int) (engine.Run, error) {
		t.Helper()
		created, err := f.svc.Create(t.Context(), f.scenario(long(connections)), by)
		if err != nil {
			t.Fatal(err)
		}
		return f.svc.Start(t.Context(), created.RunID, by)
	}
	first, err := start("a", 3)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := start("a", 3); err != nil {
		t.Fatal(err)
	}
	if _, err := start("a", 2); !engine.HasCode(err, engine.CodeConflict) ||
		!strings.Contains(err.Error(), "2 live runs") {
		t.Errorf("a third run of one user: %v", err)
	}
	if _, err := start("b", 5); !engine.HasCode(err, engine.CodeConflict) ||
		!strings.Contains(err.Error(), "hold 10 connections, and live runs use 6") {
		t.Errorf("more connections than are left: %v", err)
	}
	if _, err := start("b", 4); err != nil {
		t.Errorf("what fits: %v", err)
	}
	if _, err := f.svc.Stop(t.Context(), first.RunID, "a"); err != nil {
		t.Fatal(err)
	}
	f.wait(first.RunID)
	if _, err := start("a", 3); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
}
