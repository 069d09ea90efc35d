package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// TestStagedFaultsAreJudged: what happens to a real table, or to the program, in the last 14 s of a run is found in its
// verdict, with whose it was; a run to which nothing happens has no word of it.
func TestStagedFaultsAreJudged(t *testing.T) {
	if os.Getenv("LOADSTONE_WITNESSES") == "" {
		t.Skip("make check-witnesses: what it measures depends on the machine")
	}
	const measured, warmup = 14 * time.Second, 2 * time.Second
	dsn := pgtest.Start(t).NewDatabase(t)
	repeat := func(n int, every time.Duration, fault func()) {
		for range n {
			fault()
			time.Sleep(every)
		}
	}
	for name, c := range map[string]struct {
		// fault happens from the second second of the measurement on.
		fault func(t *testing.T, db *pgx.Conn, program *os.Process)
		cause string
		want  string
	}{
		"nothing": {fault: func(*testing.T, *pgx.Conn, *os.Process) {}},
		"table locks": {func(t *testing.T, db *pgx.Conn, _ *os.Process) {
			repeat(5, time.Second, func() {
				if _, err := db.Exec(t.Context(), "BEGIN; LOCK TABLE judged; SELECT pg_sleep(0.9); COMMIT"); err != nil {
					t.Error(err)
				}
			})
		}, engine.CauseFreezes, "the target did not answer"},
		"stops of the generator": {func(t *testing.T, _ *pgx.Conn, program *os.Process) {
			repeat(12, 600*time.Millisecond, func() {
				for _, s := range []os.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
					if err := program.Signal(s); err != nil {
						t.Error(err)
					}
					time.Sleep(250 * time.Millisecond)
				}
			})
		}, engine.CauseFreezes, "the generator itself stood still"},
		"a dropped table": {func(t *testing.T, db *pgx.Conn, _ *os.Process) {
			time.Sleep(measured - 4500*time.Millisecond - time.Second)
			if _, err := db.Exec(t.Context(), "DROP TABLE judged"); err != nil {
				t.Error(err)
			}
		}, engine.CauseFailing, "of the operations failed"},
	} {
		t.Run(name, func(t *testing.T) {
			db, err := pgx.Connect(t.Context(), dsn)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = db.Close(context.Background()) }()
			if _, err := db.Exec(t.Context(), `DROP TABLE IF EXISTS judged; CREATE TABLE judged (id int PRIMARY KEY, v text);
				INSERT INTO judged SELECT i, 'x' FROM generate_series(1, 1000) i`); err != nil {
				t.Fatal(err)
			}
			p := clitest.NewProgram(t)
			template := p.Write("run.yaml", fmt.Sprintf(`name: judged
target: {connection: {driver: postgres, dsn: %q}, adapter: postgres, table_name: judged}
workload:
  plugin: sql
  params: {statements: [{id: one, sql: "SELECT v, pg_sleep(0.002) FROM {table} WHERE id = :id", weight: 1,
    binds: [{name: id, generator: uniform, min: 1, max: 1000}]}]}
  load_mode: CONCURRENCY
  concurrent_connections: 8
  duration_seconds: %v
  warmup_seconds: %v
`, dsn, measured.Seconds(), warmup.Seconds()))
			out := p.Path("out.json")
			cmd := exec.CommandContext(
				t.Context(),
				clitest.ProgramFile(t),
				"run",
				template,
				"--data-dir",
				p.Path("data"),
				"--out",
				out,
			)
			cmd.Env = append(os.Environ(), clitest.ProgramEnv+"=1", "LOADSTONE_CALIBRATE=off")
			var text strings.Builder
			cmd.Stdout, cmd.Stderr = &text, &text
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			began := func() bool {
				var n int
				err := db.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(0.002)%' AND "+
					"state = 'active' AND pid <> pg_backend_pid()").Scan(&n)
				return err == nil && n > 2
			}
			clitest.Until(t, clitest.StartTimeout, began, func() string { return text.String() })
			time.Sleep(warmup + time.Second)
			c.fault(t, db, cmd.Process)
			_ = cmd.Wait() // a run whose operations failed has another code
			content, err := os.ReadFile(out)
			if err != nil {
				t.Fatalf("%v: %s", err, text.String())
			}
			var s engine.Summary
			if err := json.Unmarshal(content, &s); err != nil {
				t.Fatal(err)
			}
			found := slices.IndexFunc(s.ValidityDetail.Causes, func(v engine.ValidityCause) bool {
				return v.Cause == engine.CauseFreezes || v.Cause == engine.CauseFailing || v.Cause == engine.CauseErrors
			})
			if c.cause == engine.CauseFailing && found >= 0 && s.ValidityDetail.Causes[found].Cause == engine.CauseErrors {
				c.cause = engine.CauseErrors // errors are answered faster than the table was: they are most of all
			}
			t.Logf("%d operations, %s: %+v, %q", s.Operations, s.Validity, s.ValidityDetail.Causes, s.ValidityDetail.Notes)
			switch {
			case c.cause == "" && found >= 0:
				t.Errorf("nothing happened: %+v", s.ValidityDetail.Causes[found])
			case c.cause != "" && (found < 0 || s.ValidityDetail.Causes[found].Cause != c.cause ||
				!strings.Contains(s.ValidityDetail.Causes[found].Detail, c.want)):
				t.Errorf("%s: %+v", s.Validity, s.ValidityDetail.Causes)
			}
		})
	}
}
