package run_test

import (
	"strings"
	"testing"
	"time"

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
		created, err := f.svc.Create(t.Context(), f.scenario(long(connections)), engine.Actor{Name: by})
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
	waits, err := start("b", 5)
	if err != nil || waits.Status != engine.StatusPrepared || waits.Waiting == nil ||
		waits.Waiting.Reason != "waits for 5 connections; 4 are free on 1 node" || waits.Waiting.Position != 1 {
		t.Fatalf("more connections than are left: %+v, %v", waits.Waiting, err)
	}
	behind, err := start("b", 2)
	if err != nil || behind.Waiting == nil || behind.Waiting.Position != 2 {
		t.Errorf("one that would fit is started before another that waits: %+v, %v", behind.Waiting, err)
	}
	if _, err := start("b", 2); !engine.HasCode(err, engine.CodeConflict) {
		t.Errorf("runs that wait count for nobody: %v", err)
	}
	if run, err := f.svc.Stop(t.Context(), waits.RunID, "b"); err != nil || run.Status != engine.StatusCancelled {
		t.Errorf("a run that waits is stopped: %s, %v", run.Status, err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		run, err := f.svc.Run(t.Context(), behind.RunID)
		if err == nil && run.Status == engine.StatusRunning && run.Waiting == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the one behind it is %s, %+v, %v", run.Status, run.Waiting, err)
		}
	}
	if _, err := f.svc.Stop(t.Context(), behind.RunID, "b"); err != nil {
		t.Fatal(err)
	}
	f.wait(behind.RunID)
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
