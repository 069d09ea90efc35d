package postgres_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres"
)

func makeCompletedRun(t testing.TB, s *postgres.Store, id, template string, path ...engine.Status) {
	t.Helper()
	must(
		t,
		s.CreateRun(t.Context(), engine.Run{RunID: id, ResultID: id, RunName: "run " + id, TemplateID: template,
			Scenario: engine.Scenario{Name: id, Tags: map[string]string{"old": "yes"}}}),
	)
	for _, to := range path {
		phase := engine.PhaseMeasurement
		if to.Terminal() {
			phase = engine.PhaseNone
		}
		change := store.Transition{RunID: id, To: to, Phase: &phase}
		if to == engine.StatusRunning {
			change.StartTime = time.Now()
		}
		_, err := s.Transition(t.Context(), change)
		must(t, err)
	}
}

var completed = []engine.Status{engine.StatusRunning, engine.StatusStopping, engine.StatusCompleted}

// RunArtifacts checks links, notes, tags and baselines.
func RunArtifacts(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	template, err := s.CreateTemplate(ctx, store.Template{Name: "t", Config: engine.Scenario{Name: "t"}})
	must(t, err)
	makeCompletedRun(t, s, "r1", template.TemplateID, completed...)
	makeCompletedRun(t, s, "r2", "", completed...)
	makeCompletedRun(t, s, "r3", template.TemplateID, engine.StatusRunning)
	t.Run("shares", func(t *testing.T) { shares(t, s) })
	t.Run("notes", func(t *testing.T) { notes(t, s) })
	t.Run("tags", func(t *testing.T) { tags(t, s) })
	t.Run("tags of a run that ends", func(t *testing.T) { tagsAtTheEnd(t, s) })
	t.Run("baselines", func(t *testing.T) { baselines(t, s, template.TemplateID) })
}

func shares(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	soon := engine.At(time.Now().Add(time.Hour))
	secret, other := [32]byte{1}, [32]byte{2}
	makeCompletedRun(t, s, "gone", "", completed...)
	made, err := s.CreateShare(ctx, store.Share{RunID: "gone", CreatedBy: "ada", ExpiresAt: soon}, secret)
	must(t, err)
	if made.ShareID == "" || made.RunName != "run gone" || made.CreatedBy != "ada" || made.CreatedAt.IsZero() ||
		!made.UsedAt.IsZero() || made.UseCount != 0 || made.RunDeleted {
		t.Errorf("a new share: %+v", made)
	}
	_, err = s.CreateShare(ctx, store.Share{RunID: "nobody", ExpiresAt: soon}, other)
	wantError(t, err, store.ErrNotFound)
	_, err = s.UseShare(ctx, other)
	wantError(t, err, store.ErrNotFound)
	used, err := s.UseShare(ctx, secret)
	must(t, err)
	if used.ShareID != made.ShareID || used.UseCount != 1 || used.UsedAt.IsZero() {
		t.Errorf("a used share: %+v", used)
	}
	late, err := s.CreateShare(ctx, store.Share{RunID: "r1", ExpiresAt: engine.At(time.Now().Add(-time.Minute))}, other)
	must(t, err)
	expired, err := s.UseShare(ctx, other)
	must(t, err)
	if expired.ShareID != late.ShareID || expired.UseCount != 0 || !expired.UsedAt.IsZero() {
		t.Errorf("an expired share is used: %+v", expired)
	}
	list, err := s.ListShares(ctx, "")
	must(t, err)
	if len(list) != 2 || list[0].ShareID != late.ShareID || list[1].UseCount != 1 {
		t.Errorf("all shares: %+v", list)
	}
	must(t, s.DeleteRun(ctx, "gone"))
	if used, err = s.UseShare(ctx, secret); err != nil || !used.RunDeleted || used.RunName != "run gone" {
		t.Errorf("the share of a deleted run: %+v, %v", used, err)
	}
	list, err = s.ListShares(ctx, "gone")
	must(t, err)
	if len(list) != 1 || !list[0].RunDeleted {
		t.Errorf("the shares of a deleted run: %+v", list)
	}
	// Those of a user end with it, and no others.
	_, err = s.EnsureAdmin(ctx, "admin")
	must(t, err)
	leaver, err := s.CreateUser(ctx, "leaver", store.RoleOperator)
	must(t, err)
	hers := [32]byte{3}
	_, err = s.CreateShare(
		ctx,
		store.Share{RunID: "r1", CreatedBy: "leaver", CreatedByID: leaver.UserID, ExpiresAt: soon},
		hers,
	)
	must(t, err)
	others := [32]byte{4}
	_, err = s.CreateShare(
		ctx,
		store.Share{RunID: "r1", CreatedBy: "leaver", CreatedByID: "another", ExpiresAt: soon},
		others,
	)
	must(t, err)
	must(t, s.DeleteUser(ctx, leaver.UserID, store.ExpectedUser{}))
	_, err = s.UseShare(ctx, hers)
	wantError(t, err, store.ErrNotFound)
	_, err = s.UseShare(ctx, others) // of another user of the name
	must(t, err)
	_, err = s.UseShare(ctx, secret)
	must(t, err)

	must(t, s.RevokeShare(ctx, made.ShareID))
	wantError(t, s.RevokeShare(ctx, made.ShareID), store.ErrNotFound)
	_, err = s.UseShare(ctx, secret)
	wantError(t, err, store.ErrNotFound)
}

func notes(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	empty, err := s.RunNote(ctx, "r1")
	must(t, err)
	if empty.RunID != "r1" || empty.Version != 0 || empty.Text != "" || !empty.UpdatedAt.IsZero() {
		t.Errorf("no note: %+v", empty)
	}
	_, err = s.RunNote(ctx, "nobody")
	wantError(t, err, store.ErrNotFound)
	_, err = s.SaveRunNote(ctx, store.RunNote{RunID: "nobody", Text: "x"})
	wantError(t, err, store.ErrNotFound)
	first, err := s.SaveRunNote(ctx, store.RunNote{RunID: "r1", Text: "index <b>made</b>\x00\n", UpdatedBy: "ada"})
	must(t, err)
	if first.Version != 1 || first.Text != "index <b>made</b>\n" || first.UpdatedBy != "ada" || first.UpdatedAt.IsZero() {
		t.Errorf("a note: %+v", first)
	}
	_, err = s.SaveRunNote(ctx, store.RunNote{RunID: "r1", Text: "other", UpdatedBy: "eve"})
	wantError(t, err, store.ErrConflict)
	if err == nil || !strings.Contains(err.Error(), "ada") {
		t.Errorf("who was faster is not said: %v", err)
	}
	second, err := s.SaveRunNote(ctx, store.RunNote{RunID: "r1", Text: "", Version: 1, UpdatedBy: "eve"})
	must(t, err)
	read, err := s.RunNote(ctx, "r1")
	must(t, err)
	if second.Version != 2 || read != second {
		t.Errorf("saved %+v, read %+v", second, read)
	}
	_, err = s.SaveRunNote(ctx, store.RunNote{RunID: "r1", Version: 2, Text: strings.Repeat("ü", store.MaxNote+1)})
	if !engine.HasCode(err, engine.CodeInvalid) {
		t.Errorf("a note that is too long: %v", err)
	}
}

func tags(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	must(t, s.TagRun(ctx, "r1", map[string]string{"ticket": "PERF-1", "größe": "<b>"}, nil))
	run, err := s.Run(ctx, "r1")
	must(t, err)
	if len(run.Scenario.Tags) != 2 || run.Scenario.Tags["größe"] != "<b>" || run.Scenario.Name != "r1" {
		t.Errorf("tags %v of %q", run.Scenario.Tags, run.Scenario.Name)
	}
	list, err := s.ListRuns(ctx, store.RunFilter{Tag: map[string]string{"ticket": "PERF-1"}})
	must(t, err)
	if len(list.Runs) != 1 || list.Runs[0].RunID != "r1" || list.Runs[0].Scenario.Tags["ticket"] != "PERF-1" {
		t.Errorf("by tag: %+v", list.Runs)
	}
	wantError(t, s.TagRun(ctx, "nobody", map[string]string{"a": "b"}, nil), store.ErrNotFound)
	wantError(t, s.TagRun(ctx, "r3", map[string]string{"a": "b"}, nil), store.ErrConflict)
	// Who edits tags that somebody else has set anew meanwhile is told.
	are := map[string]string{"größe": "<b>", "ticket": "PERF-1"}
	late := s.TagRun(ctx, "r1", map[string]string{"late": "x"}, map[string]string{"ticket": "PERF-1"})
	wantError(t, late, store.ErrConflict)
	wantError(t, s.TagRun(ctx, "r1", map[string]string{"late": "x"}, map[string]string{}), store.ErrConflict)
	var told *engine.Error
	if !errors.As(late, &told) || len(told.Fields) != 1 || told.Fields[0].Field != "was" {
		t.Errorf("tags that were changed: %v", late)
	}
	if run, err = s.Run(ctx, "r1"); err != nil || !maps.Equal(run.Scenario.Tags, are) {
		t.Errorf("tags %v, %v", run.Scenario.Tags, err)
	}
	must(t, s.TagRun(ctx, "r1", are, are))
	many := map[string]string{}
	for i := range store.MaxTags + 1 {
		many[fmt.Sprint(i)] = "x"
	}
	for name, bad := range map[string]map[string]string{"no name": {"": "x"}, "no value": {"x": ""},
		"a NUL":        {"x": "a\x00"},
		"a line break": {"x\n": "a"}, "too long": {"x": strings.Repeat("v", 200)}, "bytes": {"x": "\xff"}, "too many": many} {
		if err := s.TagRun(ctx, "r1", bad, nil); !engine.HasCode(err, engine.CodeInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, s.TagRun(ctx, "r1", map[string]string{}, nil))
	must(t, s.TagRun(ctx, "r1", map[string]string{}, map[string]string{})) // none is none, however it is kept
	if run, err = s.Run(ctx, "r1"); err != nil || len(run.Scenario.Tags) != 0 {
		t.Errorf("tags %v, %v", run.Scenario.Tags, err)
	}
}

// tagsAtTheEnd holds that nobody is told that others have changed tags which nobody has changed: a run that ends while
// its tags are set is live still, or over already.
func tagsAtTheEnd(t *testing.T, s *postgres.Store) {
	old := map[string]string{"old": "yes"}
	for i := range 40 {
		id := fmt.Sprintf("ends-%d", i)
		makeCompletedRun(t, s, id, "", engine.StatusRunning, engine.StatusStopping)
		ended := make(chan error, 1)
		go func() {
			none := engine.PhaseNone
			_, err := s.Transition(t.Context(), store.Transition{RunID: id, To: engine.StatusCompleted, Phase: &none})
			ended <- err
		}()
		for {
			err := s.TagRun(t.Context(), id, map[string]string{"new": "yes"}, old)
			if err == nil {
				break
			}
			if wantError(t, err, store.ErrConflict); t.Failed() {
				break
			}
			if told := engine.AsError(err); len(told.Fields) > 0 {
				t.Fatalf("run %d: %v", i, err)
			}
		}
		must(t, <-ended)
	}
}

func baselines(t *testing.T, s *postgres.Store, template string) {
	ctx := t.Context()
	_, err := s.Baseline(ctx, template)
	wantError(t, err, store.ErrNotFound)
	set, err := s.SetBaseline(ctx, store.Baseline{TemplateID: template, RunID: "r1", SetBy: "ada"})
	must(t, err)
	read, err := s.Baseline(ctx, template)
	must(t, err)
	if read != set || read.RunID != "r1" || read.SetBy != "ada" || read.SetAt.IsZero() {
		t.Errorf("set %+v, read %+v", set, read)
	}
	for run, want := range map[string]error{"r2": store.ErrConflict, "r3": store.ErrConflict,
		"nobody": store.ErrNotFound} {
		_, err := s.SetBaseline(ctx, store.Baseline{TemplateID: template, RunID: run})
		wantError(t, err, want)
	}
	_, err = s.SetBaseline(ctx, store.Baseline{TemplateID: "nobody", RunID: "r1"})
	wantError(t, err, store.ErrNotFound)
	makeCompletedRun(t, s, "r4", template, completed...)
	_, err = s.SetBaseline(ctx, store.Baseline{TemplateID: template, RunID: "r4"})
	must(t, err)
	must(t, s.DeleteRun(ctx, "r4"))
	_, err = s.Baseline(ctx, template)
	wantError(t, err, store.ErrNotFound)
	_, err = s.SetBaseline(ctx, store.Baseline{TemplateID: template, RunID: "r1"})
	must(t, err)
	must(t, s.DeleteBaseline(ctx, template))
	must(t, s.DeleteBaseline(ctx, template))
	_, err = s.Baseline(ctx, template)
	wantError(t, err, store.ErrNotFound)
}

// SortedRuns checks lists in the order of a figure, and those of runs whose thresholds were judged.
func SortedRuns(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	for i, qps := range []float64{20, 0, 30, 10} {
		id := fmt.Sprintf("r%d", i)
		makeCompletedRun(t, s, id, "", completed...)
		if qps == 0 {
			continue // it has no figures
		}
		passed := qps > 15
		must(t, s.SaveResult(ctx, engine.RunResult{ResultID: id, RunID: id, Passed: &passed,
			Figures: &engine.Figures{QPS: &qps, Operations: 1, DurationSeconds: 1,
				LatencyMs: &engine.LatencyMs{P50: 1, P95: 100 - qps, P99: qps}, Errors: engine.ErrorFigures{Rate: new(0.1)}},
			Thresholds: []engine.ThresholdResult{{Threshold: "qps > 15", Passed: passed}}}))
	}
	ids := func(f store.RunFilter) []string {
		t.Helper()
		list, err := s.ListRuns(ctx, f)
		must(t, err)
		var all []string
		for _, r := range list.Runs {
			all = append(all, r.RunID)
		}
		return all
	}
	yes, no := true, false
	for name, c := range map[string]struct {
		filter store.RunFilter
		want   []string
	}{
		"most throughput":   {store.RunFilter{Sort: store.SortThroughput}, []string{"r2", "r0", "r3", "r1"}},
		"least throughput":  {store.RunFilter{Sort: store.SortThroughput, Ascending: true}, []string{"r3", "r0", "r2", "r1"}},
		"P95":               {store.RunFilter{Sort: store.SortP95}, []string{"r3", "r0", "r2", "r1"}},
		"P99":               {store.RunFilter{Sort: store.SortP99, Ascending: true}, []string{"r3", "r0", "r2", "r1"}},
		"equal: newest":     {store.RunFilter{Sort: store.SortP50}, []string{"r3", "r2", "r0", "r1"}},
		"name":              {store.RunFilter{Sort: store.SortName, Ascending: true}, []string{"r0", "r1", "r2", "r3"}},
		"oldest":            {store.RunFilter{Ascending: true}, []string{"r0", "r1", "r2", "r3"}},
		"thresholds failed": {store.RunFilter{Passed: &no}, []string{"r3"}},
		"passed":            {store.RunFilter{Passed: &yes, Sort: store.SortThroughput}, []string{"r2", "r0"}},
	} {
		if got := ids(c.filter); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	// Of r1 nothing succeeded, and it has no thresholds to fail; nothing is recorded of r3, whose errors have no share.
	// An earlier version said 0/s of a run that was not measured.
	failed := false
	must(t, s.SaveResult(ctx, engine.RunResult{ResultID: "r1", RunID: "r1", Passed: &failed,
		Figures: &engine.Figures{QPS: new(0.0), Operations: 4, Errors: engine.ErrorFigures{Rate: new(1.0)}}}))
	must(t, s.SaveResult(ctx, engine.RunResult{ResultID: "r3", RunID: "r3", Passed: &failed,
		Figures: &engine.Figures{QPS: new(10.0), DurationSeconds: 1.5}}))
	shares, err := s.ListRuns(ctx, store.RunFilter{Sort: store.SortErrorRate})
	must(t, err)
	if r := shares.Runs; r[0].RunID != "r1" || r[0].FailedThresholds != 0 || r[3].RunID != "r3" || r[3].ErrorRate != nil ||
		r[3].FailedThresholds != 1 || r[3].MeasuredSeconds == nil || *r[3].MeasuredSeconds != 1.5 {
		t.Errorf("by the share of errors: %+v, %+v", r[0], r[3])
	}
	if got := ids(store.RunFilter{Sort: store.SortThroughput, Ascending: true}); shares.Runs[0].QPS != nil ||
		!slices.Equal(got, []string{"r3", "r0", "r2", "r1"}) {
		t.Errorf("without a measurement: %v/s; by throughput %v", shares.Runs[0].QPS, got)
	}
	if got := ids(store.RunFilter{Passed: &failed}); !slices.Equal(got, []string{"r3"}) {
		t.Errorf("thresholds failed: %v", got)
	}
	var seen []string
	f := store.RunFilter{Sort: store.SortThroughput, Page: store.Page{Limit: 2}}
	for range 4 {
		list, err := s.ListRuns(ctx, f)
		must(t, err)
		for _, r := range list.Runs {
			seen = append(seen, r.RunID)
		}
		if list.Total != 4 {
			t.Errorf("total %d", list.Total)
		}
		if f.Cursor = list.NextCursor; f.Cursor == "" {
			break
		}
	}
	if want := []string{"r2", "r0", "r3", "r1"}; !slices.Equal(seen, want) {
		t.Errorf("pages gave %v, want %v", seen, want)
	}
	// By name each store has the same order, whatever the language of its database.
	for i, name := range []string{"z", "Äb", "b-a", "äa", "B c", "_a", "ba", "A1", "b_b"} {
		must(t, s.CreateRun(ctx, engine.Run{RunID: fmt.Sprintf("named-%d", i), RunName: "name " + name,
			Scenario: engine.Scenario{Name: name}}))
	}
	list, err := s.ListRuns(ctx, store.RunFilter{Sort: store.SortName, Ascending: true, Search: "name "})
	must(t, err)
	var names []string
	for _, r := range list.Runs {
		names = append(names, strings.TrimPrefix(r.RunName, "name "))
	}
	if want := []string{"_a", "A1", "B c", "b-a", "b_b", "ba", "z", "Äb", "äa"}; !slices.Equal(names, want) {
		t.Errorf("by name: %q, want %q", names, want)
	}
	columns(t, s)
	for _, cursor := range []string{"garbage", "after-", "after--1", "after-99999999999"} {
		if _, err := s.ListRuns(ctx, store.RunFilter{Sort: store.SortP95, Page: store.Page{Cursor: cursor}}); !engine.HasCode(
			err, engine.CodeInvalid) {
			t.Errorf("the cursor %q: %v", cursor, err)
		}
	}
}

// columns checks lists in the order of a column of words, of the end and of the connections.
func columns(t *testing.T, s *postgres.Store) {
	t.Helper()
	ctx := t.Context()
	for i, c := range []struct {
		by          string
		connections int
		path        []engine.Status
		verdict     engine.Verdict
	}{{"bo", 9, completed, engine.VerdictValid}, {"Al", 100, nil, ""}, {"", 10, completed, engine.VerdictDegraded}} {
		id := fmt.Sprintf("column-%d", i)
		must(
			t,
			s.CreateRun(ctx, engine.Run{RunID: id, ResultID: id, RunName: id, CreatedBy: c.by, Scenario: engine.Scenario{
				Name: id, Workload: engine.Workload{ConcurrentConnections: c.connections}}}),
		)
		for _, to := range c.path {
			phase := engine.PhaseNone
			change := store.Transition{RunID: id, To: to, Phase: &phase, StartTime: time.Now()}
			if to.Terminal() {
				change.EndTime = time.Date(2026, 1, 3-i, 0, 0, 0, 0, time.UTC)
			}
			_, err := s.Transition(ctx, change)
			must(t, err)
		}
		if c.verdict != "" {
			must(
				t,
				s.SaveResult(ctx, engine.RunResult{ResultID: id, RunID: id, Validity: &engine.Validity{Verdict: c.verdict}}),
			)
		}
	}
	for by, want := range map[store.RunSort][]string{
		store.SortStartedBy: {"column-1", "column-0", "column-2"},
		store.SortConnected: {"column-0", "column-2", "column-1"},
		store.SortEnded:     {"column-2", "column-0", "column-1"},
		store.SortStatus:    {"column-2", "column-0", "column-1"},
		store.SortValidity:  {"column-2", "column-0", "column-1"},
	} {
		list, err := s.ListRuns(ctx, store.RunFilter{Sort: by, Ascending: true, Search: "column-"})
		must(t, err)
		var got []string
		for _, r := range list.Runs {
			got = append(got, r.RunID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("by %s: %v, want %v", by, got, want)
		}
	}
}
