package run_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	enginerun "github.com/loadstone-db/loadstone/engine/run"
	"github.com/loadstone-db/loadstone/engine/store"
)

func spooled(t *testing.T, f *fixture) []string {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(f.dir, "spool", "*", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// A run whose parts could not be stored ends without figures. The next start of the
// server takes them in.
func TestPartsThatCouldNotBeStoredAreTakenIn(t *testing.T) {
	t.Parallel()
	f := newFixture(t).start()
	run := f.run(func(sc *engine.Scenario) { sc.Thresholds = []string{"qps > 1"} })
	// Where the run's folder should be is something else: as good as a full disk, for root too.
	folder := filepath.Join(f.dir, "results", run.RunID)
	if err := os.WriteFile(folder, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	sum := f.wait(run.RunID)
	if sum.Status != engine.StatusCompleted || sum.Passed || sum.Accounting.Balanced ||
		!slices.Contains(causes(sum.ValidityDetail), "incomplete_record") || len(spooled(t, f)) == 0 {
		t.Fatalf("%s, passed %v, %+v, %+v, %v in the spool", sum.Status, sum.Passed, sum.Accounting, sum.ValidityDetail,
			spooled(t, f))
	}
	started := sum.Accounting.Started
	f.settled(run.RunID)
	f.stop()
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	f.start()
	var d engine.RunDetail
	for range 200 {
		if d = f.detail(run.RunID); d.Summary != nil && d.Summary.Operations > 0 &&
			strings.Contains(f.logs(run.RunID), "were taken in") {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	s := d.Summary
	if d.Status != engine.StatusCompleted || d.Phase != engine.PhaseNone || !s.Passed || !s.Accounting.Balanced ||
		s.Accounting.Recorded != started || slices.Contains(causes(s.ValidityDetail), "incomplete_record") {
		t.Errorf("%s/%q, passed %v, %+v of %d, %+v\n%s", d.Status, d.Phase, s.Passed, s.Accounting, started, s.ValidityDetail,
			f.logs(run.RunID))
	}
	if left := spooled(t, f); len(left) > 0 || partsOf(d) != 2 {
		t.Errorf("%d artifacts, and in the spool %v", len(d.Artifacts), left)
	}
	if d.TotalOps != s.Operations {
		t.Errorf("the list shows %d operations of %d", d.TotalOps, s.Operations)
	}
}

// stuck is a control store that takes no results.
type stuck struct{ enginerun.ControlStore }

func (s stuck) SaveResult(ctx context.Context, rows ...engine.RunResult) error {
	if slices.ContainsFunc(rows, func(r engine.RunResult) bool { return r.Figures != nil }) {
		return fmt.Errorf("saving a result: %w", store.ErrUnavailable)
	}
	return s.ControlStore.SaveResult(ctx, rows...)
}

// A server that is killed before it has stored anything of a run that is over finds
// its record whole, and what the run workers had counted beside it.
func TestAKillInProcessingLosesNoAccount(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.wrap = func(s enginerun.ControlStore) enginerun.ControlStore { return stuck{s} }
	f.start()
	run := f.run(nil)
	f.until(run.RunID, func(p *engine.LiveState) bool { return p.Status == engine.StatusCompleted })
	for range 200 { // what is killed later than this is not in the store yet
		if r, err := f.store.Run(t.Context(), run.RunID); err == nil && r.Status == engine.StatusCompleted {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	f.kill()
	f.wrap = func(s enginerun.ControlStore) enginerun.ControlStore { return s }
	f.start()
	d := f.settled(run.RunID)
	s := d.Summary
	if d.Status != engine.StatusCompleted || s == nil || s.Operations == 0 || !s.Accounting.Balanced ||
		s.Accounting.Recorded != s.Accounting.Started || slices.Contains(causes(s.ValidityDetail), "incomplete_record") {
		t.Fatalf("%s %+v\n%s", d.Status, s, f.logs(run.RunID))
	}
	if left := spooled(t, f); len(left) > 0 {
		t.Errorf("in the spool: %v", left)
	}
}
