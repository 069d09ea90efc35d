package host

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/plugins/sample"
)

// BenchmarkExamples takes batches of 128 of the same generator, written in each
// language that has an SDK, as a run does: generated, validated and decoded.
func BenchmarkExamples(b *testing.B) {
	files, err := filepath.Glob("../../examples/plugins/orders/dist/*.wasm")
	if err != nil || len(files) == 0 {
		b.Fatalf("no example is built; make examples does it: %v", err)
	}
	for _, path := range files {
		b.Run(filepath.Base(path), func(b *testing.B) {
			file, err := os.ReadFile(path)
			if err != nil {
				b.Fatal(err)
			}
			h := newHost(b, Options{})
			// Registered as bundled ones are, so that they run where nothing interrupts.
			info, err := h.Register(context.Background(), file, true)
			if err != nil {
				b.Fatal(err)
			}
			w, err := h.Workload(context.Background(), info.SHA256)
			if err != nil {
				b.Fatal(err)
			}
			s, err := w.Open(context.Background(), plugin.OpenRequest{Seed: 42, KeySlots: 4,
				Params: json.RawMessage(`{"pay":0.1,"list":0.1,"add":0.1,"rollback":0.01,"keys":"zipfian","theta":0.99,"note_length":40}`),
				Tables: sample.Tables(info.Manifest.Tables)}, frozenList(info.Manifest.Statements))
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			var batch plugin.Batch
			if err := s.Fill(&batch, 128); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if err := s.Fill(&batch, 128); err != nil {
					b.Fatal(err)
				}
				n += len(batch.Ops)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/operation")
		})
	}
}
