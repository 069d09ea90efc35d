package load_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/engine/worker/load"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// A server that ends all sessions while hardly any operation is due is noticed by
// the connections themselves: at such a rate a restart would pass for a few errors.
func TestALossOfAllIdleConnectionsIsFatal(t *testing.T) {
	for _, io := range []engine.IOEngine{engine.IOEvents, engine.IOUring} {
		t.Run(string(io), func(t *testing.T) { aLossOfAllIdleConnectionsIsFatal(t, io) })
	}
}

func aLossOfAllIdleConnectionsIsFatal(t *testing.T, io engine.IOEngine) {
	dsn := pgtest.Start(t).NewDatabase(t)
	database, err := postgres.NewDriver().Open(target.Config{DSN: secret.New(dsn)})
	if err != nil {
		t.Fatal(err)
	}
	defer database.Close()
	sink := &kept{}
	rate := 1.0
	g, err := load.Open(t.Context(),
		load.Config{Stream: &lookups{rand.New(rand.NewPCG(1, 2)), 1000}, Database: database, Sink: sink, Log: zerolog.Nop(),
			Workload: engine.Workload{LoadMode: engine.LoadQPS, TargetQPS: &rate, IOEngine: io},
			Plan: &engine.Plan{Statements: []engine.Statement{{ID: "s", Kind: engine.KindPointLookup,
				SQL: "SELECT $1::bigint", Binds: []engine.Bind{{Type: engine.TypeI64}}}}}}, 6, nil)
	if err != nil {
		t.Fatal(err)
	}
	g.Start(engine.PhaseMeasurement)
	time.Sleep(200 * time.Millisecond)
	if _, err := database.Query(t.Context(),
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> "+
			"pg_backend_pid()"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-g.Failed():
		if !engine.HasCode(err, engine.CodeTarget) ||
			!strings.Contains(err.Error(), "The target closed all connections: connection lost: the server closed it") {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the group goes on")
	}
	if err := g.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	n := g.Totals()
	if n.Started != n.Succeeded+n.Failed || n.Recorded != n.Started || n.Scheduled != n.Started+n.Dropped {
		t.Errorf("%+v", n)
	}
	for id := uint32(1); ; id++ {
		e := g.Error(id)
		if e.Message == "" {
			break
		}
		if e.Class != engine.ErrClassConnection {
			t.Errorf("an operation failed with %+v", e)
		}
		if id > 10 {
			break
		}
	}
}
