package load

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/results/params"
	"github.com/loadstone-db/loadstone/engine/target"
)

// refusingConn answers at once that it will not.
type refusingConn struct{ nullConn }

var errRefused = errors.New("it says no")

func (refusingConn) Exec(context.Context, *plugin.Batch, plugin.Op, *target.Result) error {
	return errRefused
}

// BenchmarkBinds is what keeping parameters adds to an operation: with and without, in turns of a few thousand
// operations within one program, and the median of the ratios of neighbours. quick are operations that are none of the
// slowest, failing those of an error that is known.
func BenchmarkBinds(b *testing.B) {
	for name, conn := range map[string]target.Conn{"quick": nullConn{}, "failing": refusingConn{}} {
		b.Run(name, func(b *testing.B) {
			var slots [2]*slot
			var groups [2]*Group
			for i, mode := range []string{params.None, params.Plain} {
				config := fakeConfig(&fakeDB{}, &fakeStream{}, nullSink{})
				config.Binds = params.New(mode, config.Plan.Statements, 1)
				g, err := Open(context.Background(), config, 0, nil)
				if err != nil {
					b.Fatal(err)
				}
				defer g.Close()
				g.measured.Store(0) // what is in the warm-up is none of the slowest
				s := g.newSlot()
				s.conn, s.batch.Batch.Args = conn, []plugin.Value{{Type: engine.TypeI64, I: 1}}
				s.work.Ops = []plugin.Op{{NArgs: 1}}
				groups[i], slots[i] = g, s
			}
			const turn = 4000
			run := func(i, n int) time.Duration {
				begin := time.Now()
				for range n {
					slots[i].execute(groups[i])
				}
				return time.Since(begin)
			}
			for i := range slots {
				run(i, 20*turn) // the slowest are there then
			}
			var ratios []float64
			var took [2][]float64
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				first := n % 2 // neither is always the first
				var pair [2]time.Duration
				pair[first] = run(first, turn)
				pair[1-first] = run(1-first, turn)
				ratios = append(ratios, float64(pair[1])/float64(pair[0]))
				for i := range pair {
					took[i] = append(took[i], float64(pair[i].Nanoseconds())/turn)
				}
			}
			for i := range slots {
				slots[i].own.rec.Flush()
			}
			middle := func(all []float64) float64 {
				slices.Sort(all)
				return all[len(all)/2]
			}
			b.ReportMetric(middle(ratios), "ratio")
			b.ReportMetric(middle(took[0]), "ns-without")
			b.ReportMetric(middle(took[1]), "ns-with")
		})
	}
}
