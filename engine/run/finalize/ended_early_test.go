package finalize

import (
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/live"
)

func TestAWorkloadThatEndsEarlyIsNoted(t *testing.T) {
	begin := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	run := func(reason engine.StopReason, mode engine.LoadMode, took time.Duration) engine.Run {
		r := engine.Run{StopReason: reason, WarmupEndTime: engine.At(begin), MeasurementEndTime: engine.At(begin.Add(took))}
		r.Scenario.Workload.LoadMode, r.Scenario.Workload.DurationSeconds = mode, 10
		return r
	}
	warmup := run(engine.StopDurationElapsed, engine.LoadQPS, 0)
	warmup.WarmupEndTime, warmup.MeasurementEndTime = engine.Time{}, engine.Time{}
	for name, c := range map[string]struct {
		run  engine.Run
		want string
	}{
		"early":          {run(engine.StopDurationElapsed, engine.LoadConcurrency, 3*time.Second), "after 3 of 10 s"},
		"in the warm-up": {warmup, "in the warm-up"},
		"on time":        {run(engine.StopDurationElapsed, engine.LoadConcurrency, 10*time.Second), ""},
		"rounded":        {run(engine.StopDurationElapsed, engine.LoadConcurrency, 10*time.Second-time.Millisecond), ""},
		"stopped":        {run(engine.StopUserRequested, engine.LoadConcurrency, 3*time.Second), ""},
		"a search":       {run(engine.StopDurationElapsed, engine.LoadFindMax, 3*time.Second), ""},
	} {
		if got := EndedEarly(c.run).String(); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// allEnriched skips no run.
type allEnriched struct{}

func (allEnriched) Skipped(*engine.Plan) *engine.Enrichment { return nil }

// TestAThresholdOfAPartSaysSo: of a run that did not complete what holds says of how much of the measurement.
func TestAThresholdOfAPartSaysSo(t *testing.T) {
	s := &Service{opts: Options{Enrichments: allEnriched{}}}
	const closed = engine.LoadConcurrency
	lost := 9.5
	for name, c := range map[string]struct {
		status  engine.Status
		mode    engine.LoadMode
		took    float64
		covered *float64
		limit   string
		want    string
	}{
		"completed": {engine.StatusCompleted, closed, 60, nil, "p95_ms < 20", ""},
		"failed":    {engine.StatusFailed, closed, 12, nil, "p95_ms < 20", "met so far, in 12 of 60 s"},
		"cancelled": {engine.StatusCancelled, engine.LoadQPS, 12.34, nil, "p95_ms < 20",
			"met so far, in 12.3 of 60 s"},
		"a part of it is lost": {engine.StatusFailed, closed, 12, &lost, "p95_ms < 20", "met so far, in 9.5 of 60 s"},
		"a search":             {engine.StatusFailed, engine.LoadFindMax, 12, nil, "p95_ms < 20", "met so far, in 12 s"},
		"failed as it drained": {engine.StatusFailed, closed, 60, nil, "p95_ms < 20", "met in all 60 s of a run that"},
		"not met":              {engine.StatusFailed, closed, 12, nil, "p95_ms < 5", "p95_ms is 10, in 12 of 60 s"},
		"not met, and whole":   {engine.StatusCompleted, closed, 60, nil, "p95_ms < 5", "p95_ms is 10"},
	} {
		e := Evidence{Run: engine.Run{Status: c.status}, Validity: live.NewValidity()}
		e.Run.Scenario.Thresholds = []string{c.limit}
		e.Run.Scenario.Workload.LoadMode, e.Run.Scenario.Workload.DurationSeconds = c.mode, 60
		f := &engine.Figures{
			Operations:      10,
			DurationSeconds: c.took,
			RecordPartial:   c.covered != nil,
			CoveredSeconds:  c.covered,
			LatencyMs:       &engine.LatencyMs{P95: 10},
		}
		got := s.parentResult(e, f).Thresholds[0]
		if !strings.HasPrefix(got.Reason, c.want) || c.want == "" && got.Reason != "" ||
			strings.HasPrefix(name, "not met") && got.Reason != c.want {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
	}
}
