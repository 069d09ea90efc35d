package host

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/plugins/sample"
	"github.com/loadstone-db/loadstone/sdk/gen"
)

// endlessFuel stands in for the globals of a module that was not metered.
type endlessFuel struct {
	api.MutableGlobal
	v uint64
}

func (e *endlessFuel) Set(v uint64) { e.v = v }
func (e *endlessFuel) Get() uint64  { return e.v }

// unmetered opens a stream on the module as its author made it.
func unmetered(tb testing.TB, h *Host, file []byte, req plugin.OpenRequest, list []engine.Statement) *stream {
	tb.Helper()
	ctx := context.Background()
	s, _, err := examine(file)
	if err != nil {
		tb.Fatal(err)
	}
	c := &compiled{shape: s, name: "unmetered", compiler: h.compiler}
	if c.code, err = h.compiler.compile(ctx, file); err != nil {
		tb.Fatal(err)
	}
	i := &instance{module: c, log: newGuestLog(h.log), callFuel: h.fuel,
		tank: &fuelTank{fuel: &endlessFuel{}, depth: &endlessFuel{}}}
	i.ctx = context.WithValue(ctx, hostEnvKey{}, &hostEnv{log: i.log, random: gen.NewRand(1, 0), tank: i.tank})
	if i.guest, err = h.compiler.runtime.InstantiateModule(i.ctx, c.code,
		wazero.NewModuleConfig().WithName("").WithStartFunctions()); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(i.close)
	if err := i.begin(ctx); err != nil {
		tb.Fatal(err)
	}
	doc, err := openDocument(req)
	if err != nil {
		tb.Fatal(err)
	}
	if err := i.open(ctx, doc); err != nil {
		tb.Fatal(err)
	}
	f, err := freezeStatements(list)
	if err != nil {
		tb.Fatal(err)
	}
	return &stream{instance: i, frozen: f}
}

// TestMeteredStream: a plugin generates on fuel what it generates without.
func TestMeteredStream(t *testing.T) {
	for _, params := range []string{`{}`, `{"keys":"zipfian","weights":{"RANGE_SCAN":1,"INSERT":3,"UPDATE":2}}`} {
		h := newHost(t, Options{})
		metered, list := openMix(t, mixWorkload(t, h), params, 5000)
		req := plugin.OpenRequest{Seed: 42, KeySlots: 4, Params: json.RawMessage(params),
			Tables: []engine.Table{ordersTable(5000)}}
		plain := unmetered(t, h, bundledFile(t, "mix.wasm"), req, list)
		var a, b plugin.Batch
		for n := range 300 {
			if err := errors.Join(metered.Fill(&a, 128), plain.Fill(&b, 128)); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(a, b) {
				t.Fatalf("batch %d differs", n)
			}
		}
	}
}

// BenchmarkFill measures what fuel costs: the same stream from the module as it is
// run, and as its author made it. The two take turns, and the fastest turn of each
// counts, so that the ratio holds on a busy machine too. The examples are there
// after `make examples`.
func BenchmarkFill(b *testing.B) {
	type guest struct{ name, file, params string }
	guests := []guest{
		// The weights that a table of the run's own gets; without them mix only reads.
		{"mix_default", "", `{"weights":{"POINT_LOOKUP":70,"RANGE_SCAN":10,"INSERT":10,"UPDATE":10}}`},
		{"mix_lookups", "", `{"weights":{"POINT_LOOKUP":1}}`},
		{"mix_zipfian", "", `{"weights":{"POINT_LOOKUP":1},"keys":"zipfian"}`},
		{"mix_inserts", "", `{"weights":{"INSERT":1}}`},
	}
	for _, language := range []string{"c", "assemblyscript", "rust", "go"} {
		file := "../../examples/plugins/orders/dist/" + language + ".wasm"
		guests = append(guests, guest{"orders_" + language, file, `{}`},
			guest{"orders_" + language + "_lookups", file, `{"pay":0,"list":0,"add":0,"keys":"uniform"}`})
	}
	for _, g := range guests {
		b.Run(g.name, func(b *testing.B) {
			ctx := context.Background()
			var file []byte
			if g.file == "" {
				file = bundledFile(b, "mix.wasm")
			} else {
				var err error
				if file, err = os.ReadFile(g.file); err != nil {
					b.Skip("it is made by `make examples`: ", err)
				}
			}
			h := newHost(b, Options{})
			info, err := h.Register(ctx, file, false)
			if err != nil {
				b.Fatal(err)
			}
			w, err := h.Workload(ctx, info.SHA256)
			if err != nil {
				b.Fatal(err)
			}
			tables := sample.Tables(info.Manifest.Tables)
			list, err := w.Statements(ctx, json.RawMessage(g.params), tables)
			if err != nil {
				b.Fatal(err)
			}
			req := plugin.OpenRequest{Seed: 42, KeySlots: 4, Params: json.RawMessage(g.params), Tables: tables}
			metered, err := w.Open(ctx, req, runList(list))
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = metered.Close() }()
			compareFill(b, metered.(*stream), unmetered(b, h, file, req, runList(list)))
		})
	}
}

func runList(list []plugin.Statement) []engine.Statement {
	out := frozenList(list)
	for i, s := range list {
		out[i].Columns = s.Columns
	}
	return out
}

func compareFill(b *testing.B, metered, plain *stream) {
	const turn = 50 * 128
	var batch plugin.Batch
	fill := func(s *stream) time.Duration {
		begin := time.Now()
		for n := 0; n < turn; n += 128 {
			if err := s.Fill(&batch, 128); err != nil {
				b.Fatal(err)
			}
		}
		return time.Since(begin)
	}
	fill(metered)
	fill(plain)
	b.ReportAllocs()
	b.ResetTimer()
	best := [2]time.Duration{time.Hour, time.Hour}
	for n := 0; n < b.N; n += 2 * turn {
		best[0] = min(best[0], fill(metered))
		best[1] = min(best[1], fill(plain))
	}
	b.ReportMetric(float64(best[0].Nanoseconds())/turn, "fuelled-ns/op")
	b.ReportMetric(float64(best[1].Nanoseconds())/turn, "plain-ns/op")
	b.ReportMetric(100*(float64(best[0])/float64(best[1])-1), "fuel-%")
	b.ReportMetric(float64(fuelFor(128)-metered.instance.tank.remaining())/128, "units/op")
	b.ReportMetric(0, "ns/op")
}
