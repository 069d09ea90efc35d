// Package postgrestest gives tests a control store on a real Postgres.
package postgrestest

import (
	"path/filepath"
	"testing"

	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/keyring"
	"github.com/loadstone-db/loadstone/storage/postgres"
	"github.com/loadstone-db/loadstone/storage/postgres/schema"
)

// NewControl makes a database of the test's own with the schema, a copy of one that has it, and returns its DSN; it is
// dropped when the test ends.
func NewControl(t testing.TB) (dsn string) {
	t.Helper()
	return pgtest.Start(t).NewFilled(t, schema.Apply)
}

// Open returns a store on a database of NewControl, and the database's DSN. The package's TestMain stops the cluster: see pgtest.Main.
func Open(t testing.TB, drivers ...target.Driver) (s *postgres.Store, dsn string) {
	t.Helper()
	dsn = NewControl(t)
	keys, err := keyring.Open(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	if s, err = postgres.Open(t.Context(), dsn, keys, drivers...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, dsn
}
