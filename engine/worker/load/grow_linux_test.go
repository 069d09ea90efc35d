package load

import (
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/host"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/nullpg"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
)

type sameKey struct{}

func (sameKey) Fill(b *plugin.Batch, n int) error {
	b.Reset()
	for i := range n {
		b.Ops = append(b.Ops, plugin.Op{FirstArg: uint32(i), NArgs: 1})
		b.Args = append(b.Args, plugin.Value{Type: engine.TypeI64, I: 1})
	}
	return nil
}
func (sameKey) Close() error { return nil }

type nowhere struct{}

func (nowhere) Write([]engine.Execution) error { return nil }

// TestAGroupThatGrowsGetsMoreLoops: stages may begin with one connection, or with none.
func TestAGroupThatGrowsGetsMoreLoops(t *testing.T) {
	for _, io := range []engine.IOEngine{engine.IOEvents, engine.IOUring} {
		t.Run(string(io), func(t *testing.T) { aGroupThatGrowsGetsMoreLoops(t, io) })
	}
}

func aGroupThatGrowsGetsMoreLoops(t *testing.T, io engine.IOEngine) {
	server, err := nullpg.Listen(t.Context(), "127.0.0.1:0", nullpg.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	database, err := postgres.NewDriver().Open(target.Config{DSN: secret.New(server.DSN())})
	if err != nil {
		t.Fatal(err)
	}
	defer database.Close()
	g, err := Open(t.Context(), Config{Stream: sameKey{}, Database: database, Sink: nowhere{}, Log: zerolog.Nop(),
		Workload: engine.Workload{IOEngine: io, ThinkTimeMs: 5},
		Plan: &engine.Plan{Statements: []engine.Statement{{ID: "s", Kind: engine.KindPointLookup, SQL: "SELECT $1",
			Binds: []engine.Bind{{Type: engine.TypeI64}}}}}}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	g.Start(engine.PhaseMeasurement)
	e := g.io.(*eventLoops)
	if n := len(e.loops()); n != 1 {
		t.Errorf("%d loops for a connection", n)
	}
	const most = 24
	g.SetTarget(most, 0)
	for begin := time.Now(); time.Since(begin) < 20*time.Second; time.Sleep(10 * time.Millisecond) {
		if open, _ := g.Connections(); open == most {
			break
		}
	}
	loops := e.loops()
	if want := loopCount(most, host.Processors()); len(loops) != want {
		t.Fatalf("%d loops for %d connections, want %d", len(loops), most, want)
	}
	for i, l := range loops {
		if n := int(l.seated.Load()); n != most/len(loops) {
			t.Errorf("loop %d has %d of %d connections", i, n, most)
		}
	}
	g.SetTarget(0, 0)
	for begin := time.Now(); time.Since(begin) < 20*time.Second; time.Sleep(10 * time.Millisecond) {
		if open, _ := g.Connections(); open == 0 {
			break
		}
	}
	for i, l := range loops {
		if n := l.seated.Load(); n != 0 {
			t.Errorf("loop %d still has %d connections", i, n)
		}
	}
}
