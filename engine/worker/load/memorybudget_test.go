package load

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// heavyStream gives one operation at a time, in a batch of a megabyte.
type heavyStream struct{ fakeStream }

func (s *heavyStream) Fill(b *plugin.Batch, _ int) error {
	err := s.fakeStream.Fill(b, 4)
	b.Data = append(b.Data[:0], make([]byte, 1<<20)...)
	return err
}

// TestKeptOperationsAreBounded: operations that are due, and those that many
// connections have taken, keep so much memory in sum and no more.
func TestKeptOperationsAreBounded(t *testing.T) {
	for name, w := range map[string]engine.Workload{
		"due":              {LoadMode: engine.LoadQPS, TargetQPS: rate(1000), MaxInFlight: 10_000},
		"of a closed loop": {LoadMode: engine.LoadConcurrency},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := &fakeDB{latency: between(time.Hour, time.Hour)}
				sink := &memorySink{}
				cfg := fakeConfig(db, &heavyStream{}, sink)
				cfg.Workload = w
				cfg.Plan.Workload = engine.PluginRef{Name: "heavy", Version: "1.0.0"}
				cfg.maxKeptBytes = 20 << 20
				g := open(t, cfg, 40)
				if g.dispatcher != nil {
					g.dispatcher.waiter = plainTimers{}
				}
				g.Start(engine.PhaseMeasurement)
				var err error
				select {
				case err = <-g.Failed():
				case <-time.After(10 * time.Minute):
				}
				if err == nil || !strings.Contains(err.Error(), "operations of heavy 1.0.0") ||
					!strings.Contains(err.Error(), "quota") {
					t.Errorf("%v", err)
				}
				if most := g.source.KeptBytes(); most > 25<<20 {
					t.Errorf("%d bytes were kept", most)
				}
				g.Stop()
				g.DropQueued()
				_ = settle(g, db, sink, 3*time.Hour)
			})
		})
	}
}

// TestKeptForgets: what was executed is not kept, and batches that were large once
// do not stay so.
func TestKeptForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &fakeDB{latency: between(time.Millisecond, time.Millisecond)}
		sink := &memorySink{}
		cfg := fakeConfig(db, &heavyStream{fakeStream{limit: 500}}, sink)
		cfg.Workload = engine.Workload{LoadMode: engine.LoadConcurrency}
		cfg.maxKeptBytes = 64 << 20
		g := open(t, cfg, 4)
		g.Start(engine.PhaseMeasurement)
		time.Sleep(time.Minute)
		if err := settle(g, db, sink, time.Hour); err != nil {
			t.Error(err)
		}
		if len(sink.recs) != 500 {
			t.Errorf("%d operations were executed", len(sink.recs))
		}
	})
	p := &OpBatch{Batch: plugin.Batch{Data: make([]byte, 100, 8<<20)}}
	if p.Trim(); cap(p.Batch.Data) != 0 {
		t.Error("a large batch stays large")
	}
}
