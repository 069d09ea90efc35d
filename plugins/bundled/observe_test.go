package bundled_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/results/findings"
	"github.com/loadstone-db/loadstone/engine/run/observe"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/plugins/host/hosttest"
)

const observedRun = "0b5e77ed-0000-4000-8000-000000000000"

// watch observes a bench's server for a run of three connections.
type watch struct {
	*testing.T
	o    *observe.Observer
	mu   sync.Mutex
	log  []string
	kept []engine.Artifact
}

func (b *bench) observe(t *testing.T, dsn string, plan *engine.Plan) *watch {
	t.Helper()
	w := &watch{T: t}
	var routines sync.WaitGroup
	w.o = observe.Start(t.Context(), routines.Go, observe.Options{
		Deps: prepare.Deps{Plugins: b.host, Drivers: map[string]target.Driver{"postgres": postgres.NewDriver()},
			Connections: inline{}},
		RunID: observedRun, Plan: plan, Epoch: 3, Dir: t.TempDir() + "/observe",
		Scenario: engine.Scenario{Target: engine.Target{Connection: engine.ConnectionRef{Driver: "postgres", DSN: dsn},
			Adapter: "postgres", TableName: "orders"}},
		Keep: func(_ context.Context, a engine.Artifact, _ string) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.kept = append(w.kept, a)
			return nil
		},
		Log: func(_ engine.LogLevel, text string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.log = append(w.log, text)
		}})
	t.Cleanup(func() { w.o.Stop(); routines.Wait() })
	return w
}

// until asks for the view until it is as wanted.
func (w *watch) until(what string, wanted func(v engine.ServerView) bool) engine.ServerView {
	w.Helper()
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		v := w.o.View(observe.Measured{})
		if wanted(v) {
			return v
		}
		if time.Since(begin) > 30*time.Second {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.Fatalf("%s: %+v; the log: %q", what, v, w.log)
		}
	}
}

// TestAServerIsObserved: the bundled adapter's statements are approved and answered by a real server; a session that is
// idle in its transaction and holds a lock is named while the run goes on, and what was seen is kept.
func TestAServerIsObserved(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	b.exec(
		"CREATE TABLE orders (id int PRIMARY KEY, n int)",
		"INSERT INTO orders SELECT i, 0 FROM generate_series(1, 100) i",
		"ANALYZE orders",
	)
	plan, err := b.plan("orders", `{"weights":{"POINT_LOOKUP":1}}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	session := func(application string) *pgx.Conn {
		cfg, err := pgx.ParseConfig(b.dsn)
		if err != nil {
			t.Fatal(err)
		}
		cfg.RuntimeParams["application_name"] = application
		c, err := pgx.ConnectConfig(context.Background(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close(context.Background()) })
		return c
	}
	holder := session("billing")
	session("loadstone worker-0 0b5e77ed") // does nothing
	if _, err := holder.Exec(t.Context(), "BEGIN; UPDATE orders SET n = 424242 WHERE id = 1"); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	var waiting sync.WaitGroup
	for range 2 {
		c := session("loadstone worker-1 0b5e77ed")
		waiting.Go(func() { _, _ = c.Exec(ctx, "UPDATE orders SET n = 2 WHERE id = 1") })
	}
	defer func() { end(); waiting.Wait() }()
	w := b.observe(t, b.dsn, plan)
	v := w.until("the lock", func(v engine.ServerView) bool {
		return v.Observed && len(v.Blockers) > 0 && v.Seconds[0].Looks > 0
	})
	root := v.Blockers[0]
	if root.Application != "billing" || root.Waiting < 2 || root.State != engine.SessionInTransaction ||
		strings.Contains(root.Statement, "424242") || !strings.Contains(root.Statement, "UPDATE orders") {
		t.Errorf("%+v", v.Blockers)
	}
	var told time.Time
	v = w.until("the finding", func(v engine.ServerView) bool {
		if now := time.Now(); now.Sub(told) >= time.Second {
			told = now
			w.o.Client(now, 3, 0)
		}
		return len(v.Findings) > 0 && v.Findings[0].Rule == findings.RuleIdleInTransaction &&
			v.Findings[0].Level == engine.LevelFinding
	})
	if f := v.Findings[0]; f.Who == nil || f.Who.Application != "billing" ||
		!strings.Contains(f.Try, "pg_terminate_backend") {
		t.Errorf("%+v", f)
	}
	w.o.Stop()
	w.o.Wait(t.Context())
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.kept) != 1 || w.kept[0].Name != "server-00003-00001.parquet" || w.kept[0].RowCount < 10 || len(w.log) > 0 {
		t.Errorf("%+v, %q", w.kept, w.log)
	}
}

// TestWhoSeesNothingIsTold: a role without rights sees its own sessions, and is told what it does not see; a table type
// whose server is not observed says so.
func TestWhoSeesNothingIsTold(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	b.exec("CREATE TABLE orders (id int PRIMARY KEY, n int)", "INSERT INTO orders VALUES (1, 1)",
		"CREATE ROLE sightless", "GRANT SELECT ON orders TO sightless")
	t.Cleanup(func() { b.exec("DROP OWNED BY sightless", "DROP ROLE sightless") })
	plan, err := b.plan("orders", `{"weights":{"POINT_LOOKUP":1}}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := b.observe(t, b.dsn+" role=sightless", plan)
	v := w.until("a look", func(v engine.ServerView) bool { return v.Observed })
	if text := fmt.Sprint(
		v.Missing,
	); !strings.Contains(text, "sightless") ||
		!strings.Contains(text, "pg_read_all_stats") {
		t.Errorf("%v", v.Missing)
	}
}

// TestAServerThatGoesAwayIsSeenAgain: an observer whose connection is ended says so once, and looks again.
func TestAServerThatGoesAwayIsSeenAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	b.exec("CREATE TABLE orders (id int PRIMARY KEY, n int)", "INSERT INTO orders VALUES (1, 1)")
	plan, err := b.plan("orders", `{"weights":{"POINT_LOOKUP":1}}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := b.observe(t, b.dsn, plan)
	looks := func(v engine.ServerView) (n int) {
		for _, s := range v.Seconds {
			n += s.Looks
		}
		return n
	}
	w.until("a look", func(v engine.ServerView) bool { return looks(v) > 2 })
	b.exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'loadstone observer' " +
		"AND datname = current_database()")
	v := w.until("the loss", func(v engine.ServerView) bool { return v.Reason != "" })
	before := looks(v)
	w.until("looks after it", func(v engine.ServerView) bool { return looks(v) > before+2 && v.Reason == "" })
}

// TestADeniedViewIsTold: on a real server a view that the role may not read costs its own counters only, and is named;
// what the extension of statements offers is asked within what the adapter may read.
func TestADeniedViewIsTold(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	b.exec("CREATE TABLE orders (id int PRIMARY KEY, n int)", "INSERT INTO orders VALUES (1, 1)",
		"CREATE EXTENSION pg_stat_statements", "CREATE ROLE walless", "GRANT SELECT ON orders TO walless",
		"REVOKE SELECT ON pg_catalog.pg_stat_wal FROM PUBLIC")
	t.Cleanup(func() { b.exec("DROP OWNED BY walless", "DROP ROLE walless") })
	plan, err := b.plan("orders", `{"weights":{"POINT_LOOKUP":1}}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := b.observe(t, b.dsn+" role=walless", plan)
	v := w.until("what is refused", func(v engine.ServerView) bool {
		return strings.Contains(fmt.Sprint(v.Missing), "statement log: permission denied for view pg_stat_wal")
	})
	if text := fmt.Sprint(v.Missing); !v.Observed || v.Reason != "" || strings.Contains(text, "statement database") ||
		strings.Contains(text, "statement second") {
		t.Errorf("%q, %q", text, v.Reason)
	}
}
