package schema_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/sql"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/postgres"
	"github.com/loadstone-db/loadstone/storage/postgres/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.M{M: m}) }

func connect(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func exec(t testing.TB, conn *pgx.Conn, text string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), text, args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

func TestSchemaIsCheckedAndApplied(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Start(t).NewDatabase(t)
	says := func(want string) {
		t.Helper()
		err := schema.Check(t.Context(), connect(t, dsn))
		if want == "" {
			if err != nil {
				t.Errorf("current schema: %v", err)
			}
			return
		}
		if !engine.HasCode(err, engine.CodeUnavailable) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	says("has no Loadstone schema")
	says("loadstone schema apply --database-url")
	if _, err := postgres.Open(t.Context(), dsn, nil); !engine.HasCode(err, engine.CodeUnavailable) {
		t.Errorf("opening a store without a schema: %v", err)
	}
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			if err := schema.Apply(t.Context(), dsn); err != nil {
				t.Errorf("applying at the same time: %v", err)
			}
		})
	}
	wait.Wait()
	says("")
	conn := connect(t, dsn)
	exec(t, conn, "INSERT INTO users (user_id, user_name, role) VALUES ('u', 'u', 'admin')")
	exec(t, conn, "UPDATE schema_version SET hash = 'another'")
	says("older than this binary")
	if err := schema.Apply(t.Context(), dsn); err != nil {
		t.Errorf("applying over an existing schema: %v", err)
	}
	says("")
	var kept int
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM users").Scan(&kept); err != nil || kept != 1 {
		t.Errorf("rows after applying again: %d, %v", kept, err)
	}
	exec(t, conn, "UPDATE schema_version SET version = version + 1")
	says("newer than this binary")
	if err := schema.Apply(t.Context(), dsn); err == nil || !strings.Contains(err.Error(), "newer") {
		t.Errorf("a newer schema was overwritten: %v", err)
	}
	exec(t, conn, "DELETE FROM schema_version")
	says("has no Loadstone schema")
}

func TestPrintedSchemaApplies(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Start(t).NewDatabase(t)
	exec(t, connect(t, dsn), sql.Print())
	if err := schema.Check(t.Context(), connect(t, dsn)); err != nil {
		t.Error(err)
	}
}
