package protocol_test

import (
	"slices"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// TestRunWorkersReportOneAfterTheOther: the first one after a second, and however many there are, in no part of the
// second many more than in another.
func TestRunWorkersReportOneAfterTheOther(t *testing.T) {
	if d := protocol.FirstReportDelay(0); d != time.Second {
		t.Errorf("the only one reports after %v", d)
	}
	for _, n := range []int{2, 3, 10, 100, 1000} {
		at := make([]time.Duration, n)
		for i := range at {
			at[i] = protocol.FirstReportDelay(i)
			if at[i] <= 0 || at[i] > time.Second {
				t.Fatalf("%d of %d reports after %v", i, n, at[i])
			}
		}
		slices.Sort(at)
		widest := at[0] + time.Second - at[n-1]
		for i := range n - 1 {
			widest = max(widest, at[i+1]-at[i])
		}
		if widest > 2*time.Second/time.Duration(n) {
			t.Errorf("of %d nobody reports for %v", n, widest)
		}
	}
}
