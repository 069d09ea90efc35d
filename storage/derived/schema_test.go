package derived_test

import (
	"testing"

	"github.com/loadstone-db/loadstone/storage/derived"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// TestAServerStartsBesideAWorkerThatStandsStill: whoever opens the results database waits for nobody who holds a
// transaction there, once its schema is up to date.
func TestAServerStartsBesideAWorkerThatStandsStill(t *testing.T) {
	_, owner, _ := open(t)
	tx, err := owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	// A worker reads and writes these, and has the functions planned.
	if _, err := tx.Exec(t.Context(),
		"LOCK TABLE rollup.runs, rollup.run_seconds, staging.fences IN ROW EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	ownerDSN, readerDSN := pgtest.Start(t).Results(t)
	for range 3 {
		d, err := derived.Open(t.Context(), ownerDSN+"&options=-c%20statement_timeout%3D20s", readerDSN)
		if err != nil {
			t.Fatal(err)
		}
		d.Close()
	}
}
