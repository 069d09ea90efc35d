package report

import (
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// TestTheSummaryTellsLoadsApart: a line for each load, with its seconds and unit; none without a change.
func TestTheSummaryTellsLoadsApart(t *testing.T) {
	from := time.Date(2026, 11, 22, 12, 0, 2, 0, time.UTC)
	at := func(seconds float64) engine.Time {
		return engine.At(from.Add(time.Duration(seconds * float64(time.Second))))
	}
	ms, rate := 0.412, 200.0
	loads := func(first, second float64) []engine.LoadPart {
		return []engine.LoadPart{
			{From: at(0), To: at(10.5), Load: first, Operations: 1050, Errors: 3, QPS: new(100.0), P50Ms: &ms, P95Ms: &ms},
			{From: at(10.5), To: at(60), Load: second, Operations: 14850, QPS: new(300.0), P50Ms: &ms, P95Ms: &ms, P99Ms: &ms},
		}
	}
	for name, c := range map[string]struct {
		rate   *float64
		byLoad []engine.LoadPart
		want   []string
	}{
		"an open loop": {&rate, loads(100, 300), []string{
			"by load 0–10.5 s: 100/s asked for, 1 050 operations, 100.0/s, P50 0.412 ms P95 0.412 ms P99 –, 3 errors",
			"10.5–60.0 s: 300/s asked for, 14 850 operations, 300.0/s, P50 0.412 ms P95 0.412 ms P99 0.412 ms, 0 errors",
		}},
		"a closed loop": {nil, loads(1, 12), []string{
			"by load 0–10.5 s: 1 connection, 1 050 operations",
			"10.5–60.0 s: 12 connections, 14 850 operations",
		}},
		"nobody changed it": {&rate, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := summary()
			s.TargetQPS, s.ByLoad, s.MeasuredFrom = c.rate, c.byLoad, at(0)
			var b strings.Builder
			if err := Summary(&b, s); err != nil {
				t.Fatal(err)
			}
			text := strings.Join(strings.Fields(strings.ReplaceAll(b.String(), "\u00a0", " ")), " ")
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q is missing:\n%s", want, b.String())
				}
			}
			if i := strings.Index(text, "by load"); i > 0 && i < strings.Index(text, "timeout: 1") {
				t.Errorf("it stands between the errors and their classes:\n%s", b.String())
			}
			if message := strings.Contains(text, "by load"); message != (c.want != nil) {
				t.Errorf("by load is told: %v\n%s", message, b.String())
			}
		})
	}
}
