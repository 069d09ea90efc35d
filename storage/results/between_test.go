package results

import (
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// TestBetween: what ended with a cut belongs to what follows it, with the last one to what it ends;
// nothing is lost, and nothing counted twice.
func TestBetween(t *testing.T) {
	recs := steady(0, 10_000, 0)
	for i := 5_000; i < 5_100; i++ {
		recs[i].Success, recs[i].ErrorID = false, 1
	}
	late := engine.Execution{DueAt: testBase + 2e9, StartedAt: testBase + 2e9, Elapsed: 28e9, ConnectionID: 1,
		Success: true}
	inside := engine.Execution{DueAt: testBase + 1e9, StartedAt: testBase + 1e9, Elapsed: 5e6, Position: 1, Success: true}
	f := open(t)
	put(t, f, "worker-0", recs[:4_000], recs[4_000:])
	put(t, f, "worker-1", []engine.Execution{late, inside})
	got, err := f.Between(t.Context(), "run", []time.Time{after(1_000), after(4_000), after(10_000)})
	if err != nil || len(got) != 2 {
		t.Fatalf("%v, %v", got, err)
	}
	// Operation n ends at n+1 ms: 999 … 3998 in the first, 3999 … 9999 in the second.
	if a, b := got[0], got[1]; a.Operations != 3000 || a.Errors != 0 || a.Seconds != 3 || b.Operations != 6001 ||
		b.Errors != 100 || b.Seconds != 6 || a.Latency == nil || a.Latency.Max != 1e6 {
		t.Errorf("%+v, %+v", a, b)
	}
	if none, err := f.Between(t.Context(), "run", nil); err != nil || none != nil {
		t.Errorf("%v, %v", none, err)
	}
}
