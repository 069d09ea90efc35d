package host

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/plugins/sample"
)

// BenchmarkWorkloads measures the bundled workloads with tables of their own: an
// operation generated, checked and decoded in batches of 128.
func BenchmarkWorkloads(b *testing.B) {
	for _, c := range []struct{ plugin, name, params string }{
		{"tpcb", "tpcb", `{"scale":100}`},
		{"tpcb", "tpcb_select_only", `{"scale":100,"script":"select-only"}`},
		{"tpcc", "tpcc", `{"warehouses":100}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			ctx := context.Background()
			h := newHost(b, Options{})
			if _, err := h.Register(ctx, bundledFile(b, c.plugin+".wasm"), true); err != nil {
				b.Fatal(err)
			}
			w, err := h.Workload(ctx, c.plugin)
			if err != nil {
				b.Fatal(err)
			}
			params := json.RawMessage(c.params)
			declared, err := w.Tables(ctx, params)
			if err != nil {
				b.Fatal(err)
			}
			tables := sample.Tables(declared)
			list, err := w.Statements(ctx, params, tables)
			if err != nil {
				b.Fatal(err)
			}
			s, err := w.Open(ctx, plugin.OpenRequest{Seed: 42, KeySlots: 4, Params: params, Tables: tables}, frozenList(list))
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			var batch plugin.Batch
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; n += len(batch.Ops) {
				if err := s.Fill(&batch, 128); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
