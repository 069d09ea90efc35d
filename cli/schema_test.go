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
	"github.com/loadstone-db/loadstone/storage/postgres/schema"
)

// TestAStartLooksAtTheSchema starts on stores whose version rows are current.
func TestAStartLooksAtTheSchema(t *testing.T) {
	server := pgtest.Start(t)
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
		control := server.NewDatabase(t)
		if err := schema.Apply(t.Context(), control); err != nil {
			t.Fatal(err)
		}
		change(control, c.sql)
		code, says := start(control)
		if code != terminal.ExitUsage || !strings.Contains(says, c.says) ||
			!strings.Contains(says, "loadstone schema apply") {
			t.Errorf("%s: exit %d, %s", c.sql, code, says)
		}
	}
}
