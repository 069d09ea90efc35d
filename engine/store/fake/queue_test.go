package fake_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/engine/store/fake"
	"github.com/loadstone-db/loadstone/engine/store/storetest"
)

// TestARunWithoutNodesIsLetBy: all runs age alike here, and those that have nodes are said to have some.
func TestARunWithoutNodesIsLetBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fake.New()
		storetest.QueueBypass(t, s, func(_ string, by time.Duration) {
			time.Sleep(by)
			if err := s.MarkFeasible(t.Context(), []string{"r1", "r2", "r3"}); err != nil {
				t.Fatal(err)
			}
		})
	})
}
