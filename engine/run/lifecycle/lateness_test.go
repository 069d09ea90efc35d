package lifecycle

import (
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
)

// TestAnswersThatTrickleAreTheTargets: in a step the time from the first byte of an answer to its end grows. It is the
// generator's lateness only as far as its process was kept from a processor meanwhile.
func TestAnswersThatTrickleAreTheTargets(t *testing.T) {
	const decode, took = 40 * time.Millisecond, 100 * time.Millisecond
	for name, c := range map[string]struct {
		waitMs float64 // of each of 1000 slices in a second, which run for 0.1 ms
		lateMs float64
		known  bool
		silent bool
		late   bool
	}{
		"the target sends slowly":          {0.005, 0.1, true, false, false},
		"late timers, threads do not wait": {0.005, 5, true, false, false},
		"threads wait":                     {0.3, 5, true, false, true},
		"a system that does not tell":      {0, 5, false, false, true},
		"one that is not late":             {0, 0.1, false, false, false},
		"versions without witnesses":       {0, 0, false, true, false},
	} {
		var m Meter
		w := engine.Witness{Known: c.known, Retransmits: -1}
		step := func(number int, decode time.Duration) string {
			m.Begin(number, 8, []string{"w"})
			for range 3 {
				w.RunNs, w.Slices = w.RunNs+1e8, w.Slices+1000
				w.WaitNs += int64(c.waitMs * 1e9)
				for range 200 {
					w.Late.Record(c.lateMs)
				}
				latency := histogram.New()
				for range 100 {
					latency.Record(int64(took))
				}
				told := w
				s := &engine.WorkerSnapshot{
					WorkerID:    "w",
					Step:        number,
					TickSeconds: 1,
					TickStarted: 100,
					TickLatency: histogram.Pack(
						latency.Data(),
					),
					TickSplit: engine.LatencySplit{Count: 100, Decode: 100 * int64(decode)},
					Resources: engine.Resources{Witness: &told},
				}
				if c.silent {
					s.Resources.Witness = nil
				}
				m.Add(s)
			}
			o, _ := m.Observation()
			return o.GeneratorLate
		}
		if why := step(1, decode/40); why != "" {
			t.Errorf("%s: the first step: %s", name, why)
		}
		if why := step(2, decode); (why != "") != c.late || c.late && !strings.Contains(why, "read answers late") {
			t.Errorf("%s: %q", name, why)
		}
	}
}
