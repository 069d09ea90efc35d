package retention_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/retention"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/keyring"
	"github.com/loadstone-db/loadstone/storage/postgres"
	"github.com/loadstone-db/loadstone/storage/postgres/postgrestest"
)

func TestMain(m *testing.M) {
	_ = os.Unsetenv(keyring.KeyEnv)
	goleak.VerifyTestMain(pgtest.M{M: m})
}

// now is what it is by the clock of the store, which is on this machine.
var now = time.Now().UTC().Truncate(time.Millisecond)

func run(id string, age time.Duration, gb float64, pin store.Pin) store.EndedRun {
	r := store.EndedRun{RunID: id, EndedAt: engine.At(now.Add(-age)), Pin: pin, Bytes: int64(gb * 1e9)}
	if gb > 0 {
		r.Parts = 1
	}
	return r
}

const day = 24 * time.Hour

// TestPlan holds what rules come to.
func TestPlan(t *testing.T) {
	runs := []store.EndedRun{run("a", 100*day, 4, ""), run("b", 90*day, 3, store.PinNote), run("c", 40*day, 2, ""),
		run("d", 35*day, 0, ""), run("e", 20*day, 2, store.PinBaseline), run("f", 10*day, 1, ""),
		run("g", 2*time.Hour, 1, ""), run("h", time.Minute, 5, "")}
	for _, c := range []struct {
		name  string
		rules retention.Rules
		want  string
		kept  string
		over  float64
	}{
		{"nothing", retention.Rules{}, "", "map[]", 0},
		{"runs", retention.Rules{RunDays: 30}, "a run_age, c run_age, d run_age", "map[note:1]", 0},
		{"the day itself stays", retention.Rules{RunDays: 100}, "", "map[]", 0},
		{"executions", retention.Rules{ExecutionDays: 15}, "a execution_age, c execution_age", "map[baseline:1 note:1]", 0},
		{"both", retention.Rules{RunDays: 50, ExecutionDays: 15}, "a run_age, c execution_age", "map[baseline:1 note:1]", 0},
		{"budget", retention.Rules{BudgetGB: 12}, "a budget, c budget", "map[note:1]", 0},
		{"no budget is needed", retention.Rules{BudgetGB: 18}, "", "map[]", 0},
		{"a budget that cannot be kept", retention.Rules{BudgetGB: 2}, "a budget, c budget, f budget, g budget",
			"map[baseline:1 note:1]", 8},
		{"days and a budget", retention.Rules{RunDays: 60, BudgetGB: 12}, "a run_age, c budget", "map[note:1]", 0},
	} {
		p := c.rules.Plan(runs, now)
		var got []string
		for _, v := range p.Victims {
			got = append(got, v.RunID+" "+string(v.Reason))
			if v.Whole != (v.Reason == retention.RunAge) {
				t.Errorf("%s: %s goes whole: %t", c.name, v.RunID, v.Whole)
			}
		}
		if strings.Join(got, ", ") != c.want || fmt.Sprint(p.Kept) != c.kept || p.Over != int64(c.over*1e9) {
			t.Errorf("%s: goes %q, kept %v, over %d", c.name, got, p.Kept, p.Over)
		}
		_, _, freed := p.Count()
		if p.Bytes != 18e9 || p.BytesAfter != p.Bytes-freed || p.Runs != len(runs) {
			t.Errorf("%s: %d bytes, %d after %d", c.name, p.Bytes, p.BytesAfter, freed)
		}
	}
}

// TestRulesAreChecked names the field of what cannot be a rule.
func TestRulesAreChecked(t *testing.T) {
	for field, r := range map[string]retention.Rules{
		"on": {Enabled: true}, "keep_runs_days": {RunDays: -1}, "executions_budget_gb": {BudgetGB: -1},
		"keep_executions_days": {RunDays: 5, ExecutionDays: 6}, "keep_tags[1]": {KeepTags: []string{"a", ""}},
	} {
		var wrong *engine.Error
		if err := r.Check(); !errors.As(err, &wrong) || len(wrong.Fields) != 1 || wrong.Fields[0].Field != field ||
			wrong.Fields[0].Hint == "" {
			t.Errorf("%s: %v", field, err)
		}
	}
	if err := (retention.Rules{Enabled: true, RunDays: 30, ExecutionDays: 30, BudgetGB: 0.5}).Check(); err != nil {
		t.Error(err)
	}
}

// files are where runs have theirs.
type files struct {
	mu      sync.Mutex
	removed []string
	fail    error
	// place is where they are; none: no run has any there. stuck is what cannot be removed.
	place string
	none  bool
	stuck string
}

func (f *files) Delete(_ context.Context, runID string) error { return f.remove("all of " + runID) }
func (f *files) DeleteExecutions(_ context.Context, runID string) error {
	return f.remove("executions of " + runID)
}

func (f *files) RemoveSegment(_ context.Context, runID, name string) error {
	return f.remove(name + " of " + runID)
}

func (f *files) HasExecutions(context.Context, string) (bool, error) { return !f.none, nil }

func (f *files) Place() (place, label string, err error) { return f.place + "p", "/results", nil }

func (f *files) remove(what string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return f.fail
	}
	if what == f.stuck {
		return errors.New("permission denied")
	}
	f.removed = append(f.removed, what)
	return nil
}

func (f *files) gone() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	slices.Sort(f.removed)
	return strings.Join(f.removed, ", ")
}

func ended(t *testing.T, s *postgres.Store, id string, at time.Time, bytes int64) {
	t.Helper()
	ctx := t.Context()
	if err := s.CreateRun(ctx, engine.Run{RunID: id, ResultID: id, RunName: id}); err != nil {
		t.Fatal(err)
	}
	for _, to := range []engine.Status{engine.StatusRunning, engine.StatusStopping, engine.StatusCompleted} {
		phase := engine.PhaseNone
		if _, err := s.Transition(ctx, store.Transition{RunID: id, To: to, Phase: &phase, EndTime: at}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.SaveArtifact(ctx, 0, engine.Artifact{RunID: id, ResultID: id, Kind: "executions",
		Name: "executions-1.parquet", SHA256: "ab", SizeBytes: bytes}); err != nil {
		t.Fatal(err)
	}
}

// TestJanitor lets old runs and executions go, tells the audit log, and goes on where it could not remove files.
func TestJanitor(t *testing.T) {
	t.Parallel()
	ctx, f := t.Context(), &files{}
	s, _ := postgrestest.Open(t)
	ended(t, s, "old", now.Add(-50*day), 5)
	ended(t, s, "middle", now.Add(-20*day), 7)
	ended(t, s, "new", now.Add(-day), 9)
	k := retention.New(retention.Options{Store: s, Files: f, Owner: "a"})
	look := func(k *retention.Janitor) error {
		t.Helper()
		return k.RunPass(ctx)
	}
	if err := look(k); err != nil || f.gone() != "" {
		t.Fatalf("before anything was decided: %v, %s", err, f.gone())
	}
	rules := retention.Rules{RunDays: 30, ExecutionDays: 10}
	saved, err := k.Save(ctx, rules, 0, "ada")
	if err != nil || look(k) != nil || f.gone() != "" {
		t.Fatalf("while it is off: %v, %s", err, f.gone())
	}
	rules.Enabled = true
	if _, err := k.Save(ctx, rules, 0, "eve"); !errors.Is(err, store.ErrConflict) {
		t.Errorf("saved over another version: %v", err)
	}
	if saved, err = k.Save(ctx, rules, saved.Version, "ada"); err != nil {
		t.Fatal(err)
	}
	f.fail = errors.New("the disk is away")
	if err := look(k); err == nil || f.gone() != "" {
		t.Errorf("files that cannot be removed: %v, %s", err, f.gone())
	}
	if _, err := s.Run(ctx, "old"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the old run: %v", err)
	}
	pass, err := k.LastPass(ctx)
	if err != nil || pass == nil || pass.Planned != 2 || pass.Done != 2 || pass.Runs != 1 || pass.Executions != 1 ||
		pass.Bytes != 0 || pass.FilesLeft != 2 || pass.Error == "" || pass.EndedAt.IsZero() {
		t.Errorf("the pass: %+v, %v", pass, err)
	}
	f.fail = nil
	if _, err := s.AcquireTaskLease(ctx, "retention", "b", time.Hour); err != nil {
		t.Fatal(err)
	}
	ended(t, s, "late", now.Add(-40*day), 3)
	if err := look(k); err != nil || f.gone() != "all of old, executions of middle" {
		t.Errorf("out of its turn it removes what was left over, and no more: %v, %s", err, f.gone())
	}
	if err := s.DeleteRun(ctx, "late"); err != nil {
		t.Fatal(err)
	}
	if err := s.ReleaseTaskLease(ctx, "retention", "b"); err != nil {
		t.Fatal(err)
	}
	if err := look(k); err != nil || f.gone() != "all of late, all of old, executions of middle" {
		t.Errorf("what was left over: %v, %s", err, f.gone())
	}
	lines, err := s.ListAudit(ctx, store.AuditFilter{Action: "run"})
	if err != nil || len(lines) != 2 || lines[0].Object != "middle" || lines[0].Action != "run.delete_executions" ||
		lines[1].Action != "run.delete" || !strings.Contains(lines[1].Detail, "run_age") {
		t.Errorf("the audit log: %+v, %v", lines, err)
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(k)
	if families, err := registry.Gather(); err != nil || len(families) != 4 {
		t.Errorf("%d metrics, %v", len(families), err)
	}
	if saved.UpdatedBy != "ada" {
		t.Errorf("saved by %q", saved.UpdatedBy)
	}
}

// TestABudgetThatCannotBeKeptIsTold also where nothing can go: once in the log, and until it is kept again.
func TestABudgetThatCannotBeKeptIsTold(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, _ := postgrestest.Open(t)
	var log bytes.Buffer
	ended(t, s, "pinned", now.Add(-50*day), 5e9)
	if _, err := s.SaveRunNote(ctx, store.RunNote{RunID: "pinned", Text: "keep", UpdatedBy: "ada"}); err != nil {
		t.Fatal(err)
	}
	k := retention.New(retention.Options{Store: s, Files: &files{}, Owner: "a", Log: zerolog.New(&log)})
	other := retention.New(retention.Options{Store: s, Files: &files{}, Owner: "b", Log: zerolog.New(&log)})
	rules := retention.Rules{Enabled: true, BudgetGB: 1}
	look := func(version int64, over int64) {
		t.Helper()
		if _, err := k.Save(ctx, rules, version, "ada"); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := errors.Join(k.RunPass(ctx), other.RunPass(ctx)); err != nil {
				t.Fatal(err)
			}
		}
		got, err := other.OverBudget(ctx, rules)
		if err != nil || got.Bytes != over || got.Since.IsZero() != (over == 0) {
			t.Errorf("%+v, %v; want %d", got, err, over)
		}
	}
	look(0, 4e9)
	if pass, err := k.LastPass(ctx); pass != nil || err != nil {
		t.Errorf("nothing went, and the pass is %+v, %v", pass, err)
	}
	since, err := k.OverBudget(ctx, rules)
	if err != nil {
		t.Fatal(err)
	}
	rules.BudgetGB = 2
	look(1, 3e9)
	if got, err := k.OverBudget(ctx, rules); err != nil || !got.Since.Equal(since.Since.Time) {
		t.Errorf("above the budget since %v, then since %v: %v", since.Since, got.Since, err)
	}
	if off, err := k.OverBudget(ctx, retention.Rules{BudgetGB: 2}); err != nil || off.Bytes != 0 {
		t.Errorf("while it is off: %+v, %v", off, err)
	}
	rules.BudgetGB = 6
	look(2, 0)
	if told := log.String(); strings.Count(told, "above their budget") != 1 || strings.Count(told, "again") != 1 ||
		!strings.Contains(told, `"over_budget_bytes":4000000000`) {
		t.Errorf("the log says\n%s", told)
	}
	rules.BudgetGB = 1
	look(3, 4e9)
	rules.Enabled = false
	look(4, 0)
	if told := log.String(); strings.Count(told, "again") != 1 {
		t.Errorf("switching it off is told as a budget that is kept:\n%s", told)
	}
	// Switched on again it is above the budget from then on, and not from when it was on before.
	if kept, err := s.Setting(ctx, "retention.over"); err != nil || strings.Contains(string(kept.Value), "4000000000") {
		t.Errorf("while it is off: %s, %v", kept.Value, err)
	}
}

// TestJanitorStopsWhenRulesChange: what an admin has decided meanwhile counts for the next run.
func TestJanitorStopsWhenRulesChange(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, _ := postgrestest.Open(t)
	for i := range 3 {
		ended(t, s, fmt.Sprint("r", i), now.Add(-50*day), 1)
	}
	clock, steps := now, 0
	var k *retention.Janitor
	f := &calls{then: func() {
		if steps++; steps == 1 {
			clock = clock.Add(time.Minute) // the next step looks at the rules
			if _, err := k.Save(ctx, retention.Rules{}, 1, "ada"); err != nil {
				t.Error(err)
			}
		}
	}}
	k = retention.New(retention.Options{Store: s, Files: f, Owner: "a", Now: func() time.Time { return clock }})
	if _, err := k.Save(ctx, retention.Rules{Enabled: true, RunDays: 1}, 0, "ada"); err != nil {
		t.Fatal(err)
	}
	if err := k.RunPass(ctx); err != nil {
		t.Fatal(err)
	}
	runs, err := s.ListRuns(ctx, store.RunFilter{})
	if err != nil || runs.Total != 2 {
		t.Errorf("%d runs are left, want 2 (%v)", runs.Total, err)
	}
	if p, err := k.LastPass(ctx); err != nil || !p.CutShort || p.Done != 1 || p.Planned != 3 || p.EndedAt.IsZero() {
		t.Errorf("the pass was cut short: %+v, %v", p, err)
	}
	// The turn is not kept: who has saved the change is waiting for it.
	if mine, err := s.AcquireTaskLease(ctx, "retention", "b", time.Hour); err != nil || !mine {
		t.Errorf("the turn of another: %t, %v", mine, err)
	}
}

// TestAWrongClockDeletesNothing: ages are judged by the store, which a server with a clock of next year may ask.
func TestAWrongClockDeletesNothing(t *testing.T) {
	t.Parallel()
	ctx, f := t.Context(), &files{}
	s, _ := postgrestest.Open(t)
	ended(t, s, "new", now.Add(-day), 9)
	k := retention.New(retention.Options{Store: s, Files: f, Owner: "a",
		Now: func() time.Time { return time.Now().Add(365 * day) }})
	rules := retention.Rules{Enabled: true, RunDays: 30, ExecutionDays: 10}
	if _, err := k.Save(ctx, rules, 0, "ada"); err != nil {
		t.Fatal(err)
	}
	plan, err := k.Preview(ctx, rules)
	if err != nil || len(plan.Victims) != 0 {
		t.Errorf("it would delete %+v, %v", plan.Victims, err)
	}
	if err := k.RunPass(ctx); err != nil || f.gone() != "" {
		t.Errorf("it has deleted %q, %v", f.gone(), err)
	}
	ended(t, s, "old", now.Add(-31*day), 9)
	if err := k.RunPass(ctx); err != nil || f.gone() != "all of old" {
		t.Errorf("it has deleted %q, %v", f.gone(), err)
	}
	if p, err := k.LastPass(ctx); err != nil || time.Since(p.StartedAt.Time) > time.Hour ||
		time.Until(p.EndedAt.Time) > time.Hour || p.CutShort {
		t.Errorf("the pass is told to be at another time: %+v, %v", p, err)
	}
}

// TestABrokenPassIsEnded: a server that ended in the middle leaves none that seems to go on.
func TestABrokenPassIsEnded(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, _ := postgrestest.Open(t)
	_, err := s.SaveSetting(ctx, store.Setting{Name: "retention.pass", UpdatedBy: "gone",
		Value: []byte(`{"started_at":"2026-01-01T00:00:00.000Z","ended_at":null,"planned":10,"done":4}`)})
	if err != nil {
		t.Fatal(err)
	}
	k := retention.New(retention.Options{Store: s, Files: &files{}, Owner: "a"})
	if err := k.RunPass(ctx); err != nil {
		t.Fatal(err)
	}
	if p, err := k.LastPass(ctx); err != nil || !p.CutShort || p.EndedAt.IsZero() || p.Done != 4 {
		t.Errorf("the broken pass: %+v, %v", p, err)
	}
}

// TestAnotherServersChangeIsSeen within seconds: who is not at turn asks again soon.
func TestAnotherServersChangeIsSeen(t *testing.T) {
	t.Parallel()
	f := &files{}
	s, _ := postgrestest.Open(t)
	ended(t, s, "old", now.Add(-50*day), 5)
	if _, err := s.AcquireTaskLease(t.Context(), "retention", "b", time.Minute); err != nil {
		t.Fatal(err)
	}
	k := retention.New(retention.Options{Store: s, Files: f, Owner: "a", RetryDelay: 20 * time.Millisecond})
	k.Start()
	defer k.Close()
	if _, err := k.Save(t.Context(), retention.Rules{Enabled: true, RunDays: 1}, 0, "ada"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	if f.gone() != "" {
		t.Errorf("out of its turn: %s", f.gone())
	}
	if err := s.ReleaseTaskLease(t.Context(), "retention", "b"); err != nil {
		t.Fatal(err)
	}
	for f.gone() == "" {
		time.Sleep(5 * time.Millisecond)
	}
	if f.gone() != "all of old" {
		t.Errorf("in its turn: %q", f.gone())
	}
}

type calls struct{ then func() }

func (c *calls) Delete(context.Context, string) error           { c.then(); return nil }
func (c *calls) DeleteExecutions(context.Context, string) error { c.then(); return nil }

func (c *calls) RemoveSegment(context.Context, string, string) error { return nil }
func (c *calls) HasExecutions(context.Context, string) (bool, error) { return true, nil }
func (c *calls) Place() (place, label string, err error)             { return "p", "/results", nil }

// TestOnlyWhoReachesFilesClearsThem: a server with a folder of its own says nothing of the files of another's, whose
// file that cannot be removed holds up no other, and is told.
func TestOnlyWhoReachesFilesClearsThem(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, _ := postgrestest.Open(t)
	own, other := &files{stuck: "all of r1"}, &files{place: "other ", none: true}
	a := retention.New(retention.Options{Store: s, Files: own, Owner: "a"})
	b := retention.New(retention.Options{Store: s, Files: other, Owner: "b"})
	for _, k := range []*retention.Janitor{a, b} { // before anything is to be deleted
		if err := k.RunPass(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		ended(t, s, fmt.Sprint("r", i), now.Add(-50*day), 5)
	}
	if _, err := b.Save(ctx, retention.Rules{Enabled: true, RunDays: 30}, 0, "ada"); err != nil {
		t.Fatal(err)
	}
	if err := b.RunPass(ctx); err != nil {
		t.Fatal(err)
	}
	if err := b.RunPass(ctx); err != nil { // it says nothing of the files that are elsewhere
		t.Fatal(err)
	}
	p, err := b.LastPass(ctx)
	if err != nil || p.Runs != 3 || p.Bytes != 0 || p.FilesLeft != 0 || own.gone() != "" {
		t.Errorf("who has no files: %+v, %v, removed %q", p, err, own.gone())
	}
	if err := a.RunPass(ctx); err == nil || own.gone() != "all of r0, all of r2" {
		t.Errorf("who has them removes %q, %v", own.gone(), err)
	}
	left, err := a.Backlogs(ctx)
	if err != nil || len(left) != 1 || left[0].Location != "p" || left[0].Runs != 1 || left[0].Label != "/results" ||
		!strings.Contains(left[0].Problem, "permission denied") || left[0].TriedAt.IsZero() {
		t.Errorf("left over: %+v, %v", left, err)
	}
	own.stuck = ""
	if err := a.RunPass(ctx); err != nil || own.gone() != "all of r0, all of r1, all of r2" {
		t.Errorf("who has them removes %q, %v", own.gone(), err)
	}
	if left, err := a.Backlogs(ctx); err != nil || len(left) != 0 {
		t.Errorf("left over: %+v, %v", left, err)
	}
	// A run that a user deletes leaves a trace until its files are gone, and a single file is removed alone.
	ended(t, s, "r9", now, 5)
	if err := s.DeleteRun(ctx, "r9"); err != nil {
		t.Fatal(err)
	}
	if err := s.QueueDeletion(
		ctx,
		store.PendingDeletion{RunID: "r8", Location: "p", Part: "segment-1.parquet"},
	); err != nil {
		t.Fatal(err)
	}
	if err := a.RunPass(ctx); err != nil || !strings.Contains(own.gone(), "all of r9, segment-1.parquet of r8") {
		t.Errorf("who has them removes %q, %v", own.gone(), err)
	}
}

// TestJanitorLooksByItself: saved rules count at once, and Close ends it.
func TestJanitorLooksByItself(t *testing.T) {
	t.Parallel()
	f := &files{}
	s, _ := postgrestest.Open(t)
	ended(t, s, "old", now.Add(-50*day), 5)
	k := retention.New(retention.Options{Store: s, Files: f, Owner: "a", Interval: time.Hour})
	k.Start()
	defer k.Close()
	if _, err := k.Save(t.Context(), retention.Rules{Enabled: true, RunDays: 1}, 0, "ada"); err != nil {
		t.Fatal(err)
	}
	for f.gone() == "" {
		if t.Context().Err() != nil {
			t.Fatal("nothing is removed")
		}
		time.Sleep(5 * time.Millisecond)
	}
}
