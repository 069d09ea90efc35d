package cli

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/postgres/postgrestest"
)

// TestAStartLooksAtTheSchema starts on stores whose version rows are current.
func TestAStartLooksAtTheSchema(t *testing.T) {
	start := func(control string) (code int, says string) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var out bytes.Buffer
		args := []string{"run", "../examples/first-run.yaml", "--database-url", control, "--data-dir",
			filepath.Join(t.TempDir(), "data")}
		if code = run(ctx, cancel, args, &out, &out); code == terminal.ExitPassed {
			t.Fatalf("it ran:\n%s", out.String())
		}
		return code, out.String()
	}
	change := func(dsn, sql string) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(context.Background()) }()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ sql, says string }{
		{"ALTER TABLE plugins DROP COLUMN inspection", "the column inspection of plugins is missing"},
		{"DROP TABLE test_logs", "the table test_logs is missing"},
		{"ALTER TABLE run_status DISABLE TRIGGER guard_run_status", "the trigger guard_run_status of run_status is"},
	} {
		control := postgrestest.NewControl(t)
		change(control, c.sql)
		code, says := start(control)
		if code != terminal.ExitUsage || !strings.Contains(says, c.says) ||
			!strings.Contains(says, "loadstone schema apply") {
			t.Errorf("%s: exit %d, %s", c.sql, code, says)
		}
	}
}

// TestTheReaderOfAResultsDatabaseIsMade: the command says what an administrator has to do where it may not do it
// itself, does it where it may, and twice.
func TestTheReaderOfAResultsDatabaseIsMade(t *testing.T) {
	t.Parallel()
	server := pgtest.StartCrashable(t, nil)
	as := func(role string) string {
		return strings.Replace(server.DSN("kept"), "user=loadstone", "user="+role, 1)
	}
	conn, err := pgx.Connect(t.Context(), server.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for _, sql := range []string{"CREATE ROLE keeper LOGIN", "CREATE ROLE reader LOGIN CREATEDB",
		"CREATE DATABASE kept OWNER keeper"} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	apply := func(more ...string) (int, string) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var out bytes.Buffer
		code := run(ctx, cancel, append([]string{"schema", "apply", "--results", "--results-database-url", as("keeper"),
			"--results-reader-url", as("reader")}, more...), &out, &out)
		return code, strings.Join(strings.Fields(out.String()), " ")
	}
	code, says := apply()
	if code == terminal.ExitPassed || !strings.Contains(says, "ALTER ROLE \"reader\" NOCREATEDB;") ||
		!strings.Contains(says, "may make databases") {
		t.Errorf("as the owner: exit %d, %s", code, says)
	}
	for range 2 {
		if code, says := apply("--results-admin-url", as("loadstone")); code != terminal.ExitPassed ||
			!strings.Contains(
				says,
				"The schema of the results database is current",
			) || strings.Contains(says, "need another role") {
			t.Errorf("as a superuser: exit %d, %s", code, says)
		}
	}
	if code, says := apply(); code != terminal.ExitPassed || strings.Contains(says, "need another role") {
		t.Errorf("as the owner, after that: exit %d, %s", code, says)
	}
}
