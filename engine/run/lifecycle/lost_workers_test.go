package lifecycle

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestLoadOfALostWorkerIsFreeOnceAndNotBeforeItsTime, in whatever order workers are lost and time passes.
func TestLoadOfALostWorkerIsFreeOnceAndNotBeforeItsTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l LostWorkers
		now := time.Unix(1_790_000_000, 0)
		until, freed := map[string]time.Time{}, map[string]bool{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "lose") {
				id := fmt.Sprint("worker-", rapid.IntRange(0, 8).Draw(t, "worker"))
				at := now.Add(time.Duration(rapid.Int64Range(0, int64(100*time.Second)).Draw(t, "for")))
				l.MarkLost(id, at)
				if _, twice := until[id]; !twice {
					until[id] = at
				}
			}
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(20*time.Second)).Draw(t, "passes")))
			got := l.ReleaseExpired(now)
			if !slices.IsSorted(got) {
				t.Fatalf("freed %v", got)
			}
			for _, id := range got {
				if freed[id] || now.Before(until[id]) {
					t.Fatalf("%s was freed, before: %v, %v before its time", id, freed[id], until[id].Sub(now))
				}
				freed[id] = true
			}
			for id, at := range until {
				if l.HoldsLoad(id) != now.Before(at) {
					t.Fatalf("%s holds its load: %v, %v before its time", id, l.HoldsLoad(id), at.Sub(now))
				}
			}
		}
	})
}

func TestHowManyLostWorkersAreReplaced(t *testing.T) {
	for _, c := range []struct {
		workerTable ReplacementLimits
		lost, n     int
		why         bool
	}{
		{ReplacementLimits{Active: 3, Slots: 10}, 1, 1, false},
		{ReplacementLimits{Active: 3, Slots: 1}, 2, 1, true},
		{ReplacementLimits{Active: 3, Slots: -1}, 2, 0, true},
		{ReplacementLimits{Active: 3, Max: 4, Slots: 10}, 1, 1, false},
		{ReplacementLimits{Active: 3, Max: 4, Slots: 10}, 2, 1, true},
		{ReplacementLimits{Active: 5, Max: 4, Slots: 10}, 2, 0, true},
		{ReplacementLimits{Active: 3, Slots: 10, FixedReason: "it replays"}, 2, 0, true},
	} {
		n, why := c.workerTable.Replacements(c.lost)
		if n != c.n || (why != "") != c.why {
			t.Errorf("%+v: %d of %d are replaced, because %q", c.workerTable, n, c.lost, why)
		}
	}
}
