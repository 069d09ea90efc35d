// Package storetest is the conformance suite of Store: what every
// implementation must do, whatever it keeps its rows in.
package storetest

import (
	"context"
	"encoding/json"
	"errors"
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
		{"Ping", func(t *testing.T, s Store) { Must(t, s.Ping(t.Context())) }},
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
		{"Logs", logs},
		{"Series", series}, {"Pages", pages}, {"Results", results},
		{"Artifacts", artifacts}, {"Enrichment", enrichment}, {"FindMax", findMax},
		{"LiveRuns", liveRuns}, {"DeleteRun", deleteRun},
		{"Unbegun", UnstartedRun},
		{"RunCommands", runCommands}, {"NodeDesiredStates", nodeDesiredStates}, {"NodeEvents", nodeEvents},
		{"DynamicTables", dynamicTables}, {"RefreshClaims", refreshClaims}, {"RefreshExpiry", refreshExpiry},
		{"RefreshResults", refreshResults}, {"RefreshFailures", refreshFailures}, {"RefreshOwners", refreshOwners}, {"RefreshRuns", refreshRuns},
		{"RefreshRace", refreshRace}, {"RefreshParts", refreshParts}, {"AwaitRefreshes", awaitRefreshes},
		{"QueueFit", Feasibility},
		{"Placement", placements}, {"PlacementRace", placementRace}, {"Queue", queueing}, {"RoomOfARun", liveReservations},
		{"Copies", copies}, {"RefreshWorkers", Workers}, {"RefreshLoad", Load},
		{"Cancelled", cancelled},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

// Must ends the test with an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// WantError checks that an error is another one, or wraps it.
func WantError(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got error %v, want %v", err, want)
	}
}

// WantTaken checks an error about a name that is there already: the page shows it at its field.
func WantTaken(t testing.TB, err error) {
	t.Helper()
	WantError(t, err, store.ErrConflict)
	var e *engine.Error
	if !errors.As(err, &e) || e.Code != engine.CodeConflict || len(e.Fields) != 1 || e.Fields[0].Field != "name" {
		t.Errorf("a name that is taken: %v", err)
	}
}

// Same compares what JSON shows of two values: times lose what is below a
// millisecond, and nil and empty maps are told apart.
func Same(t testing.TB, what string, got, want any) {
	t.Helper()
	g, err := json.Marshal(got)
	Must(t, err)
	w, err := json.Marshal(want)
	Must(t, err)
	var gv, wv any
	Must(t, json.Unmarshal(g, &gv))
	Must(t, json.Unmarshal(w, &wv))
	if !reflect.DeepEqual(gv, wv) {
		t.Errorf("%s:\n got %s\nwant %s", what, g, w)
	}
}

// Noon is a moment of the past.
var Noon = time.Date(2026, 1, 23, 12, 0, 0, 0, time.UTC)

// NewRun is a run with something of everything.
func NewRun(id string) engine.Run {
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

// Create stores a new run.
func Create(t testing.TB, s Store, id string) engine.Run {
	t.Helper()
	run := NewRun(id)
	Must(t, s.CreateRun(context.Background(), run))
	return run
}

// Move makes unguarded transitions along a path.
func Move(t testing.TB, s Store, id string, path ...engine.Status) {
	t.Helper()
	for _, to := range path {
		_, err := s.Transition(context.Background(), store.Transition{RunID: id, To: to})
		Must(t, err)
	}
}

func runRoundTrip(t *testing.T, s Store) {
	ctx := t.Context()
	want := Create(t, s, "r1")
	got, err := s.Run(ctx, "r1")
	Must(t, err)
	if got.CreatedAt.IsZero() || got.UpdatedAt.IsZero() {
		t.Error("the store set no times")
	}
	want.Status, want.Phase, want.CreatedAt, want.UpdatedAt = engine.StatusPrepared, engine.PhasePreparing, got.CreatedAt,
		got.UpdatedAt
	Same(t, "run", got, want)
	if params := string(got.Scenario.Workload.Params); !slices.Contains(
		[]string{`{"weights": {"POINT_LOOKUP": 9007199254740993}}`, `{"weights":{"POINT_LOOKUP":9007199254740993}}`},
		params) {
		t.Errorf("parameters came back as %s", params)
	}
	rows, err := s.Results(ctx, "r1")
	Must(t, err)
	if len(rows) != 1 || rows[0].ResultID != "r1" || rows[0].Status != engine.StatusPrepared || rows[0].WorkerID != "" {
		t.Errorf("parent result %+v", rows)
	}
}

func runTwice(t *testing.T, s Store) {
	run := Create(t, s, "r1")
	WantError(t, s.CreateRun(t.Context(), run), store.ErrConflict)
}

func missingRun(t *testing.T, s Store) {
	ctx := t.Context()
	_, err := s.Run(ctx, "none")
	WantError(t, err, store.ErrNotFound)
	_, err = s.TakeOver(ctx, "none")
	WantError(t, err, store.ErrNotFound)
	_, err = s.Transition(ctx, store.Transition{RunID: "none", To: engine.StatusRunning})
	WantError(t, err, store.ErrNotFound)
	WantError(t, s.SaveTick(ctx, store.Tick{RunID: "none"}), store.ErrNotFound)
	WantError(t, s.DeleteRun(ctx, "none"), store.ErrNotFound)
	WantError(t, s.SaveResult(ctx, engine.RunResult{ResultID: "none", RunID: "none"}), store.ErrNotFound)
	WantError(t, s.SaveArtifact(ctx, 0,
		engine.Artifact{RunID: "none", ResultID: "none", Kind: "executions", Name: "a", SHA256: "aa"}), store.ErrNotFound)
	for name, list := range map[string]func() (int, error){
		"events":  func() (int, error) { l, err := s.Events(ctx, "none", 0); return len(l), err },
		"points":  func() (int, error) { l, _, err := s.Series(ctx, "none", store.Window{}); return len(l), err },
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
	if _, err := s.LiveRuns(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
}

// copies: what a caller changes of what it gave or got changes nothing that is stored.
func copies(t *testing.T, s Store) {
	ctx := t.Context()
	rate := 1.0
	given := NewRun("r1")
	given.WorkerTargets["worker-0"] = engine.WorkerTarget{TargetQPS: &rate}
	Must(t, s.CreateRun(ctx, given))
	figures := &engine.Figures{Operations: 7, ByKind: map[engine.Kind]*engine.KindFigures{engine.KindInsert: {Count: 7}}}
	Must(t, s.SaveResult(ctx, engine.RunResult{ResultID: "r1", RunID: "r1", Figures: figures}))
	tick := Second(1)
	Must(t, s.SaveTick(ctx, tick))
	before, err := s.Run(ctx, "r1")
	Must(t, err)
	text, err := json.Marshal(before)
	Must(t, err)
	want := json.RawMessage(text)
	given.Scenario.Tags["ticket"], rate, figures.Operations, tick.Point.QPSByKind[engine.KindPointLookup] = "other", 2, 8,
		-1
	got, err := s.Run(ctx, "r1")
	Must(t, err)
	Same(t, "run after a change of what was given", got, want)
	got.Scenario.Tags["ticket"], *got.WorkerTargets["worker-0"].TargetQPS = "other", 3
	got.WorkerTargets["worker-9"] = engine.WorkerTarget{}
	got, err = s.Run(ctx, "r1")
	Must(t, err)
	Same(t, "run after a change of what was got", got, want)
	for range 2 {
		rows, err := s.Results(ctx, "r1")
		Must(t, err)
		points, _, err := s.Series(ctx, "r1", store.Window{})
		Must(t, err)
		if f := rows[0].Figures; f.Operations != 7 || f.ByKind[engine.KindInsert].Count != 7 ||
			points[0].QPSByKind[engine.KindPointLookup] != 60 {
			t.Fatalf("changed: %+v, %+v", f, points[0])
		}
		rows[0].Figures.Operations, rows[0].Figures.ByKind[engine.KindInsert].Count,
			points[0].QPSByKind[engine.KindPointLookup] = 9, 9, 9
	}
}
