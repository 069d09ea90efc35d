package pgtest_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// TestClustersAreCopies: what is made in one is in no other, and Postgres tells those of Start, StartCrashable and
// StartAnother apart.
func TestClustersAreCopies(t *testing.T) {
	ask := func(dsn, sql string) (answer string) {
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		if err := conn.QueryRow(t.Context(), sql).Scan(&answer); err != nil {
			t.Fatal(err)
		}
		return answer
	}
	seen := map[string]bool{}
	for _, dsn := range []string{pgtest.Start(t).DSN("postgres"), pgtest.StartCrashable(t, nil).DSN("postgres"),
		pgtest.StartAnother(t, nil).DSN("postgres")} {
		seen[ask(dsn, "SELECT system_identifier::text FROM pg_control_system()")] = true
		ask(dsn, "SELECT lo_create(4711)::text")
	}
	if len(seen) != 3 {
		t.Errorf("three clusters have the system identifiers %v", seen)
	}
	if n := ask(
		pgtest.StartCrashable(t, nil).DSN("postgres"),
		"SELECT count(*)::text FROM pg_largeobject_metadata",
	); n != "0" {
		t.Errorf("a new cluster has %s objects of another", n)
	}
}
