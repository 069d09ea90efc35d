package record

import (
	"encoding/binary"
	"testing"
)

// BenchmarkWriter measures the whole recording path behind the Sink: transpose,
// encode, checksum, write to a file, with the file's final fsync.
func BenchmarkWriter(b *testing.B) {
	for _, bench := range []struct {
		name        string
		chunk, fail int
	}{{"chunks", 1024, 0}, {"interleaved", 1, 0}, {"errors1in10", 1024, 10}, {"queryids", 1024, 0}} {
		b.Run(bench.name, func(b *testing.B) {
			recs := realistic(1<<20, 16, bench.chunk, 1e9, bench.fail)
			if bench.name == "queryids" {
				for i := range recs {
					binary.BigEndian.PutUint64(recs[i].QueryID[8:], uint64(i)+1)
				}
			}
			w, err := NewWriter(testOptions(b.TempDir()))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; {
				for i := 0; i < len(recs) && n < b.N; i += 1024 {
					k := min(1024, b.N-n)
					if err := w.Write(recs[i : i+k]); err != nil {
						b.Fatal(err)
					}
					n += k
				}
			}
			parts, err := w.Close()
			if err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			var size int64
			for _, p := range parts {
				size += p.SizeBytes
			}
			b.ReportMetric(float64(size)/float64(b.N), "disk-B/exec")
		})
	}
}
