package series_test

import (
	"testing"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/loadstone-db/loadstone/engine/analytics/promql/series"
	"github.com/loadstone-db/loadstone/engine/analytics/promqltest"
)

// BenchmarkRead reads the series of a run of an hour, as a node does that does not have them in memory.
func BenchmarkRead(b *testing.B) {
	runs, err := promqltest.HourRuns(1)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(runs[0].Content)))
	b.ReportAllocs()
	for b.Loop() {
		f, err := runs[0].Open()
		if err != nil {
			b.Fatal(err)
		}
		s, err := series.Read(f, labels.FromStrings("run", "r-0"))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(f.Rows()), "rows")
		b.ReportMetric(float64(s.Bytes()), "bytes/set")
		if err := f.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
