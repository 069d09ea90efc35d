package storetest

import (
	"fmt"
	"math"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// series reads a run whole, in part, and in fewer points than it has seconds.
func series(t *testing.T, s Store) {
	ctx := t.Context()
	Create(t, s, "r1")
	_, err := s.Transition(ctx, store.Transition{RunID: "r1", To: engine.StatusRunning, StartTime: Noon})
	Must(t, err)
	const length = 100
	for n := 1; n <= length; n++ {
		k := Second(n)
		if k.Point.QPS = float64(n); n <= 25 {
			k.Point.Phase = engine.PhaseWarmup
		}
		high := 2.5
		if n == 42 {
			high = 99
		}
		k.Point.P95LatencyMs = &high
		Must(t, s.SaveTick(ctx, k))
	}
	whole, step, err := s.Series(ctx, "r1", store.Window{MaxPoints: length})
	Must(t, err)
	points, _, err := s.Series(ctx, "r1", store.Window{})
	Must(t, err)
	Same(t, "points", whole, points)
	part, _, err := s.Series(ctx, "r1", store.Window{From: 10, Until: 12})
	Must(t, err)
	Same(t, "points of a window", part, points[9:12])
	if step != 1 || len(whole) != length {
		t.Fatalf("%d points of %v s", len(whole), step)
	}
	Must(t, s.SaveTick(ctx, Second(50))) // again: it is not rolled up twice
	for _, c := range []struct {
		most   int
		step   float64
		points int
	}{{40, 3, 35}, {10, 10, 12}, {4, 30, 5},
		{1, 100, 3}} { // one point has the end of the warm-up, and one the beginning of the measurement
		few, step, err := s.Series(ctx, "r1", store.Window{MaxPoints: c.most})
		Must(t, err)
		if step != c.step || len(few) != c.points {
			t.Fatalf("%d points of %v s, want %+v", len(few), step, c)
		}
		sum, worst, before := 0.0, 0, 0.0
		for i, p := range few {
			// Each is the mean of the seconds since the one before.
			sum += p.QPS * (p.ElapsedSeconds - before)
			if before = p.ElapsedSeconds; *p.P95LatencyMs == 99 {
				worst++
			}
			if p.Histogram != nil || p.QPSByKind == nil || *p.P50LatencyMs != 1.5 || i > 0 && p.Phase == engine.PhaseWarmup &&
				few[i-1].Phase != engine.PhaseWarmup {
				t.Errorf("point %d: %+v", i, p)
			}
		}
		if math.Abs(sum-length*(length+1)/2) > 1e-6 || worst != 1 || few[len(few)-1].TotalQueries != 100*length ||
			!few[len(few)-1].Timestamp.Equal(whole[length-1].Timestamp.Time) {
			t.Errorf("the points sum up to %v operations, %d show the peak, the last counts %d", sum, worst,
				few[len(few)-1].TotalQueries)
		}
	}
	if none, step, err := s.Series(ctx, "none", store.Window{MaxPoints: 10}); err != nil || len(none) != 0 || step != 1 {
		t.Errorf("a run that is not there: %v, %v, %v", none, step, err)
	}
}

// pages reads events and artifacts in parts, and results in short.
func pages(t *testing.T, s Store) {
	ctx := t.Context()
	run := engine.Run{RunID: "r1", RunName: "a", Scenario: engine.Scenario{Name: "a", Tags: map[string]string{"k": "v"},
		Workload: engine.Workload{Plugin: "replay", Params: []byte(`{"a": 1}`), Feed: &engine.Feed{CSV: "large"},
			DurationSeconds: 7}}}
	Must(t, s.CreateRun(ctx, run))
	var events []engine.Event
	for i := range 5 {
		events = append(events, engine.Event{EventID: fmt.Sprint("e", i), Type: engine.EventSetPhase,
			Data: engine.EventData{Scope: engine.ScopeRun, Phase: engine.PhaseWarmup}})
	}
	events[3].Type = engine.EventStart
	_, err := s.Transition(ctx, store.Transition{RunID: "r1", To: engine.StatusRunning, StartTime: Noon, Events: events})
	Must(t, err)
	stored, err := s.Events(ctx, "r1", 0)
	Must(t, err)
	page, total, err := s.EventPage(ctx, "r1", stored[1].SequenceID, 2)
	Must(t, err)
	Same(t, "events", page, stored[2:4])
	if total != int64(len(stored)) {
		t.Errorf("%d events of %d", total, len(stored))
	}
	only, err := s.Events(ctx, "r1", stored[1].SequenceID, engine.EventLoadChanged, engine.EventStart)
	Must(t, err)
	Same(t, "events of two types", only, stored[3:4])
	for i := range 5 {
		Must(t, s.SaveArtifact(ctx, 0, engine.Artifact{RunID: "r1", ResultID: "r1", Kind: "executions",
			Name: fmt.Sprint("part-", i), SHA256: "a", RowCount: 1}))
	}
	parts, total, err := s.ArtifactPage(ctx, "r1", "part-2", 10)
	Must(t, err)
	if len(parts) != 2 || parts[0].Name != "part-3" || total != 5 {
		t.Errorf("%d parts of %d", len(parts), total)
	}
	figures := &engine.Figures{Operations: 7, LatencyMs: &engine.LatencyMs{P50: 1}, Slowest: []engine.SlowExecution{{}},
		Histogram: []engine.HistogramBucket{{}},
		ByKind:    map[engine.Kind]*engine.KindFigures{engine.KindInsert: {Count: 7}}}
	Must(t, s.SaveResult(ctx, engine.RunResult{ResultID: "r1", RunID: "r1", Figures: figures}))
	Must(t, s.SaveResult(ctx, engine.RunResult{ResultID: "r1-w", RunID: "r1", WorkerID: "worker-0",
		WorkerGroupID: new(int),
		Figures:       figures}))
	short, err := s.Overviews(ctx, "r1")
	Must(t, err)
	if len(short) != 2 || len(short[0].Figures.Slowest) != 1 || len(short[0].Figures.ByKind) != 1 {
		t.Fatalf("results in short: %+v", short)
	}
	if f := short[1].Figures; f.Operations != 7 || f.LatencyMs.P50 != 1 || f.Slowest != nil || f.Histogram != nil ||
		f.ByKind != nil {
		t.Errorf("a run worker in short: %+v", f)
	}
	one, err := s.Run(ctx, "r1")
	Must(t, err)
	if one.Scenario.Workload.Feed == nil || one.Scenario.Workload.Params == nil {
		t.Errorf("the run has the scenario %+v", one.Scenario)
	}
}
