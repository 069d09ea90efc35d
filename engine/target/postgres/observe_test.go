package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

func openObserver(t *testing.T, dsn string, limit time.Duration) target.Observer {
	t.Helper()
	db, err := postgres.NewDriver().Open(target.Config{DSN: secret.New(dsn), ApplicationName: "loadstone observer"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	o, err := db.(target.Observable).OpenObserver(t.Context(), limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close() })
	return o
}

// TestObserverOnlyLooks: an observer's session writes nothing, is in no transaction, prepares a statement once, and ends
// what takes too long; what is too large costs it the connection, and nothing else.
func TestObserverOnlyLooks(t *testing.T) {
	dsn := pgtest.Start(t).NewDatabase(t)
	o := openObserver(t, dsn, 300*time.Millisecond)
	const state = "SELECT current_setting('default_transaction_read_only') AS read_only, current_setting('statement_timeout') AS " +
		"timeout, (SELECT count(*) FROM pg_prepared_statements) AS prepared, now() AS at"
	first, err := o.Read(t.Context(), state)
	if err != nil {
		t.Fatal(err)
	}
	second, err := o.Read(t.Context(), state)
	if err != nil {
		t.Fatal(err)
	}
	row := second.Rows[0]
	if row[0] != "on" || row[1] != "300ms" || row[2] != int64(1) {
		t.Errorf("%v", row)
	}
	if first.Rows[0][3] == row[3] {
		t.Error("both are in one transaction")
	}
	for _, sql := range []string{"CREATE TABLE x (i int)", "SELECT pg_sleep(5)", "SELECT nothing"} {
		begin := time.Now()
		if _, err := o.Read(t.Context(), sql); err == nil || engine.AsError(err).Code == engine.CodeInternal {
			t.Errorf("%s is executed, or the error is not for users: %v", sql, err)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%s took %v", sql, took)
		}
		if o.Broken() {
			t.Fatalf("%s cost the connection", sql)
		}
	}
	if _, err := o.Read(
		t.Context(),
		"SELECT repeat('x', 1000), generate_series(1, 1000000)",
	); !errors.Is(
		err,
		target.ErrTooLarge,
	) ||
		!o.Broken() {
		t.Errorf("%v", err)
	}
}

// TestRunsMarkTheirSessions: the connections of a run carry the beginning of its id, also after a name of the connection.
func TestRunsMarkTheirSessions(t *testing.T) {
	dsn := pgtest.Start(t).NewDatabase(t)
	for named, want := range map[string]string{"": "loadstone w-1 0a1b2c3d", "billing": "billing 0a1b2c3d",
		strings.Repeat("n", 63): strings.Repeat("n", 54) + " 0a1b2c3d"} {
		at := dsn
		if named != "" {
			at += map[bool]string{true: "&", false: " "}[strings.Contains(dsn, "?")] + "application_name=" + named
		}
		db, err := postgres.NewDriver().Open(target.Config{DSN: secret.New(at), ApplicationName: "loadstone w-1",
			RunID: "0a1b2c3d-0000-4000-8000-000000000000"})
		if err != nil {
			t.Fatal(err)
		}
		rs, err := db.Query(context.Background(), "SELECT current_setting('application_name')")
		_ = db.Close()
		if err != nil || rs.Rows[0][0] != want {
			t.Errorf("%q: %v, %v", named, rs, err)
		}
	}
}
