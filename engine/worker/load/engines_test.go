package load_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/nullpg"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/engine/worker/load"
)

// limited ends a stream after so many batches.
type limited struct {
	plugin.Stream
	batches int
}

func (l *limited) Fill(b *plugin.Batch, n int) error {
	if l.batches--; l.batches < 0 {
		b.Reset()
		return plugin.ErrEnded
	}
	return l.Stream.Fill(b, n)
}

// transactions turns lookups into transactions of one statement each.
type transactions struct{ *lookups }

func (s transactions) Fill(b *plugin.Batch, n int) error {
	if err := s.lookups.Fill(b, n/3); err != nil {
		return err
	}
	ops := make([]plugin.Op, 0, 3*len(b.Ops))
	for _, op := range b.Ops {
		ops = append(ops, plugin.Op{Statement: plugin.StatementBegin}, op, plugin.Op{Statement: plugin.StatementCommit})
	}
	b.Ops = append(b.Ops[:0], ops...)
	return nil
}

// counts is a Sink that tells executions from the statements of transactions.
type counts struct{ executions, statements int64 }

func (c *counts) Write(recs []engine.Execution) error {
	for i := range recs {
		if recs[i].Position > 0 {
			c.statements++
		} else {
			c.executions++
		}
	}
	return nil
}

// TestTheLifeOfAGroup puts a group through what can happen to it, with each I/O
// engine, on a target of its own. The accounts must balance every time.
func TestTheLifeOfAGroup(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*load.Config)
		target nullpg.Options
		run    func(t *testing.T, g *load.Group, s *nullpg.Server)
	}{
		{name: "plain"},
		{name: "transactions", change: func(c *load.Config) { c.Stream = transactions{c.Stream.(*lookups)} }},
		{name: "a new connection after each third operation", change: func(c *load.Config) { c.Workload.ReconnectEvery = 3 }},
		{name: "think time", change: func(c *load.Config) { c.Workload.ThinkTimeMs = 20 },
			run: func(t *testing.T, g *load.Group, _ *nullpg.Server) {
				began := time.Now()
				time.Sleep(300 * time.Millisecond)
				g.SetTarget(2, 0)
				// 8 connections with 20 ms between operations cannot do more than this.
				most := 8 * (2 + time.Since(began).Milliseconds()/20)
				if n := g.Totals(); n.Started > most {
					t.Errorf("%d operations in spite of the think time, at most %d are possible", n.Started, most)
				}
				connections(t, g, 2)
			}},
		{name: "more and fewer connections", target: nullpg.Options{Latency: time.Millisecond},
			run: func(t *testing.T, g *load.Group, _ *nullpg.Server) {
				for _, n := range []int{20, 3, 12, 0, 5} {
					g.SetTarget(n, 50*time.Millisecond)
					connections(t, g, n)
				}
			}},
		{name: "a stream that ends", change: func(c *load.Config) { c.Stream = &limited{c.Stream, 50} },
			run: func(t *testing.T, g *load.Group, _ *nullpg.Server) {
				select {
				case <-g.Done():
				case <-time.After(20 * time.Second):
					t.Fatal("the group goes on")
				}
				if n := g.Totals(); n.Started != 50*64 {
					t.Errorf("%d operations", n.Started)
				}
			}},
		{name: "a stream that ends, over connections that come and go", change: func(c *load.Config) {
			// Each operation is executed once, also those that a slot had taken when it left while thinking.
			c.Stream, c.Workload.ThinkTimeMs, c.Workload.ReconnectEvery = &limited{c.Stream, 20}, 5, 7
		}, run: func(t *testing.T, g *load.Group, _ *nullpg.Server) {
			for _, n := range []int{1, 30, 2, 40} {
				g.SetTarget(n, 0)
				time.Sleep(50 * time.Millisecond)
			}
			select {
			case <-g.Done():
			case <-time.After(20 * time.Second):
				t.Fatal("the group goes on")
			}
			if n := g.Totals(); n.Started != 20*64 {
				t.Errorf("%d operations", n.Started)
			}
		}},
		{name: "a frozen target is cut off", run: func(t *testing.T, g *load.Group, s *nullpg.Server) {
			time.Sleep(100 * time.Millisecond)
			s.Freeze(3 * time.Second)
			time.Sleep(100 * time.Millisecond)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if err := g.Drain(ctx); err != nil {
				t.Error(err)
			}
			if n := g.Totals(); n.Failed != 8 || g.Error(1).Class != engine.ErrClassCancelled {
				t.Errorf("%+v, %+v", n, g.Error(1))
			}
		}},
		{name: "an open loop", change: openLoop(2000, 0), run: func(t *testing.T, g *load.Group, _ *nullpg.Server) {
			began := time.Now()
			time.Sleep(500 * time.Millisecond)
			g.Stop()
			// How many depends on how busy the machine is elsewhere; that they add up does not.
			if n := g.Totals(); n.Scheduled == 0 || n.Scheduled > 2*time.Since(began).Milliseconds()+100 || n.Dropped != 0 {
				t.Errorf("%+v", n)
			}
		}},
		{name: "an open loop that drops", change: openLoop(5000, 10), target: nullpg.Options{Latency: 20 * time.Millisecond},
			run: func(t *testing.T, g *load.Group, _ *nullpg.Server) {
				time.Sleep(500 * time.Millisecond)
				// What waits for a connection is neither; at most ten are due and not finished.
				if n := g.Totals(); n.Dropped == 0 || n.Scheduled < n.Started+n.Dropped {
					t.Errorf("%+v", n)
				}
			}},
		{name: "an open loop over new connections",
			change: func(c *load.Config) { openLoop(1000, 0)(c); c.Workload.ReconnectEvery = 5 }},
		{name: "an open loop with fewer connections", change: openLoop(1000, 0),
			run: func(_ *testing.T, g *load.Group, _ *nullpg.Server) {
				time.Sleep(100 * time.Millisecond)
				g.SetTarget(1, 0)
				time.Sleep(200 * time.Millisecond)
			}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
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
				sink := &counts{}
				cfg := load.Config{Plan: lookupPlan(), Stream: &lookups{rand.New(rand.NewPCG(1, 2)), 1000}, Database: db,
					Sink: sink, Log: zerolog.Nop(),
					Workload: engine.Workload{IOEngine: io, ConcurrentConnections: 8}}
				if tt.change != nil {
					tt.change(&cfg)
				}
				g, err := load.Open(t.Context(), cfg, 8, nil)
				if err != nil {
					t.Fatal(err)
				}
				g.Start(engine.PhaseMeasurement)
				if tt.run != nil {
					tt.run(t, g, server)
				} else {
					time.Sleep(300 * time.Millisecond)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				if err := g.Drain(ctx); err != nil {
					t.Error(err)
				}
				if err := g.Close(); err != nil {
					t.Error(err)
				}
				n := g.Totals()
				if n.Started == 0 || n.Scheduled != n.Started+n.Dropped || n.Started != n.Succeeded+n.Failed ||
					n.Recorded != n.Started ||
					sink.executions != n.Started || sink.statements != n.Statements {
					t.Errorf("%+v, %+v", n, sink)
				}
				select {
				case err := <-g.Failed():
					t.Error(err)
				default:
				}
			})
		})
	}
}

func openLoop(rate float64, inFlight int) func(*load.Config) {
	return func(c *load.Config) {
		c.Workload.LoadMode, c.Workload.TargetQPS, c.Workload.Arrival, c.Workload.MaxInFlight = engine.LoadQPS, &rate,
			engine.ArrivalConstant, inFlight
	}
}

// connections waits until the group has so many.
func connections(t *testing.T, g *load.Group, want int) {
	t.Helper()
	for range 200 {
		if open, _ := g.Connections(); open == want {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	open, _ := g.Connections()
	t.Errorf("%d connections of %d", open, want)
}
