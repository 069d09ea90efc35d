package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// whyCase is a cause that is staged by hand, and the rule that has to find it first; "" is a healthy run, or one whose
// cause is not in the server.
type whyCase struct {
	name, rule string
	// setup makes the table, besides staged (id, n, v) with 1 000 rows; params are the statements.
	setup, params string
	connections   int
	// cause happens while the run is measured, until ctx ends; nil is what params do by themselves.
	cause func(ctx context.Context, s *whyStage)
	// delay is what the way to the server takes.
	delay time.Duration
	// login is a role that sees nothing of others.
	login bool
	// first is the rule of the first finding or note of a healthy run.
	first string
}

type whyStage struct {
	t   *testing.T
	dsn string
}

// session executes statements one after the other on a connection of its own, which lasts until ctx ends.
func (s *whyStage) session(ctx context.Context, application string, statements ...string) {
	cfg, err := pgx.ParseConfig(s.dsn)
	if err != nil {
		s.t.Error(err)
		return
	}
	cfg.RuntimeParams["application_name"] = application
	c, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		if ctx.Err() == nil {
			s.t.Error(err)
		}
		return
	}
	defer func() { _ = c.Close(context.Background()) }()
	for _, sql := range statements {
		if _, err := c.Exec(ctx, sql); err != nil && ctx.Err() == nil {
			s.t.Errorf("%s: %v", sql, err)
		}
	}
	<-ctx.Done()
}

// set changes settings of the server until ctx ends.
func (s *whyStage) set(ctx context.Context, settings ...string) {
	c, err := pgx.Connect(ctx, s.dsn)
	if err != nil {
		s.t.Error(err)
		return
	}
	defer func() { _ = c.Close(context.Background()) }()
	each := func(verb, suffix string) {
		for _, name := range settings {
			name, value, _ := strings.Cut(name, "=")
			if suffix != "" {
				value = ""
			} else {
				value = " = " + value
			}
			if _, err := c.Exec(context.Background(), "ALTER SYSTEM "+verb+" "+name+value); err != nil {
				s.t.Error(err)
			}
		}
		_, _ = c.Exec(context.Background(), "SELECT pg_reload_conf()")
	}
	each("SET", "")
	<-ctx.Done()
	each("RESET", "reset")
}

const (
	whyUpdate = `statements: [{id: change, sql: "UPDATE {table} SET n = n + 1 WHERE id = :id", weight: 1,
    binds: [{name: id, generator: uniform, min: 1, max: 1000}]}]`
	whyRead = `statements: [{id: read, sql: "SELECT v FROM {table} WHERE id = :id", weight: 1,
    binds: [{name: id, generator: uniform, min: 1, max: 1000}]}]`
)

var whyCases = []whyCase{
	{name: "a session is idle in its transaction", rule: "idle_in_transaction", params: whyUpdate,
		cause: func(ctx context.Context, s *whyStage) {
			s.session(ctx, "billing", "BEGIN", "UPDATE staged SET n = 0 WHERE id <= 600")
		}},
	{name: "another transaction works for long", rule: "foreign_lock", params: whyUpdate,
		cause: func(ctx context.Context, s *whyStage) {
			s.session(ctx, "nightly", "BEGIN", "UPDATE staged SET n = 0 WHERE id <= 600", "SELECT pg_sleep(60)")
		}},
	{name: "a change of the table waits, and all behind it", rule: "ddl_queue", params: whyRead,
		cause: func(ctx context.Context, s *whyStage) {
			var all sync.WaitGroup
			all.Go(func() { s.session(ctx, "reporting", "BEGIN", "SELECT count(*) FROM staged") })
			time.Sleep(200 * time.Millisecond)
			all.Go(func() { s.session(ctx, "migration", "ALTER TABLE staged ADD COLUMN more int") })
			all.Wait()
		}},
	{
		name:   "one row is changed by all",
		rule:   "hot_row",
		params: `statements: [{id: count, sql: "UPDATE {table} SET n = n + 1 WHERE id = 1 RETURNING pg_sleep(0.002)", weight: 1}]`,
	},
	{name: "COMMIT waits for the log", rule: "commit_bound", params: whyUpdate,
		cause: func(ctx context.Context, s *whyStage) { s.set(ctx, "commit_delay=50000", "commit_siblings=1") }},
	{name: "COMMIT waits for a replica", rule: "sync_replica", params: whyUpdate,
		cause: func(ctx context.Context, s *whyStage) { s.set(ctx, "synchronous_standby_names='nobody'") }},
	{
		name:  "an index is missing",
		rule:  "missing_index",
		setup: "INSERT INTO staged SELECT i, i % 5000, 'x' FROM generate_series(1001, 150000) i; ANALYZE staged",
		params: `statements: [{id: by_part, sql: "SELECT id FROM {table} WHERE n = :part", weight: 1,
    binds: [{name: part, generator: uniform, min: 1, max: 4999}]}]`,
	},
	{name: "a sort does not fit", rule: "spill", connections: 2,
		setup:  "CREATE TABLE large AS SELECT i AS id, md5(i::text) AS v FROM generate_series(1, 60000) i; ANALYZE large",
		params: `statements: [{id: sorted, sql: "SELECT v FROM large ORDER BY v, id OFFSET 59990", weight: 1}]`},

	{name: "healthy, reading", params: whyRead, connections: 2},
	{name: "healthy, writing", params: whyUpdate, connections: 2},
	{name: "the network is slow", params: whyRead, connections: 4, delay: 5 * time.Millisecond, first: "nothing"},
}

// TestStagedCausesAreFound: a cause that is staged on a real server is the first finding of its run, and healthy runs have
// none.
func TestStagedCausesAreFound(t *testing.T) {
	if os.Getenv("LOADSTONE_WHY") == "" {
		t.Skip("make check-why: it takes minutes")
	}
	pg := pgtest.StartCrashable(t, map[string]string{"fsync": "on",
		"synchronous_commit": "on", "full_page_writes": "on", "max_connections": "100", "work_mem": "64kB",
		"autovacuum": "off",
		"wal_level":  "replica", "max_wal_senders": "2"})
	dsn := pg.DSN("postgres")
	found, staged, alarms := 0, 0, 0
	var table strings.Builder
	for _, c := range whyCases {
		t.Run(c.name, func(t *testing.T) {
			f := runWhy(t, c, dsn)
			var rules []string
			for _, one := range f.Findings {
				if one.Level == engine.LevelFinding {
					rules = append(rules, fmt.Sprintf("%s %.0f %%", one.Rule, 100**one.Share))
				}
			}
			first, remainder := "", 0.0
			if len(f.Findings) > 0 {
				first = f.Findings[0].Rule
			}
			if f.ServerTime != nil {
				remainder = f.ServerTime.RemainderPct
			}
			_, _ = fmt.Fprintf(&table, "%s | %s | %s | %s | %.1f %% not explained\n", c.name, cmp.Or(c.rule, "none"),
				strings.Join(rules, ", "), first, remainder)
			switch {
			case c.rule == "" && len(rules) > 0:
				alarms++
				t.Errorf("a false alarm: %v", rules)
			case c.first != "" && first != c.first:
				t.Errorf("%s comes first, and not %s", first, c.first)
			case c.rule != "":
				staged++
				if len(rules) == 0 || first != c.rule {
					t.Errorf("found %v: %+v", rules, f.Findings)
					return
				}
				found++
			}
		})
	}
	t.Logf("%d of %d causes are found first, %d false alarms\n%s", found, staged, alarms, table.String())
}

// runWhy carries a run to which a cause happens from its fifth second on.
func runWhy(t *testing.T, c whyCase, dsn string) engine.Figures {
	t.Helper()
	db, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close(context.Background()) }()
	for _, sql := range []string{"DROP TABLE IF EXISTS staged, large", "CREATE TABLE staged (id int PRIMARY KEY, n int, v text)",
		"INSERT INTO staged SELECT i, 0, 'x' FROM generate_series(1, 1000) i", c.setup, "CHECKPOINT"} {
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	way := newLine(t, dsn, c.delay).dsn
	if c.delay == 0 {
		way = dsn
	}
	if c.login {
		for _, sql := range []string{"DROP ROLE IF EXISTS blind", "CREATE ROLE blind LOGIN PASSWORD 'blind'",
			"GRANT SELECT ON staged TO blind", "GRANT USAGE ON SCHEMA public TO blind"} {
			if _, err := db.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		way = asBlind(t, dsn)
	}
	p := clitest.NewProgram(t)
	template := p.Write("run.yaml", fmt.Sprintf(`name: why
target: {connection: {driver: postgres, dsn: %q}, adapter: postgres, table_name: staged, allow_writes: true}
workload: {plugin: sql, params: {%s}, load_mode: CONCURRENCY, concurrent_connections: %d, duration_seconds: 14, warmup_seconds: 1}
`, way, c.params, cmp.Or(c.connections, 8)))
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
		_ = db.QueryRow(
			t.Context(),
			"SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'loadstone w%'",
		).Scan(
			&n,
		)
		return n > 1
	}
	clitest.Until(t, clitest.StartTimeout, began, text.String)
	if c.cause != nil {
		time.Sleep(5 * time.Second)
		ctx, end := context.WithTimeout(t.Context(), 5*time.Second)
		c.cause(ctx, &whyStage{t, dsn})
		end()
	}
	_ = cmd.Wait() // a run with errors has another code
	content, err := os.ReadFile(out)
	if err != nil {
		t.Fatalf("%v: %s", err, text.String())
	}
	var sum engine.Summary
	if err := json.Unmarshal(content, &sum); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d operations; %s", sum.Operations, text.String())
	return sum.Figures
}

// asBlind is the connection string of a role that sees nothing of others.
func asBlind(t *testing.T, dsn string) string {
	t.Helper()
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(
		"host=%s port=%d user=blind password=blind dbname=%s sslmode=disable",
		cfg.Host,
		cfg.Port,
		cfg.Database,
	)
}
