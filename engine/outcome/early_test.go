package outcome

import (
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
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
		if got := EndedEarly(c.run); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
