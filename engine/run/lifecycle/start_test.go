package lifecycle

import (
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// TestTheLoadBeginsWhenSTARTSays: its phases are counted from that instant, or from when the
// run workers were told, if that is later; and a run that begins at once names no instant.
func TestTheLoadBeginsWhenSTARTSays(t *testing.T) {
	begin := time.Unix(1_790_000_000, 0)
	for name, c := range map[string]struct {
		in, toldAfter, want time.Duration
		named               bool
	}{
		"in time": {200 * time.Millisecond, 50 * time.Millisecond, 200 * time.Millisecond, true},
		"late":    {200 * time.Millisecond, 450 * time.Millisecond, 450 * time.Millisecond, true},
		"at once": {0, 30 * time.Millisecond, 30 * time.Millisecond, false},
	} {
		for _, warmup := range []float64{0, 2} {
			m := fixed(engine.Workload{WarmupSeconds: warmup, DurationSeconds: 5}, "worker-0", "worker-1")
			m.Apply(begin, RunStarted{})
			m.Apply(begin, Prepared{})
			m.Apply(begin, WorkerChanged{ID: "worker-1", Status: engine.WorkerReady, StartIn: time.Hour}) // not the last
			var told *Change
			for _, a := range m.Apply(begin, WorkerChanged{ID: "worker-0", Status: engine.WorkerReady, StartIn: c.in}) {
				if change, ok := a.(Change); ok {
					told = &change
				}
			}
			if told == nil || told.Events[0].Type != engine.EventStart {
				t.Fatalf("%s: no START: %+v", name, told)
			}
			instant := begin.Add(c.in)
			if at := told.Events[0].Data.EffectiveAt; (at != nil) != c.named || c.named && !at.Equal(instant) {
				t.Errorf("%s: START names %v", name, at)
			}
			if !told.WarmupStartTime.Equal(instant) || m.StartAt().IsZero() == c.named {
				t.Errorf("%s: the load is stored as begun at %v, and announced for %v", name, told.WarmupStartTime, m.StartAt())
			}
			m.PhaseSent(begin.Add(c.toldAfter), m.Phase())
			want := begin.Add(c.want).Add(time.Duration(warmup * float64(time.Second)))
			if warmup > 0 {
				if m.Apply(want.Add(-time.Millisecond), Tick{}); m.Phase() != engine.PhaseWarmup {
					t.Errorf("%s: the warm-up is cut short", name)
				}
				if m.Apply(want, Tick{}); m.Phase() != engine.PhaseMeasurement {
					t.Errorf("%s: the warm-up goes on", name)
				}
				m.PhaseSent(want, m.Phase())
			}
			if !m.MeasureAt().Equal(want) {
				t.Errorf("%s, warm-up of %v s: measured from %v on, want %v", name, warmup, m.MeasureAt().Sub(begin),
					want.Sub(begin))
			}
			if m.Apply(want.Add(5*time.Second-time.Millisecond), Tick{}); m.Stopping() {
				t.Errorf("%s: the measurement is cut short", name)
			}
			if m.Apply(want.Add(5*time.Second), Tick{}); !m.Stopping() {
				t.Errorf("%s: the measurement goes on", name)
			}
		}
	}
}
