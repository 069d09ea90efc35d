package pgtest_test

import (
	"context"
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

// TestFilledDatabasesAreCopies: what one test does to its copy is in no other, and the model is made once.
func TestFilledDatabasesAreCopies(t *testing.T) {
	server, filled := pgtest.Start(t), 0
	run := func(dsn, sql string) error {
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			return err
		}
		defer conn.Close(t.Context())
		_, err = conn.Exec(t.Context(), sql)
		return err
	}
	fill := func(_ context.Context, dsn string) error {
		filled++
		return run(dsn, "CREATE TABLE theirs (id int PRIMARY KEY)")
	}
	for range 3 {
		if err := run(server.NewFilled(t, fill), "INSERT INTO theirs VALUES (1)"); err != nil {
			t.Errorf("a copy: %v", err)
		}
	}
	if filled != 1 {
		t.Errorf("the model was made %d times", filled)
	}
}
