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
		var l Losses
		now := time.Unix(1_790_000_000, 0)
		until, freed := map[string]time.Time{}, map[string]bool{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "lose") {
				id := fmt.Sprint("worker-", rapid.IntRange(0, 8).Draw(t, "worker"))
				at := now.Add(time.Duration(rapid.Int64Range(0, int64(100*time.Second)).Draw(t, "for")))
				l.Lost(id, at)
				if _, twice := until[id]; !twice {
					until[id] = at
				}
			}
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(20*time.Second)).Draw(t, "passes")))
			got := l.Freed(now)
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
				if l.Holds(id) != now.Before(at) {
					t.Fatalf("%s holds its load: %v, %v before its time", id, l.Holds(id), at.Sub(now))
				}
			}
		}
	})
}

func TestHowManyLostWorkersAreReplaced(t *testing.T) {
	for _, c := range []struct {
		crew    Crew
		lost, n int
		why     bool
	}{
		{Crew{Have: 3, Slots: 10}, 1, 1, false},
		{Crew{Have: 3, Slots: 1}, 2, 1, true},
		{Crew{Have: 3, Slots: -1}, 2, 0, true},
		{Crew{Have: 3, Most: 4, Slots: 10}, 1, 1, false},
		{Crew{Have: 3, Most: 4, Slots: 10}, 2, 1, true},
		{Crew{Have: 5, Most: 4, Slots: 10}, 2, 0, true},
		{Crew{Have: 3, Slots: 10, Fixed: "it replays"}, 2, 0, true},
	} {
		n, why := c.crew.Replacements(c.lost)
		if n != c.n || (why != "") != c.why {
			t.Errorf("%+v: %d of %d are replaced, because %q", c.crew, n, c.lost, why)
		}
	}
}
