package engine_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
)

// TestTheConnectionsOfStages compares the level with one that is walked through
// in small steps, and the highest level with the highest that is met on the way.
func TestTheConnectionsOfStages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := engine.Workload{ConcurrentConnections: rapid.IntRange(1, 50).Draw(t, "start")}
		for range rapid.IntRange(0, 5).Draw(t, "stages") {
			n := rapid.IntRange(1, 50).Draw(t, "connections")
			w.Stages = append(w.Stages,
				engine.Stage{DurationSeconds: float64(rapid.IntRange(1, 8).Draw(t, "quarters")) / 4, Connections: &n,
					Ramp: rapid.SampledFrom([]engine.Ramp{engine.RampLinear, engine.RampStep}).Draw(t, "ramp")})
		}
		const grain = 10 * time.Millisecond
		want := []int{}
		ends := map[int]int{} // the level that a stage ends on, by the grain that is the next one's first
		level := float64(w.ConcurrentConnections)
		for _, s := range w.Stages {
			steps := int(s.Duration() / grain)
			for i := range steps {
				at := level + (s.Level()-level)*float64(i)/float64(steps)
				if s.Ramp == engine.RampStep {
					at = s.Level()
				}
				want = append(want, int(at+0.5))
			}
			level = s.Level()
			ends[len(want)] = int(level)
		}
		want = append(want, int(level))
		for i, n := range want {
			// Halves may be rounded either way by the last digit.
			if got := w.ConnectionsAt(time.Duration(i) * grain); got < n-1 || got > n+1 || i == len(want)-1 && got != n {
				t.Fatalf("%d connections after %v, want %d", got, time.Duration(i)*grain, n)
			}
		}
		if got := w.ConnectionsAt(-time.Second); got != w.ConcurrentConnections {
			t.Fatalf("%d connections before the measurement", got)
		}
		from := rapid.IntRange(0, len(want)-1).Draw(t, "from")
		to := rapid.IntRange(from, len(want)-1).Draw(t, "to")
		most := 0
		for _, n := range want[from : to+1] {
			most = max(most, n)
		}
		for i := from + 1; i <= to; i++ {
			most = max(most, ends[i]) // a ramp reaches its level after its last grain
		}
		if got := w.MaxConnectionsBetween(time.Duration(from)*grain, time.Duration(to)*grain); got < most-1 || got > most+1 {
			t.Fatalf("%d connections at most from %d to %d, want %d", got, from, to, most)
		}
	})
}

// TestAStepIsNotAnticipated: what is asked for in a second is at most what the ramp reaches before the next step.
func TestAStepIsNotAnticipated(t *testing.T) {
	ten, forty := 10, 40
	w := engine.Workload{ConcurrentConnections: 4, Stages: []engine.Stage{
		{DurationSeconds: 2, Connections: &ten, Ramp: engine.RampStep},
		{DurationSeconds: 3, Connections: &forty, Ramp: engine.RampLinear},
		{DurationSeconds: 1, Connections: &ten, Ramp: engine.RampStep},
	}}
	for _, tt := range []struct {
		at   float64
		want int
	}{{-3, 4}, {-0.5, 4}, {0, 10}, {1.5, 15}, {2, 20}, {4, 40}, {4.5, 40}, {5, 10}, {9, 10}} {
		if got := w.NextConnections(time.Duration(tt.at*float64(time.Second)), time.Second); got != tt.want {
			t.Errorf("after %v s: %d connections, want %d", tt.at, got, tt.want)
		}
	}
}
