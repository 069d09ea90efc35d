package postgres_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres"
)

// TestRunsOfAConnection are those that name it: not those of a longer name, nor of a connection that is
// spelled out.
func TestRunsOfAConnection(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	saved := map[string]string{}
	for _, name := range []string{"shop", "shop 2"} {
		c, err := s.SaveConnection(t.Context(), store.Connection{Name: name, Driver: "postgres",
			DSN: "postgres://bench@db/shop"})
		must(t, err)
		saved[name] = c.ConnectionID
	}
	for id, ref := range map[string]engine.ConnectionRef{"a": {Name: "shop"}, "b": {Name: "shop 2"},
		"c": {Driver: "postgres", DSN: "host=shop"}, "d": {Name: "shop"}} {
		if err := s.CreateRun(t.Context(), engine.Run{RunID: id,
			Scenario: engine.Scenario{Target: engine.Target{Connection: ref}}}); err != nil {
			t.Fatal(err)
		}
	}
	for connection, want := range map[string]int64{saved["shop"]: 2, saved["shop 2"]: 1, "shop": 0, "'": 0, "": 4} {
		list, err := s.ListRuns(t.Context(), store.RunFilter{ConnectionID: connection})
		if err != nil || list.Total != want || int64(len(list.Runs)) != want {
			t.Errorf("%q: %d runs, %v, want %d", connection, list.Total, err, want)
		}
	}
}

// TestTheNewestRunOfEachTemplateIsListed: one run for each template, also when others are newer; runs without a template
// are left out.
func TestTheNewestRunOfEachTemplateIsListed(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	ctx := t.Context()
	for i, name := range []string{"one", "two"} {
		template, err := s.CreateTemplate(ctx, store.Template{Name: name, Config: newRun("x").Scenario})
		must(t, err)
		for n := range 3 {
			run := newRun(fmt.Sprintf("%s-%d", name, n))
			run.TemplateID, run.CreatedAt = template.TemplateID, engine.At(noon.Add(time.Duration(10*i+n)*time.Minute))
			must(t, s.CreateRun(ctx, run))
		}
	}
	other := newRun("without")
	other.CreatedAt = engine.At(noon.Add(time.Hour))
	must(t, s.CreateRun(ctx, other))
	list, err := s.ListRuns(ctx, store.RunFilter{LatestOfTemplate: true})
	must(t, err)
	if got, want := ids(list), []string{"two-2", "one-2"}; !slices.Equal(got, want) || list.Total != 2 {
		t.Errorf("the newest runs are %v of %d, not %v", got, list.Total, want)
	}
}

func ids(list store.RunList) []string {
	out := []string{}
	for _, r := range list.Runs {
		out = append(out, r.RunID)
	}
	return out
}

func listRuns(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	template, err := s.CreateTemplate(ctx, store.Template{Name: "t1", Config: newRun("x").Scenario})
	must(t, err)
	for i, name := range []string{"alpha", "beta", "100%_alpha"} {
		run := newRun(fmt.Sprintf("r%d", i))
		run.RunName, run.CreatedAt = name, engine.At(noon.Add(time.Duration(i)*time.Minute))
		run.Scenario.Tags = map[string]string{"name": name, "all": "yes"}
		if i == 1 {
			run.TemplateID = template.TemplateID
		}
		must(t, s.CreateRun(ctx, run))
	}
	move(t, s, "r0", engine.StatusRunning, engine.StatusStopping, engine.StatusCompleted)
	rate := 0.25
	passed := true
	must(t, s.SaveResult(ctx, engine.RunResult{ResultID: "r0", RunID: "r0", Passed: &passed,
		Figures: &engine.Figures{Operations: 4, DurationSeconds: 1, QPS: new(1000.0),
			LatencyMs: &engine.LatencyMs{P50: 1, P95: 2, P99: 3},
			Errors:    engine.ErrorFigures{Rate: &rate}},
		Validity: &engine.Validity{Verdict: engine.VerdictDegraded}}))
	for name, c := range map[string]struct {
		filter store.RunFilter
		want   []string
	}{
		"all, newest first": {store.RunFilter{}, []string{"r2", "r1", "r0"}},
		"status": {store.RunFilter{Statuses: []engine.Status{engine.StatusCompleted, engine.StatusFailed}},
			[]string{"r0"}},
		"template":          {store.RunFilter{TemplateID: template.TemplateID}, []string{"r1"}},
		"search":            {store.RunFilter{Search: "ALPHA"}, []string{"r2", "r0"}},
		"search is literal": {store.RunFilter{Search: "%_"}, []string{"r2"}},
		"since":             {store.RunFilter{Since: noon.Add(time.Minute)}, []string{"r2", "r1"}},
		"until":             {store.RunFilter{Until: noon.Add(time.Minute)}, []string{"r0"}},
		"tag":               {store.RunFilter{Tag: map[string]string{"name": "beta", "all": "yes"}}, []string{"r1"}},
		"no such tag":       {store.RunFilter{Tag: map[string]string{"name": "beta", "all": "no"}}, []string{}},
	} {
		list, err := s.ListRuns(ctx, c.filter)
		must(t, err)
		if got := ids(list); !slices.Equal(got, c.want) || list.Total != int64(len(c.want)) {
			t.Errorf("%s: got %v of %d, want %v", name, got, list.Total, c.want)
		}
	}
	list, err := s.ListRuns(ctx, store.RunFilter{Statuses: []engine.Status{engine.StatusCompleted}})
	must(t, err)
	row := list.Runs[0]
	if row.QPS == nil || *row.QPS != 1000 || row.P95Ms == nil || *row.P95Ms != 2 || row.ErrorRate == nil ||
		*row.ErrorRate != rate ||
		row.Simulated || row.Verdict == nil || *row.Verdict != engine.VerdictDegraded || row.Passed == nil || !*row.Passed {
		t.Errorf("figures of the row: %+v", row)
	}
}

func listRunsPages(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	// Runs of the same instant must not be lost between pages.
	for i := range 7 {
		run := newRun(fmt.Sprintf("r%d", i))
		run.CreatedAt = engine.At(noon.Add(time.Duration(i/3) * time.Microsecond))
		must(t, s.CreateRun(ctx, run))
	}
	var seen []string
	filter := store.RunFilter{Page: store.Page{Limit: 2}}
	for pages := 0; ; pages++ {
		list, err := s.ListRuns(ctx, filter)
		must(t, err)
		if list.Total != 7 {
			t.Errorf("total %d", list.Total)
		}
		seen = append(seen, ids(list)...)
		if pages == 0 {
			create(t, s, "late") // newer than the first page: it must not shift the next
			filter.Until = noon.Add(time.Hour)
		}
		if filter.Cursor = list.NextCursor; filter.Cursor == "" {
			break
		}
	}
	if want := []string{"r6", "r5", "r4", "r3", "r2", "r1", "r0"}; !slices.Equal(seen, want) {
		t.Errorf("pages gave %v, want %v", seen, want)
	}
	if _, err := s.ListRuns(ctx, store.RunFilter{Page: store.Page{Cursor: "garbage"}}); !engine.HasCode(err,
		engine.CodeInvalid) {
		t.Errorf("a wrong cursor: %v", err)
	}
}

// listsAreShort: a list has runs without what of their scenarios is large.
func listsAreShort(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	must(
		t,
		s.CreateRun(ctx, engine.Run{RunID: "r1", Scenario: engine.Scenario{Name: "a", Tags: map[string]string{"k": "v"},
			Workload: engine.Workload{Plugin: "replay", Params: []byte(`{"a": 1}`), Feed: &engine.Feed{CSV: "large"},
				DurationSeconds: 7}}}),
	)
	list, err := s.ListRuns(ctx, store.RunFilter{Tag: map[string]string{"k": "v"}})
	must(t, err)
	if len(list.Runs) != 1 {
		t.Fatalf("%d runs", len(list.Runs))
	}
	if sc := list.Runs[0].Scenario; sc.Workload.Feed != nil || sc.Workload.Params != nil ||
		sc.Workload.DurationSeconds != 7 || sc.Tags["k"] != "v" {
		t.Errorf("the list has the scenario %+v", sc)
	}
}
