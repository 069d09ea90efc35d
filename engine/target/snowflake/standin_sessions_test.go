package snowflake

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/worker/load"
	"github.com/loadstone-db/loadstone/snowsim"
	"github.com/loadstone-db/loadstone/snowsim/warehouse"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// both lets half of the connections make lookups and half of them wait.
type both struct{ fills atomic.Uint32 }

func (s *both) Fill(b *plugin.Batch, n int) error {
	b.Reset()
	which := uint16(s.fills.Add(1) % 2)
	for range n {
		b.Ops = append(b.Ops, plugin.Op{Statement: which, FirstArg: uint32(len(b.Args)), NArgs: 1})
		b.Args = append(b.Args, plugin.Value{Type: engine.TypeI64, I: 600})
	}
	return nil
}

func (*both) Close() error { return nil }

// descriptors counts the process's open files.
func descriptors(t testing.TB) int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("needs /proc")
	}
	return len(list)
}

// TestFiveHundredOfTheStandIn: 500 sessions of the stand-in have a query in flight
// each when the load is stopped. Half of them wait in the queue of a warehouse with eight
// slots, half wait on Postgres or for one of its connections.
// Afterwards the stand-in has no session, Postgres runs nothing, and no descriptor is left open.
func TestFiveHundredOfTheStandIn(t *testing.T) {
	const sessions = 500
	pg := pgtest.Start(t).NewDatabase(t)
	s := standIn(t, func(o *snowsim.Options) {
		o.Postgres = pg
		o.TimeScale = 0.01 // a lookup holds its slot for half a minute
		o.Warehouses = []warehouse.Spec{{Name: "W", AutoResume: true}}
	})
	watch, err := pgx.Connect(t.Context(), pg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = watch.Close(context.WithoutCancel(t.Context())) }()
	active := func() (n int) {
		if err := watch.QueryRow(t.Context(),
			"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND state "+
				"<> 'idle'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	dsn := "snowflake://" + s.DSN()
	set := openDSN(t, dsn, target.Config{})
	if err := set.Exec(t.Context(), "CREATE TABLE t (id NUMBER, a VARCHAR)"); err != nil {
		t.Fatal(err)
	}
	if err := set.Close(); err != nil {
		t.Fatal(err)
	}
	before := descriptors(t)

	db := openDSN(t, dsn, target.Config{})
	sink := &memory{}
	plan := &engine.Plan{Driver: "snowflake", Statements: []engine.Statement{
		{ID: "queued", SQL: "SELECT a FROM t WHERE id = ?", Binds: []engine.Bind{{Type: engine.TypeI64}},
			Columns: []string{"a"}},
		{ID: "waits", SQL: "SELECT SYSTEM$WAIT(?)", Binds: []engine.Bind{{Type: engine.TypeI64}}, Columns: []string{"a"}},
	}}
	g, err := load.Open(t.Context(),
		load.Config{Plan: plan, Workload: engine.Workload{LoadMode: engine.LoadConcurrency, ConcurrentConnections: sessions},
			Stream: &both{}, Database: db, Sink: sink, Log: zerolog.Nop()}, sessions, nil)
	if err != nil {
		t.Fatal(err)
	}
	opened := s.Stats()
	g.Start(engine.PhaseMeasurement)
	waitFor(t, func() bool { return s.Stats().Queries-opened.Queries >= sessions })
	waitFor(t, func() bool { return s.Warehouses().List()[0].Queued >= sessions/2-8 && active() > 32 })
	took := endLoad(t, g, db, 100*time.Millisecond)
	t.Logf("%d sessions, %d aborts, %v from STOP to the last closed session", opened.Sessions, s.Stats().Aborts, took)
	if took > 10*time.Second {
		t.Errorf("draining took %v", took)
	}
	if n := s.Stats(); opened.Sessions != sessions || n.Sessions != 0 || n.Aborts != sessions {
		t.Errorf("%d sessions were open, %d are left, %d aborts", opened.Sessions, n.Sessions, n.Aborts)
	}
	if n := g.Totals(); n.Started != sessions || n.Failed != sessions || n.Recorded != sessions {
		t.Errorf("%+v", n)
	}
	for _, r := range sink.recs {
		if e := g.Error(r.ErrorID); e.Class != engine.ErrClassCancelled {
			t.Fatalf("%+v: %+v", r, e)
		}
	}
	waitFor(t, func() bool { return active() == 0 })
	if house := s.Warehouses().List()[0]; house.Queued != 0 || house.Running != 0 {
		t.Errorf("the warehouse runs %d and queues %d", house.Running, house.Queued)
	}
	// What the stand-in keeps are the idle connections of its pool.
	waitFor(t, func() bool { return descriptors(t) <= before+64 })
	s.Close()
	waitFor(t, func() bool { return descriptors(t) <= before })
}
