package s3store

import (
	"io"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/storage/objects"
	"github.com/loadstone-db/loadstone/storage/objects/objectstest"
	"github.com/loadstone-db/loadstone/storage/objects/s3test"
)

// BenchmarkTransfer stores and reads 64 MB in a folder and on a real S3 server over loopback, in turns.
func BenchmarkTransfer(b *testing.B) {
	folder, err := objects.OpenFolder(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	opts := options(b)
	opts.CacheBytes, opts.PartBytes = 0, 0
	stores := map[string]objects.Store{"folder": folder, "s3": at(b, s3test.Real(b, "bench"), "", opts)}
	content := objectstest.Content(64*megabyte, 1)
	stored, read := map[string]time.Duration{}, map[string]time.Duration{}
	for b.Loop() {
		for name, s := range stores {
			a, path := objectstest.File(b, "run", "part.parquet", content)
			begin := time.Now()
			if err := s.Put(b.Context(), a, record.LocalFile(path)); err != nil {
				b.Fatal(err)
			}
			stored[name] += time.Since(begin)
			begin = time.Now()
			f, err := s.Open(b.Context(), "run", a.Name)
			if err != nil {
				b.Fatal(err)
			}
			if n, err := io.Copy(io.Discard, io.NewSectionReader(f, 0, f.Size())); err != nil || n != a.SizeBytes {
				b.Fatal(n, err)
			}
			_ = f.Close()
			read[name] += time.Since(begin)
			if err := s.Delete(b.Context(), "run"); err != nil {
				b.Fatal(err)
			}
		}
	}
	rate := func(took time.Duration) float64 { return float64(len(content)) / 1e6 * float64(b.N) / took.Seconds() }
	for name := range stores {
		b.ReportMetric(rate(stored[name]), name+"-put-MB/s")
		b.ReportMetric(rate(read[name]), name+"-read-MB/s")
	}
	b.ReportMetric(0, "ns/op")
}
