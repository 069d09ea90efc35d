package postgres_test

import (
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/store/storetest"
)

// TestARunWithoutNodesIsLetBy, as in memory.
func TestARunWithoutNodesIsLetBy(t *testing.T) {
	t.Parallel()
	s, dsn := open(t)
	db := connect(t, dsn)
	storetest.QueueBypass(t, s, func(runID string, by time.Duration) {
		if _, err := db.Exec(t.Context(), "UPDATE run_queue SET fitted_at = fitted_at - make_interval(secs => $2) "+
			"WHERE run_id = $1", runID, by.Seconds()); err != nil {
			t.Fatal(err)
		}
	})
}
