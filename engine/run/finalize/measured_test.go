package finalize

import (
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

func TestRatesAreTakenOverTheMeasurement(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		reason engine.StopReason
		took   time.Duration
		want   time.Duration
	}{
		"its time is up":            {engine.StopDurationElapsed, 60*time.Second + 7*time.Millisecond, 60 * time.Second},
		"rounded":                   {engine.StopDurationElapsed, 60*time.Second - time.Millisecond, 60 * time.Second},
		"the workload ended before": {engine.StopDurationElapsed, 3 * time.Second, 0},
		"a user stopped it":         {engine.StopUserRequested, 3 * time.Second, 3 * time.Second},
		"a guardrail":               {engine.StopGuardrail, 90 * time.Second, 90 * time.Second},
	} {
		r := engine.Run{StopReason: c.reason, WarmupEndTime: engine.At(begin),
			MeasurementEndTime: engine.At(begin.Add(c.took))}
		r.Scenario.Workload.DurationSeconds = 60
		if got := measured(r); got != c.want {
			t.Errorf("%s: %v, expected %v", name, got, c.want)
		}
	}
	if got := measured(engine.Run{StopReason: engine.StopUserRequested, WarmupEndTime: engine.At(begin)}); got != 0 {
		t.Errorf("stopped in the warm-up: %v", got)
	}
}
