package load_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/clock"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/nullpg"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/engine/worker/load"
)

// begins is a Sink that keeps when what it is given began: executions and statements of transactions.
type begins struct {
	mu   sync.Mutex
	all  []int64
	last int64
}

func (b *begins) Write(recs []engine.Execution) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range recs {
		b.all = append(b.all, recs[i].StartedAt)
		b.last = max(b.last, recs[i].StartedAt)
	}
	return nil
}

// TestNothingIsIssuedPastTheDeadline, whatever drives the connections and whatever waits: the
// group ends by itself, what is in flight ends, and the account balances.
func TestNothingIsIssuedPastTheDeadline(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*load.Config)
		target nullpg.Options
	}{
		{name: "a closed loop"},
		{name: "think time", change: func(c *load.Config) { c.Workload.ThinkTimeMs = 30 }},
		{name: "new connections", change: func(c *load.Config) { c.Workload.ReconnectEvery = 3 }},
		{name: "transactions", target: nullpg.Options{Latency: 20 * time.Millisecond},
			change: func(c *load.Config) { c.Stream = transactions{c.Stream.(*lookups)} }},
		{name: "an open loop", change: openLoop(500, 0)},
		{name: "an open loop with a backlog", change: openLoop(5000, 0),
			target: nullpg.Options{Latency: 20 * time.Millisecond}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onEach(t, func(t *testing.T, io engine.IOEngine) {
				server, err := nullpg.Listen(t.Context(), "127.0.0.1:0", tt.target)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = server.Close() }()
				db, err := postgres.NewDriver().Open(target.Config{DSN: secret.New(server.DSN())})
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = db.Close() }()
				sink, clock := &begins{}, clock.New(nil)
				cfg := load.Config{Plan: lookupPlan(), Stream: &lookups{rand.New(rand.NewPCG(1, 2)), 1000}, Database: db,
					Sink: sink, Clock: clock, Log: zerolog.Nop(),
					Workload: engine.Workload{IOEngine: io, ConcurrentConnections: 8}}
				if tt.change != nil {
					tt.change(&cfg)
				}
				g, err := load.Open(t.Context(), cfg, 8, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = g.Close() }()
				deadline := time.Now().Add(200 * time.Millisecond)
				g.SetDeadline(deadline)
				g.Start(engine.PhaseMeasurement)
				select {
				case err := <-g.Failed():
					if !errors.Is(err, load.ErrDeadlinePassed) {
						t.Fatal(err)
					}
				case <-time.After(20 * time.Second):
					t.Fatal("the group goes on")
				}
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				if err := g.Drain(ctx); err != nil {
					t.Error(err)
				}
				n := g.Totals()
				if n.Started == 0 || n.Scheduled != n.Started+n.Dropped || n.Started != n.Succeeded+n.Failed ||
					n.Recorded != n.Started {
					t.Errorf("%+v", n)
				}
				if late := sink.last - clock.At(deadline).UnixNano(); late >= 0 {
					t.Errorf("something was issued %v past the deadline", time.Duration(late))
				}
			})
		})
	}
}

// twoConnections are a group on a target that does nothing, which pauses so long between operations.
func twoConnections(t *testing.T, io engine.IOEngine, thinkTimeMs float64) *load.Group {
	t.Helper()
	server, err := nullpg.Listen(t.Context(), "127.0.0.1:0", nullpg.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	db, err := postgres.NewDriver().Open(target.Config{DSN: secret.New(server.DSN())})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	g, err := load.Open(t.Context(), load.Config{Plan: lookupPlan(),
		Stream: &lookups{rand.New(rand.NewPCG(1, 2)), 1000}, Database: db, Sink: &begins{}, Log: zerolog.Nop(),
		Workload: engine.Workload{IOEngine: io, ConcurrentConnections: 2, ThinkTimeMs: thinkTimeMs}}, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g
}

// TestADeadlineThatIsMovedInTimeEndsNothing, and a group that never had one goes on for ever.
func TestADeadlineThatIsMovedInTimeEndsNothing(t *testing.T) {
	onEach(t, func(t *testing.T, io engine.IOEngine) {
		g := twoConnections(t, io, 1)
		g.SetDeadline(time.Now().Add(10 * time.Second))
		g.Start(engine.PhaseMeasurement)
		for range 10 {
			g.SetDeadline(time.Now().Add(10 * time.Second))
			time.Sleep(10 * time.Millisecond)
		}
		before := g.Totals().Started
		time.Sleep(100 * time.Millisecond)
		if n := g.Totals().Started; n <= before {
			t.Errorf("%d operations, and %d a moment later", before, n)
		}
		g.SetDeadline(time.Time{})
		select {
		case err := <-g.Failed():
			if !errors.Is(err, load.ErrDeadlinePassed) {
				t.Error(err)
			}
		case <-time.After(20 * time.Second):
			t.Error("the group goes on without a time in which it may")
		}
	})
}

// TestADeadlineThatHasPassedIsNotMoved, also when nothing was due since: who sets it later was not heard in time.
func TestADeadlineThatHasPassedIsNotMoved(t *testing.T) {
	onEach(t, func(t *testing.T, io engine.IOEngine) {
		g := twoConnections(t, io, 600_000)
		g.SetDeadline(time.Now().Add(time.Minute))
		g.Start(engine.PhaseMeasurement)
		g.SetDeadline(time.Time{})
		g.SetDeadline(time.Now().Add(time.Minute))
		select {
		case err := <-g.Failed():
			if !errors.Is(err, load.ErrDeadlinePassed) {
				t.Error(err)
			}
		case <-time.After(20 * time.Second):
			t.Error("the group goes on")
		}
	})
}
