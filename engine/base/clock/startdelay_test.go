package clock

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestSTARTLiesAheadOfTheLongestWay: it reaches every node before, whatever the ways and the
// store took last, and never lies further ahead than a user would wait for.
func TestSTARTLiesAheadOfTheLongestWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		span := func(what string) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(200*time.Millisecond)).Draw(t, what))
		}
		var to []NodeTiming
		var far, wrong time.Duration
		for range rapid.IntRange(2, 60).Draw(t, "nodes") {
			w := NodeTiming{RTT: span("rtt"), ClockError: span("clock error")}
			to, far, wrong = append(to, w), max(far, w.RTT), max(wrong, w.ClockError)
		}
		write := span("write")
		got := StartDelay(to, write)
		if needs := far/2 + wrong + write; got < min(needs, maxStartDelay) || got < minStartDelay || got > maxStartDelay {
			t.Fatalf("%v ahead, where %v are needed", got, needs)
		}
	})
	for _, alone := range [][]NodeTiming{nil, {{RTT: time.Second}}} {
		if got := StartDelay(alone, time.Second); got != 0 {
			t.Errorf("%v ahead for %d nodes", got, len(alone))
		}
	}
}

func TestTheSpreadOfABeginningIsSaidOnce(t *testing.T) {
	at := time.Unix(1_790_000_000, 0)
	var l StartReport
	if w := l.Record("worker-0", "a", at, 0, 0); w != "" || l.Summary() != "" {
		t.Error("a line that was not set says something")
	}
	l.Expect([]string{"worker-0", "worker-1", "worker-2"})
	for i, id := range []string{"worker-1", "worker-1", "worker-9", "worker-0"} {
		if w := l.Record(id, id, at.Add(time.Duration(i)*time.Millisecond), 0, time.Millisecond); w != "" {
			t.Errorf("said before all have begun: %s", w)
		}
	}
	got := l.Record("worker-2", "c", at.Add(143*time.Millisecond), 140*time.Millisecond, 2*time.Millisecond)
	const want = "3 run workers on 3 nodes began within 143 ms of one another, where the clock of a node may be wrong " +
		"by 2 ms; the latest, worker-2, began 140 ms after the instant that START named."
	if got != want || l.Summary() != "" {
		t.Errorf("%q, and again %q", got, l.Summary())
	}
	// One that never begins leaves it to the end of the run to say how it was.
	l.Expect([]string{"worker-0", "worker-1", "worker-2"})
	l.Record("worker-0", "a", at, 0, 0)
	l.Record("worker-1", "b", at.Add(time.Millisecond), 0, 0)
	if got := l.Summary(); !strings.Contains(got, "2 run workers on 2 nodes began within 1 ms") ||
		!strings.Contains(got, "1 did not begin") {
		t.Error(got)
	}
	// On one node there is nothing to compare.
	l.Expect([]string{"worker-0", "worker-1"})
	l.Record("worker-0", "a", at, 0, 0)
	if got := l.Record("worker-1", "a", at, 0, 0); got != "" {
		t.Error(got)
	}
}
