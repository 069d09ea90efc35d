package results

import (
	"context"
	"flag"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/record"
)

var benchRows = flag.Int("executions", 1_000_000, "executions of BenchmarkFigures")

// BenchmarkFigures computes the figures of a run with two run workers from
// parts on disk: go test -bench Figures -executions 10000000. It reports the
// peak resident size of the process, which includes the making of the parts.
func BenchmarkFigures(b *testing.B) {
	f := recorded(b)
	b.ReportAllocs()
	for b.Loop() {
		fig, _, err := f.FiguresByWorker(context.Background(), "run", nil, engine.Window{})
		if err != nil {
			b.Fatal(err)
		}
		if fig.Accounting.Recorded != int64(*benchRows) {
			b.Fatalf("%d recorded", fig.Accounting.Recorded)
		}
	}
	b.ReportMetric(peakMB(b), "peak-MB")
}

// recorded returns results with -executions executions of the run "run", by two run workers.
func recorded(b *testing.B) *Results {
	b.Helper()
	f := open(b)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, worker := range []string{"worker-0", "worker-1"} {
		dir := b.TempDir()
		w, err := record.NewWriter(record.WriterOptions{Dir: dir, RunID: "run", ResultID: worker, WorkerID: worker,
			Statements: statements, Errors: func(id uint32) engine.ExecutionError { return dictionary[id] }})
		if err != nil {
			b.Fatal(err)
		}
		at := int64(1_790_000_000_000_000_000)
		chunk := make([]engine.Execution, 1024)
		for n := 0; n < *benchRows/2; n += len(chunk) {
			for i := range chunk {
				elapsed := int64(math.Exp(rng.NormFloat64()*0.5) * 350_000)
				kind := rng.IntN(4)
				chunk[i] = engine.Execution{DueAt: at, StartedAt: at, Elapsed: elapsed, Seq: uint32(n + i),
					ConnectionID: uint32(i % 8),
					Rows:         1, Success: true, Kind: engine.Kind(kind), Statement: uint16(kind), Warmup: n < *benchRows/20}
				if rng.IntN(1000) == 0 {
					chunk[i].Success, chunk[i].ErrorID = false, 1
				}
				at += 20_000 + rng.Int64N(10_000)
			}
			if err := w.Write(chunk[:min(len(chunk), *benchRows/2-n)]); err != nil {
				b.Fatal(err)
			}
		}
		parts, err := w.Close()
		if err != nil {
			b.Fatal(err)
		}
		for _, a := range parts {
			if err := f.Put(context.Background(), a, record.LocalFile(filepath.Join(dir, a.Name))); err != nil {
				b.Fatal(err)
			}
		}
	}
	return f
}

func BenchmarkCSV(b *testing.B) {
	f := recorded(b)
	b.ReportAllocs()
	for b.Loop() {
		if err := f.WriteCSV(context.Background(), "run", io.Discard); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/float64(*benchRows), "ns/row")
}

func peakMB(b *testing.B) float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return math.NaN()
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	kb, err := strconv.ParseFloat(strings.Fields(after)[0], 64)
	if err != nil {
		b.Fatal(err)
	}
	return kb / 1024
}
