package postgres_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
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

// TestAStandbyIsNoControlStore: it answers, and takes no writes.
func TestAStandbyIsNoControlStore(t *testing.T) {
	t.Parallel()
	s, dsn := open(t)
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	conn := connect(t, dsn)
	var name string
	if err := conn.QueryRow(t.Context(), "SELECT current_database()").Scan(&name); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "ALTER DATABASE "+pgx.Identifier{name}.Sanitize()+
		" SET default_transaction_read_only = on"); err != nil {
		t.Fatal(err)
	}
	// Its connections begin anew, as after a failover.
	if _, err := conn.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "+
		"WHERE datname = $1 AND pid <> pg_backend_pid()", name); err != nil {
		t.Fatal(err)
	}
	var err error
	for range 5 {
		if err = s.Ping(t.Context()); err != nil && strings.Contains(err.Error(), "takes no writes") {
			break
		}
	}
	if !engine.HasCode(err, engine.CodeUnavailable) || !strings.Contains(err.Error(), "takes no writes") {
		t.Errorf("a standby: %v", err)
	}
}
