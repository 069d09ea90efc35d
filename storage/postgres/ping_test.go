package postgres_test

import (
	"context"
	"github.com/loadstone-db/loadstone/engine/store"
	"sync"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/storage/postgres"
)

// TestPingHasItsOwnConnection lets every connection of the store wait for a lock.
func TestPingHasItsOwnConnection(t *testing.T) {
	t.Parallel()
	s, dsn := open(t)
	conn := connect(t, dsn)
	if _, err := conn.Exec(t.Context(), "BEGIN; LOCK TABLE audit_log"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 2 * postgres.MaxConnections {
		wg.Go(func() { _, _ = s.ListAudit(ctx, store.AuditFilter{Limit: 1}) })
	}
	defer wg.Wait()
	defer cancel()
	for waiting := 0; waiting < postgres.MaxConnections; time.Sleep(10 * time.Millisecond) {
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE NOT granted").Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	within, done := context.WithTimeout(t.Context(), 5*time.Second)
	defer done()
	if err := s.Ping(within); err != nil {
		t.Errorf("the store looks dead: %v", err)
	}
}
