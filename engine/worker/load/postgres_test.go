package load_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/base/uring"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/engine/worker/load"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// sleeps makes every nth operation outlast the statement timeout.
type sleeps struct{ n, long int }

func (s *sleeps) Fill(b *plugin.Batch, _ int) error {
	b.Reset()
	s.n++
	v := plugin.Value{Type: engine.TypeF64, F: 0.001}
	if s.long > 0 && s.n%s.long == 0 {
		v.F = 30
	}
	b.Ops = append(b.Ops, plugin.Op{NArgs: 1})
	b.Args = append(b.Args, v)
	return nil
}
func (s *sleeps) Close() error { return nil }

// engines are the I/O engines that this system has; on others than Linux goroutines take the place of the first.
func engines() []engine.IOEngine {
	all := []engine.IOEngine{engine.IOEvents, engine.IOGoroutines}
	if uring.Probe() == nil {
		all = append(all, engine.IOUring)
	}
	return all
}

// onEach runs a test with each I/O engine.
func onEach(t *testing.T, test func(t *testing.T, io engine.IOEngine)) {
	for _, io := range engines() {
		t.Run(string(io), func(t *testing.T) { test(t, io) })
	}
}

func openGroup(t *testing.T, io engine.IOEngine, dsn string, timeout time.Duration, stream plugin.Stream, sql string,
	bind engine.ValueType, connections int) (*load.Group, *counting) {
	t.Helper()
	database, err := postgres.NewDriver().Open(target.Config{DSN: secret.New(dsn), StatementTimeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = database.Close() })
	sink := &counting{}
	g, err := load.Open(t.Context(),
		load.Config{Stream: stream, Database: database, Sink: sink, Log: zerolog.Nop(),
			Workload: engine.Workload{IOEngine: io},
			Plan: &engine.Plan{Statements: []engine.Statement{{ID: "s", Kind: engine.KindGenericSQL, SQL: sql,
				Binds: []engine.Bind{{Type: bind}}}}}}, connections, nil)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "linux" && g.IOEngine() != string(io) {
		t.Errorf("the connections are driven by %s", g.IOEngine())
	}
	return g, sink
}

// finish drains within limit and checks the accounts.
func finish(t *testing.T, g *load.Group, sink *counting, limit time.Duration) engine.Totals {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := g.Drain(ctx); err != nil {
		t.Error(err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	n := g.Totals()
	if n.Started == 0 || n.Started != n.Succeeded+n.Failed || n.Recorded != n.Started || sink.n != n.Started {
		t.Errorf("%+v, %d records", n, sink.n)
	}
	return n
}

func TestTimeoutsAndDrainOnPostgres(t *testing.T) { onEach(t, timeoutsAndDrainOnPostgres) }

func timeoutsAndDrainOnPostgres(t *testing.T, io engine.IOEngine) {
	g, sink := openGroup(t, io, pgtest.Start(t).DSN("loadstone"), 100*time.Millisecond, &sleeps{long: 50},
		"SELECT pg_sleep($1)", engine.TypeF64, 4)
	g.Start(engine.PhaseWarmup)
	time.Sleep(200 * time.Millisecond)
	g.SetPhase(engine.PhaseMeasurement)
	g.SetTarget(8, 300*time.Millisecond)
	// Connections are opened one after another, on a busy machine for longer than they are given.
	var s engine.WorkerSnapshot
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if g.Collect(&s); s.Failed > 0 && s.ActiveConnections == 8 {
			break
		}
	}
	if s.Failed == 0 || s.ByClass[engine.ErrClassTimeout] != s.Failed || s.ActiveConnections != 8 {
		t.Errorf("%d failed, %v, %d connections", s.Failed, s.ByClass, s.ActiveConnections)
	}
	if n := finish(t, g, sink, 10*time.Second); n.Warmup == 0 || n.Warmup >= n.Started {
		t.Errorf("%+v", n)
	}
}

func TestDrainCutsOffOnPostgres(t *testing.T) { onEach(t, drainCutsOffOnPostgres) }

func drainCutsOffOnPostgres(t *testing.T, io engine.IOEngine) {
	g, sink := openGroup(t, io, pgtest.Start(t).DSN("loadstone"), 0, &sleeps{long: 1}, "SELECT pg_sleep($1)",
		engine.TypeF64, 3)
	g.Start(engine.PhaseMeasurement)
	time.Sleep(200 * time.Millisecond)
	if n := finish(t, g, sink, 100*time.Millisecond); n.Failed != 3 || g.Error(1).Class != engine.ErrClassCancelled {
		t.Errorf("%+v, %+v", n, g.Error(1))
	}
}

func TestTerminatedSessionsAreFatal(t *testing.T) { onEach(t, terminatedSessionsAreFatal) }

func terminatedSessionsAreFatal(t *testing.T, io engine.IOEngine) {
	dsn := pgtest.Start(t).NewDatabase(t)
	stream := &lookups{rand.New(rand.NewPCG(1, 2)), 1000}
	g, sink := openGroup(t, io, dsn, time.Minute, stream, "SELECT $1::bigint", engine.TypeI64, 5)
	g.Start(engine.PhaseMeasurement)
	time.Sleep(200 * time.Millisecond)
	other, err := postgres.NewDriver().Open(target.Config{DSN: secret.New(dsn)})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.Query(t.Context(),
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> "+
			"pg_backend_pid()"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-g.Failed():
		if !engine.HasCode(err, engine.CodeTarget) || !strings.Contains(err.Error(), "The target closed all connections: ") {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the group goes on")
	}
	finish(t, g, sink, 10*time.Second)
}
