package pgtest_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.M{M: m}) }

func TestNewDatabaseIsEmptyAndSeparate(t *testing.T) {
	server := pgtest.Start(t)
	first, second := server.NewDatabase(t), server.NewDatabase(t)
	if first == second {
		t.Fatal("two tests got the same database")
	}
	for _, dsn := range []string{first, second} {
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), "CREATE TABLE mine (id int)"); err != nil {
			t.Errorf("creating a table in a fresh database: %v", err)
		}
		conn.Close(t.Context())
	}
}
