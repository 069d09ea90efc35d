package bundled_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/engine/worker/load"
	"github.com/loadstone-db/loadstone/plugins/host/hosttest"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// native generates what mix does with uniform lookups, without a plugin.
type native struct {
	random *rand.Rand
	rows   int64
}

func (s *native) Fill(b *plugin.Batch, n int) error {
	b.Reset()
	for i := range n {
		b.Ops = append(b.Ops, plugin.Op{FirstArg: uint32(i), NArgs: 1})
		b.Args = append(b.Args, plugin.Value{Type: engine.TypeI64, I: 1 + s.random.Int64N(s.rows)})
	}
	return nil
}

func (s *native) Close() error { return nil }

type discard struct{}

func (discard) Write([]engine.Execution) error { return nil }

// BenchmarkPluginAgainstNative drives a real Postgres with mix through Wasm and with
// the same operations from native code, in turns, and reports the medians, also of
// what the plugin costs in each round. The turns' order changes with the rounds, so
// that a machine that grows slower favours neither.
func BenchmarkPluginAgainstNative(b *testing.B) {
	const rows, connections, rounds, lasting = 100_000, 16, 7, time.Second
	ctx := context.Background()
	h := hosttest.Bundled(b)
	dsn := pgtest.Start(b).NewDatabase(b)
	database, err := postgres.NewDriver().Open(target.Config{DSN: secret.New(dsn), StatementTimeout: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	defer database.Close()
	if err := database.Exec(ctx, "CREATE TABLE things (id bigint PRIMARY KEY, note text)",
		fmt.Sprintf("INSERT INTO things SELECT i, 'note' FROM generate_series(1, %d) i", rows),
		"VACUUM ANALYZE things"); err != nil {
		b.Fatal(err)
	}
	params := json.RawMessage(`{"weights":{"POINT_LOOKUP":1},"keys":"uniform"}`)
	sc := engine.Scenario{Name: "cost",
		Workload: engine.Workload{Plugin: "mix", Params: params, Seed: 7, ConcurrentConnections: connections},
		Target: engine.Target{Connection: engine.ConnectionRef{Driver: "postgres", DSN: dsn}, Adapter: "postgres",
			TableName: "things"},
		Scaling: engine.Scaling{WorkerCount: 1}}
	p, err := prepare.Plan(ctx, prepare.Deps{Plugins: h,
		Drivers: map[string]target.Driver{"postgres": postgres.NewDriver()}, Connections: inline{}}, sc, nil)
	if err != nil {
		b.Fatal(err)
	}
	w, err := h.Workload(ctx, p.Plan.Workload.SHA256)
	if err != nil {
		b.Fatal(err)
	}
	tps := func(s plugin.Stream) float64 {
		defer func() { _ = s.Close() }()
		g, err := load.Open(ctx, load.Config{Stream: s, Database: database, Sink: discard{}, Log: zerolog.Nop(), Plan: p.Plan,
			Workload: sc.Workload}, connections, nil)
		if err != nil {
			b.Fatal(err)
		}
		begin := time.Now()
		g.Start(engine.PhaseMeasurement)
		time.Sleep(lasting)
		if err := g.Drain(ctx); err != nil {
			b.Fatal(err)
		}
		took, n := time.Since(begin), g.Totals()
		if err := g.Close(); err != nil || n.Failed > 0 || n.Started == 0 {
			b.Fatalf("%+v %v", n, err)
		}
		return float64(n.Started) / took.Seconds()
	}
	var got [2][]float64
	for b.Loop() {
		for round := range rounds {
			for turn := range 2 {
				if (round+turn)%2 == 0 {
					got[0] = append(got[0], tps(&native{rand.New(rand.NewPCG(1, 2)), rows}))
					continue
				}
				s, err := w.Open(ctx, plugin.OpenRequest{Seed: int64(round), KeySlots: 4, Params: p.Params, Tables: p.Plan.Tables,
					Pools: p.Plan.Pools}, p.Plan.Statements)
				if err != nil {
					b.Fatal(err)
				}
				got[1] = append(got[1], tps(s))
			}
		}
	}
	costs := make([]float64, len(got[0]))
	for i := range costs {
		costs[i] = 100 * (1 - got[1][i]/got[0][i])
	}
	median := func(v []float64) float64 { slices.Sort(v); return v[len(v)/2] }
	b.ReportMetric(median(got[0]), "native-tps")
	b.ReportMetric(median(got[1]), "plugin-tps")
	b.ReportMetric(median(costs), "cost-%")
	b.ReportMetric(0, "ns/op")
}
