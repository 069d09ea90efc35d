package coordinator_test

import (
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/coordinator"
)

// TestWhatWasSentBeforeIsNotGone: a fragment of an earlier attempt may run on its worker, though the next one has not
// been sent. The name of the query is taken until the worker has said otherwise. (Found by the simulation, seed 204.)
func TestWhatWasSentBeforeIsNotGone(t *testing.T) {
	t.Parallel()
	for attempts, want := range map[int64]catalog.State{0: catalog.Stopped, 2: catalog.Stopping} {
		q := catalog.Query{State: catalog.Deploying, Desired: catalog.Stopped, Fragments: []catalog.Fragment{
			{Host: "n0", State: catalog.FragmentRegistered, Attempts: attempts}}}
		got, do := coordinator.Decide(q, coordinator.Workers{Active: func(string) bool { return true }}, time.Now())
		if got.State != want || (len(do) == 1) != (want == catalog.Stopping) {
			t.Errorf("after %d attempts it is %s, and is told %v", attempts, got.State, do)
		}
	}
}
