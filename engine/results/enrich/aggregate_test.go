package enrich

import (
	"testing"
	"time"
)

// TestAggregatesAreAskedForUntilTheirLatencyHasPassed: after 45 and 90 minutes and
// after the 3 hours that Snowflake documents, and then no more.
func TestAggregatesAreAskedForUntilTheirLatencyHasPassed(t *testing.T) {
	ended := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	available := ended.Add(3 * time.Hour)
	now := ended.Add(time.Second)
	for _, want := range []time.Duration{45 * time.Minute, 90 * time.Minute, 3 * time.Hour} {
		at := NextAggregate(ended, available, now)
		if at.Sub(ended) != want {
			t.Fatalf("after %v it is asked at %v, not %v", now.Sub(ended), at.Sub(ended), want)
		}
		now = at
	}
	if at := NextAggregate(ended, available, now); !at.IsZero() {
		t.Errorf("it is asked again at %v", at.Sub(ended))
	}
	// A server that was down meanwhile asks at what is left of the schedule.
	if at := NextAggregate(ended, available, ended.Add(2*time.Hour)); at.Sub(ended) != 3*time.Hour {
		t.Errorf("after two hours it is asked at %v", at.Sub(ended))
	}
}
