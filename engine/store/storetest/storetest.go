// Package storetest is the conformance suite of Store: what every
// implementation must do, whatever it keeps its rows in.
package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// Run tests a store. open returns an empty store and closes it when its test ends.
func Run(t *testing.T, open func(t *testing.T) Store) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, s Store)
	}{
		{"Ping", func(t *testing.T, s Store) { must(t, s.Ping(t.Context())) }},
		{"RunRoundTrip", runRoundTrip},
		{"RunTwice", runTwice},
		{"MissingRun", missingRun},
		{"Life", lifecycle},
		{"WorkerTargetsMerge", targetsMerge},
		{"TransitionConflict", transitionConflict},
		{"TransitionForbidden", transitionForbidden},
		{"TransitionRace", transitionRace},
		{"TransitionProperty", transitionProperty},
		{"Fencing", fencing},
		{"Leases", leases},
		{"EventsUnderConcurrency", eventsUnderConcurrency},
		{"EventsAreChecked", eventsAreChecked},
		{"Tick", tick},
		{"TickIsIdempotent", tickIsIdempotent},
		{"TickOddText", tickOddText},
		{"Logs", logs}, {"RunArtifacts", RunArtifacts}, {"SortedRuns", SortedRuns},
		{"Series", series}, {"Pages", pages}, {"Results", results},
		{"Artifacts", artifacts}, {"Enrichment", enrichment}, {"Warehouse", warehouse}, {"FindMax", findMax},
		{"Matrices", matrices}, {"MatrixLeases", matrixLeases},
		{"LiveRuns", liveRuns}, {"DeleteRun", deleteRun},
		{"ListRuns", listRuns}, {"ListRunsPages", listRunsPages},
		{"Templates", templates},
		{"TemplateSecrets", templateSecrets},
		{"Rules", Rules},
		{"Connections", connections},
		{"BuiltinConnections", builtins},
		{"ConnectionInUse", connectionInUse},
		{"Plugins", plugins},
		{"UploadedPlugins", uploadedPlugins}, {"PluginLimits", pluginLimits},
		{"Admin", admin}, {"Tokens", tokens}, {"Users", Users}, {"WaysIn", SignIn},
		{"LastAdmin", LastAdmin}, {"Roles", Roles}, {"External", External},
		{"Access", Access}, {"Grants", Grants},
		{"Audit", Audit}, {"AuditKept", AuditRetention}, {"Unbegun", UnstartedRun},
		{"Marks", Marks}, {"RunCommands", runCommands}, {"NodeDesiredStates", nodeDesiredStates}, {"NodeEvents", nodeEvents},
		{"DynamicTables", dynamicTables}, {"RefreshClaims", refreshClaims}, {"RefreshExpiry", refreshExpiry},
		{"RefreshResults", refreshResults}, {"RefreshFailures", refreshFailures}, {"RefreshRuns", refreshRuns},
		{"RefreshRace", refreshRace}, {"RefreshParts", refreshParts}, {"AwaitRefreshes", awaitRefreshes},
		{"SavedQueries", Queries}, {"Views", Views}, {"ViewsBound", ViewsBound},
		{"ViewsOfTheGone", ViewsOfDeletedUser},
		{"Settings", Settings},
		{"Retention", Retention}, {"QueueFit", Feasibility},
		{"Placement", placements}, {"PlacementRace", placementRace}, {"Queue", queueing}, {"RoomOfARun", liveReservations},
		{"Copies", copies}, {"RefreshWorkers", Workers}, {"RefreshLoad", Load},
		{"Cancelled", cancelled},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got error %v, want %v", err, want)
	}
}

// wantTaken checks an error about a name that is there already: the page shows it at its field.
func wantTaken(t testing.TB, err error) {
	t.Helper()
	wantError(t, err, store.ErrConflict)
	var e *engine.Error
	if !errors.As(err, &e) || e.Code != engine.CodeConflict || len(e.Fields) != 1 || e.Fields[0].Field != "name" {
		t.Errorf("a name that is taken: %v", err)
	}
}

// same compares what JSON shows of two values: times lose what is below a
// millisecond, and nil and empty maps are told apart.
func same(t testing.TB, what string, got, want any) {
	t.Helper()
	g, err := json.Marshal(got)
	must(t, err)
	w, err := json.Marshal(want)
	must(t, err)
	var gv, wv any
	must(t, json.Unmarshal(g, &gv))
	must(t, json.Unmarshal(w, &wv))
	if !reflect.DeepEqual(gv, wv) {
		t.Errorf("%s:\n got %s\nwant %s", what, g, w)
	}
}

var noon = time.Date(2026, 1, 23, 12, 0, 0, 0, time.UTC)

func newRun(id string) engine.Run {
	qps := 250.0
	return engine.Run{
		RunID: id, ResultID: id, RunName: "test of " + id, WorkersExpected: 2, CreatedBy: "ada",
		Scenario: engine.Scenario{
			Name: "test of " + id,
			Target: engine.Target{Connection: engine.ConnectionRef{Name: "playground"}, Adapter: "postgres", TableName: "orders",
				Prepare: &engine.Prepare{Rows: 1000, IfExists: engine.IfExistsUse}},
			Workload: engine.Workload{Plugin: "mix", Params: json.RawMessage(`{"weights": {"POINT_LOOKUP": 9007199254740993}}`),
				LoadMode: engine.LoadQPS, TargetQPS: &qps, Arrival: engine.ArrivalPoisson, DurationSeconds: 20, Seed: 42},
			Scaling:    engine.Scaling{Mode: engine.ScalingFixed, WorkerCount: 2, PerWorkerCapacity: 8},
			Thresholds: []string{"p95_ms < 50"},
			Tags:       map[string]string{"ticket": "PERF-1"},
		},
		WorkerTargets: map[string]engine.WorkerTarget{"worker-0": {TargetConnections: 8},
			"worker-1": {TargetConnections: 7, TargetQPS: &qps}},
	}
}

func create(t testing.TB, s Store, id string) engine.Run {
	t.Helper()
	run := newRun(id)
	must(t, s.CreateRun(context.Background(), run))
	return run
}

// move makes unguarded transitions along a path.
func move(t testing.TB, s Store, id string, path ...engine.Status) {
	t.Helper()
	for _, to := range path {
		_, err := s.Transition(context.Background(), store.Transition{RunID: id, To: to})
		must(t, err)
	}
}

func runRoundTrip(t *testing.T, s Store) {
	ctx := t.Context()
	want := create(t, s, "r1")
	got, err := s.Run(ctx, "r1")
	must(t, err)
	if got.CreatedAt.IsZero() || got.UpdatedAt.IsZero() {
		t.Error("the store set no times")
	}
	want.Status, want.Phase, want.CreatedAt, want.UpdatedAt = engine.StatusPrepared, engine.PhasePreparing, got.CreatedAt,
		got.UpdatedAt
	same(t, "run", got, want)
	if params := string(got.Scenario.Workload.Params); !slices.Contains(
		[]string{`{"weights": {"POINT_LOOKUP": 9007199254740993}}`, `{"weights":{"POINT_LOOKUP":9007199254740993}}`},
		params) {
		t.Errorf("parameters came back as %s", params)
	}
	rows, err := s.Results(ctx, "r1")
	must(t, err)
	if len(rows) != 1 || rows[0].ResultID != "r1" || rows[0].Status != engine.StatusPrepared || rows[0].WorkerID != "" {
		t.Errorf("parent result %+v", rows)
	}
}

func runTwice(t *testing.T, s Store) {
	run := create(t, s, "r1")
	wantError(t, s.CreateRun(t.Context(), run), store.ErrConflict)
}

func missingRun(t *testing.T, s Store) {
	ctx := t.Context()
	_, err := s.Run(ctx, "none")
	wantError(t, err, store.ErrNotFound)
	_, err = s.TakeOver(ctx, "none")
	wantError(t, err, store.ErrNotFound)
	_, err = s.Transition(ctx, store.Transition{RunID: "none", To: engine.StatusRunning})
	wantError(t, err, store.ErrNotFound)
	wantError(t, s.SaveTick(ctx, store.Tick{RunID: "none"}), store.ErrNotFound)
	wantError(t, s.DeleteRun(ctx, "none"), store.ErrNotFound)
	wantError(t, s.SaveResult(ctx, engine.RunResult{ResultID: "none", RunID: "none"}), store.ErrNotFound)
	wantError(t, s.SaveArtifact(ctx, 0,
		engine.Artifact{RunID: "none", ResultID: "none", Kind: "executions", Name: "a", SHA256: "aa"}), store.ErrNotFound)
	for name, list := range map[string]func() (int, error){
		"events":  func() (int, error) { l, err := s.Events(ctx, "none", 0); return len(l), err },
		"points":  func() (int, error) { l, err := s.Points(ctx, "none"); return len(l), err },
		"results": func() (int, error) { l, err := s.Results(ctx, "none"); return len(l), err },
		"logs":    func() (int, error) { l, err := s.Logs(ctx, "none", 0, "", 0); return len(l), err },
	} {
		if n, err := list(); n != 0 || err != nil {
			t.Errorf("%s of no run: %d, %v", name, n, err)
		}
	}
}

// cancelled proves that a call obeys its context.
func cancelled(t *testing.T, s Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.ListTemplates(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
}

// copies: what a caller changes of what it gave or got changes nothing that is stored.
func copies(t *testing.T, s Store) {
	ctx := t.Context()
	rate := 1.0
	given := newRun("r1")
	given.WorkerTargets["worker-0"] = engine.WorkerTarget{TargetQPS: &rate}
	must(t, s.CreateRun(ctx, given))
	figures := &engine.Figures{Operations: 7, ByKind: map[engine.Kind]*engine.KindFigures{engine.KindInsert: {Count: 7}}}
	must(t, s.SaveResult(ctx, engine.RunResult{ResultID: "r1", RunID: "r1", Figures: figures}))
	tick := second(1)
	must(t, s.SaveTick(ctx, tick))
	before, err := s.Run(ctx, "r1")
	must(t, err)
	text, err := json.Marshal(before)
	must(t, err)
	want := json.RawMessage(text)
	given.Scenario.Tags["ticket"], rate, figures.Operations, tick.Point.QPSByKind[engine.KindPointLookup] = "other", 2, 8,
		-1
	got, err := s.Run(ctx, "r1")
	must(t, err)
	same(t, "run after a change of what was given", got, want)
	got.Scenario.Tags["ticket"], *got.WorkerTargets["worker-0"].TargetQPS = "other", 3
	got.WorkerTargets["worker-9"] = engine.WorkerTarget{}
	got, err = s.Run(ctx, "r1")
	must(t, err)
	same(t, "run after a change of what was got", got, want)
	for range 2 {
		rows, err := s.Results(ctx, "r1")
		must(t, err)
		points, err := s.Points(ctx, "r1")
		must(t, err)
		if f := rows[0].Figures; f.Operations != 7 || f.ByKind[engine.KindInsert].Count != 7 ||
			points[0].QPSByKind[engine.KindPointLookup] != 60 {
			t.Fatalf("changed: %+v, %+v", f, points[0])
		}
		rows[0].Figures.Operations, rows[0].Figures.ByKind[engine.KindInsert].Count,
			points[0].QPSByKind[engine.KindPointLookup] = 9, 9, 9
	}
}

func ids(list store.RunList) []string {
	out := []string{}
	for _, r := range list.Runs {
		out = append(out, r.RunID)
	}
	return out
}

func listRuns(t *testing.T, s Store) {
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
		Figures: &engine.Figures{Operations: 4, QPS: 1000, LatencyMs: &engine.LatencyMs{P50: 1, P95: 2, P99: 3},
			Errors: engine.ErrorFigures{Rate: rate}},
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

func listRunsPages(t *testing.T, s Store) {
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
