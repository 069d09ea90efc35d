package run_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/results/enrich"
	"github.com/loadstone-db/loadstone/engine/results/record"
	enginerun "github.com/loadstone-db/loadstone/engine/run"
	"github.com/loadstone-db/loadstone/engine/stream/rules"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/engine/target/targettest"
	"github.com/loadstone-db/loadstone/engine/worker"
	"github.com/loadstone-db/loadstone/plugins/host"
	"github.com/loadstone-db/loadstone/plugins/host/hosttest"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	storagepostgres "github.com/loadstone-db/loadstone/storage/postgres"
	"github.com/loadstone-db/loadstone/storage/postgres/postgrestest"
	"github.com/loadstone-db/loadstone/storage/results"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(closer{pgtest.M{M: m}}, targettest.SnowflakeDriverLeak())
}

// closer frees the plugin host that all tests share.
type closer struct{ m pgtest.M }

func (c closer) Run() int {
	defer hosttest.Close()
	return c.m.Run()
}

// plugins returns a host with the bundled plugins, each made ready once, when a test asks for it.
func plugins(t *testing.T) *host.Host { return hosttest.Enlisted(t) }

// fixture is a server with one in-process node on real Postgres databases.
type fixture struct {
	t       *testing.T
	control string // DSN of the control store
	target  string // DSN of the target
	dir     string
	store   *storagepostgres.Store
	results *results.Results
	// used by start; a test may replace them before
	plugins plugin.Host
	driver  target.Driver
	// enrichment is how a history is asked; zero is the default.
	enrichment enrich.Policy
	mostLive   int
	owner      string
	capacity   int
	pollEvery  time.Duration
	clock      func() time.Time
	rules      rules.StartFunc
	wrap       func(enginerun.ControlStore) enginerun.ControlStore

	svc  *enginerun.Service
	stop func()
	kill func()
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	server := pgtest.Start(t)
	f := &fixture{t: t, target: server.NewDatabase(t), dir: t.TempDir(),
		plugins: plugins(t), driver: postgres.NewDriver(),
		wrap: func(s enginerun.ControlStore) enginerun.ControlStore { return s }}
	f.store, f.control = postgrestest.Open(t, postgres.NewDriver())
	var err error
	if f.results, err = results.Open(filepath.Join(f.dir, "results")); err != nil {
		t.Fatal(err)
	}
	return f
}

func testLog() zerolog.Logger {
	if os.Getenv("LOADSTONE_TEST_LOG") != "" {
		return zerolog.New(zerolog.ConsoleWriter{Out: os.Stderr, TimeFormat: "05.000"}).With().Timestamp().Logger()
	}
	return zerolog.Nop()
}

// start runs a server until stop or kill, at the latest until the test ends.
func (f *fixture) start() *fixture {
	f.t.Helper()
	link := protocol.NewMemory()
	drivers := map[string]target.Driver{f.driver.Name(): f.driver}
	node := worker.NewNode(worker.Options{NodeID: "local", Sample: sampleMachine(), Plugins: f.plugins, Drivers: drivers,
		SpoolDir: filepath.Join(f.dir, "spool"), Capacity: f.capacity, Log: testLog()})
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- node.Listen(ctx, link) }()
	svc := enginerun.New(enginerun.Options{Store: f.wrap(f.store), Results: f.results, Plugins: f.plugins,
		Drivers: drivers,
		Nodes:   []protocol.Dialer{link}, Log: testLog(), Version: "test", TempDir: filepath.Join(f.dir, "scratch"),
		Enrichment: f.enrichment, PollInterval: f.pollEvery, Clock: f.clock, MaxLivePerUser: f.mostLive, Owner: f.owner,
		Rules: f.rules})
	if err := svc.Open(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	var once sync.Once
	end := func(limit time.Duration) {
		once.Do(func() {
			stopping, done := context.WithTimeout(context.Background(), limit)
			defer done()
			err := svc.Close(stopping)
			if err != nil && limit > time.Second {
				f.t.Errorf("closing: %v", err)
			}
			cancel()
			if err := <-served; err != nil {
				f.t.Errorf("serving: %v", err)
			}
			node.Close()
		})
	}
	f.svc, f.stop = svc, func() { end(20 * time.Second) }
	f.kill = func() {
		once.Do(func() {
			svc.Kill()
			cancel()
			<-served
		})
	}
	f.t.Cleanup(f.stop)
	return f
}

// scenario is a short run on the fixture's target; change adapts it.
func (f *fixture) scenario(change func(*engine.Scenario)) engine.Scenario {
	sc := engine.Scenario{Name: f.t.Name(),
		Target: engine.Target{Connection: engine.ConnectionRef{Driver: "postgres", DSN: f.target}, Adapter: "postgres",
			TableName: "orders",
			Prepare:   &engine.Prepare{Rows: 2000, IfExists: engine.IfExistsUse}},
		Workload: engine.Workload{Plugin: "mix", Params: json.RawMessage(`{"weights": {"POINT_LOOKUP": 80, "INSERT": 20}}`),
			LoadMode: engine.LoadConcurrency, ConcurrentConnections: 4,
			DurationSeconds: 1.2, WarmupSeconds: 0.4, Seed: 42, Repeat: 1},
		Scaling: engine.Scaling{Mode: engine.ScalingFixed, WorkerCount: 2, PerWorkerCapacity: 8},
	}
	if change != nil {
		change(&sc)
	}
	// As fast as it goes, four connections take all of a processor, and no test asks for that.
	if sc.Workload.LoadMode == engine.LoadConcurrency && sc.Workload.ThinkTimeMs == 0 {
		sc.Workload.ThinkTimeMs = 5
	}
	return sc
}

// run creates and starts a run.
func (f *fixture) run(change func(*engine.Scenario)) engine.Run {
	f.t.Helper()
	created, err := f.svc.Create(f.t.Context(), f.scenario(change), engine.Actor{Name: "tester"})
	if err != nil {
		f.t.Fatalf("creating: %v", err)
	}
	run, err := f.svc.Start(f.t.Context(), created.RunID, "tester")
	if err != nil {
		f.t.Fatalf("starting: %v", err)
	}
	if run.Status != engine.StatusRunning {
		f.t.Fatalf("started as %s", run.Status)
	}
	return run
}

// wait waits for the figures.
func (f *fixture) wait(runID string) *engine.Summary {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 2*time.Minute)
	defer cancel()
	sum, err := f.svc.Wait(ctx, runID)
	if err != nil {
		f.t.Fatalf("waiting: %v\n%s", err, f.logs(runID))
	}
	return sum
}

func (f *fixture) detail(runID string) engine.RunDetail {
	f.t.Helper()
	d, err := f.svc.Detail(f.t.Context(), runID)
	if err != nil {
		f.t.Fatal(err)
	}
	return d
}

func (f *fixture) logs(runID string) string {
	lines, _ := f.store.Logs(f.t.Context(), runID, 0, "", 1000)
	text := ""
	for _, l := range lines {
		text += fmt.Sprintf("%d %s %s %s\n", l.Seq, l.Level, l.WorkerID, l.Message)
	}
	return text
}

// until waits for a payload that meets the condition.
func (f *fixture) until(runID string, met func(*engine.LiveState) bool) *engine.LiveState {
	f.t.Helper()
	updates, cancel, err := f.svc.Subscribe(runID)
	if err != nil {
		f.t.Fatal(err)
	}
	defer cancel()
	limit := time.After(2 * time.Minute)
	var last *engine.LiveState
	for {
		select {
		case p, open := <-updates:
			if !open {
				f.t.Fatalf("the run ended as %+v before it met the condition\n%s", last, f.logs(runID))
			}
			if last = p; met(p) {
				return p
			}
		case <-limit:
			f.t.Fatalf("not met; last payload %+v", last)
		}
	}
}

// settled waits until nothing is left to do for a run that is not live.
func (f *fixture) settled(runID string) engine.RunDetail {
	f.t.Helper()
	for range 200 {
		if d := f.detail(runID); d.Status.Terminal() && d.Phase == engine.PhaseNone {
			return d
		}
		time.Sleep(100 * time.Millisecond)
	}
	f.t.Fatalf("run %s does not settle\n%s", runID, f.logs(runID))
	return engine.RunDetail{}
}

func phase(want engine.Phase) func(*engine.LiveState) bool {
	return func(p *engine.LiveState) bool { return p.Phase != nil && *p.Phase == want }
}

// sql executes on the target.
func (f *fixture) sql(statements ...string) {
	f.t.Helper()
	conn, err := pgx.Connect(f.t.Context(), f.target)
	if err != nil {
		f.t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, s := range statements {
		if _, err := conn.Exec(f.t.Context(), s); err != nil {
			f.t.Fatalf("%s: %v", s, err)
		}
	}
}

// has reports whether the table exists on the target.
func (f *fixture) has(table string) bool {
	f.t.Helper()
	conn, err := pgx.Connect(f.t.Context(), f.target)
	if err != nil {
		f.t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var there bool
	if err := conn.QueryRow(f.t.Context(), "SELECT to_regclass($1) IS NOT NULL", table).Scan(&there); err != nil {
		f.t.Fatal(err)
	}
	return there
}

// partsOf counts the parts of executions; what was seen of the server comes beside them, when there was time for a look.
func partsOf(d engine.RunDetail) (n int) {
	for _, a := range d.Artifacts {
		if a.Kind == record.KindExecutions {
			n++
		}
	}
	return n
}
