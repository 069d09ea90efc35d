package query

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/findings"
	"github.com/loadstone-db/loadstone/engine/results/record"
)

// ended is the store of a run that ended, with its figures.
type ended struct {
	Store
	run     engine.Run
	figures engine.Figures
}

func (s ended) Run(context.Context, string) (engine.Run, error) { return s.run, nil }

func (s ended) Overviews(context.Context, string) ([]engine.RunResult, error) {
	return []engine.RunResult{{ResultID: s.run.RunID, Figures: &s.figures}}, nil
}

// seen are results with a look each second, and no executions.
type seen struct {
	record.Results
	from  time.Time
	parts int
}

func (s seen) ReadServer(_ context.Context, _ string, into record.ServerReader) (int, error) {
	for i := range 30 * s.parts {
		into.Look(engine.ServerLook{At: engine.At(s.from.Add(time.Duration(i) * time.Second)), Idle: 1})
	}
	return s.parts, nil
}

func (s seen) ClientSeconds(_ context.Context, _ string, _ time.Time, _ time.Duration, n int) ([]findings.ClientSecond,
	error) {
	return make([]findings.ClientSecond, n), nil
}

// TestWhySaysWhatTheSummarySays: what was found when the run ended stays when its executions or server parts are away,
// and what cannot be computed any more is not.
func TestWhySaysWhatTheSummarySays(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	run := engine.Run{RunID: "r", Status: engine.StatusCompleted, StartTime: engine.At(start),
		MeasurementEndTime: engine.At(start.Add(30 * time.Second)), EndTime: engine.At(start.Add(31 * time.Second))}
	found := engine.Figures{Findings: []engine.Finding{{Rule: "hot_row", Title: "A hot row"}},
		ServerTime: &engine.ServerTime{InFlight: 42}}
	gone := run
	gone.ExecutionsDeletedAt = engine.At(start.Add(time.Hour))
	for name, c := range map[string]struct {
		run     engine.Run
		figures engine.Figures
		parts   int
		deleted bool
	}{
		"the record is lost":        {run, found, 1, false},
		"server parts are lost":     {run, found, 0, false},
		"executions are deleted":    {gone, found, 1, true},
		"nothing is left":           {gone, found, 0, true},
		"nothing was stored either": {gone, engine.Figures{}, 1, true},
	} {
		v, err := New(Options{Store: ended{run: c.run, figures: c.figures}, Results: seen{from: start, parts: c.parts}}).
			ServerView(t.Context(), "r")
		if err != nil {
			t.Fatal(err)
		}
		if len(v.Findings) != len(c.figures.Findings) || v.Time != c.figures.ServerTime || !v.Observed {
			t.Errorf("%s: observed %v, %+v, %+v", name, v.Observed, v.Findings, v.Time)
		}
		if len(v.Findings) > 0 && v.Findings[0].Rule != "hot_row" {
			t.Errorf("%s: %+v", name, v.Findings)
		}
		if strings.Contains(v.Reason, "were deleted on 2026-01-02") != c.deleted {
			t.Errorf("%s: %q", name, v.Reason)
		}
		if c.parts > 0 && len(v.Seconds) == 0 {
			t.Errorf("%s: no seconds", name)
		}
		for _, s := range v.Seconds {
			if c.deleted && (s.InFlight != nil || s.Slow) {
				t.Errorf("%s: %+v of a client of which nothing is known", name, s)
			}
		}
	}
}
