package histogram_test

import (
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine/base/histogram"
)

// Each connection records into a histogram of its own; merging them is adding counts,
// so the order does not matter.
func Example() {
	a, b := histogram.New(), histogram.New()
	for ms := range int64(50) {
		a.Record((ms + 1) * int64(time.Millisecond))
		b.Record((ms + 51) * int64(time.Millisecond))
	}
	a.Merge(b)
	fmt.Println(a.Count(), "values")
	for _, q := range []float64{0.5, 0.95, 0.99} {
		fmt.Printf("P%.0f is about %.0f ms\n", q*100, a.Quantile(q)/1e6)
	}
	// Output:
	// 100 values
	// P50 is about 50 ms
	// P95 is about 95 ms
	// P99 is about 99 ms
}
