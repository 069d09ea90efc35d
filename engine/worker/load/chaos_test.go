package load_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/nullpg"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/engine/worker/load"
)

// chaos stands between the engine and its target and delays, cuts, truncates
// and garbles what the target answers, as its seed says.
type chaos struct {
	ln     net.Listener
	target string
	mu     sync.Mutex
	rng    *rand.Rand
	calm   bool
	conns  []net.Conn
	wg     sync.WaitGroup
}

func newChaos(t *testing.T, target string, seed uint64) *chaos {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &chaos{ln: ln, target: target, rng: rand.New(rand.NewPCG(seed, 7)), calm: true}
	c.wg.Go(c.accept)
	t.Cleanup(func() {
		_ = ln.Close()
		c.mu.Lock()
		for _, conn := range c.conns {
			_ = conn.Close()
		}
		c.mu.Unlock()
		c.wg.Wait()
	})
	return c
}

func (c *chaos) accept() {
	for {
		client, err := c.ln.Accept()
		if err != nil {
			return
		}
		server, err := net.DialTimeout("tcp", c.target, time.Second)
		if err != nil {
			_ = client.Close()
			continue
		}
		c.mu.Lock()
		c.conns = append(c.conns, client, server)
		c.mu.Unlock()
		c.wg.Go(func() { c.pass(server, client, false) })
		c.wg.Go(func() { c.pass(client, server, true) })
	}
}

// pass copies one direction; answers suffer.
func (c *chaos) pass(to, from net.Conn, answers bool) {
	defer func() {
		_ = to.Close()
		_ = from.Close()
	}()
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		data, cut := buf[:n], false
		if answers {
			var wait time.Duration
			if data, wait, cut = c.harm(data); wait > 0 {
				time.Sleep(wait)
			}
		}
		if _, err := to.Write(data); err != nil || cut {
			return
		}
	}
}

// harm decides what happens to a piece of an answer.
func (c *chaos) harm(data []byte) (_ []byte, wait time.Duration, cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calm {
		return data, 0, false
	}
	switch x := c.rng.IntN(400); {
	case x == 0:
		return nil, 0, true
	case x == 1:
		return data[:c.rng.IntN(len(data)+1)], 0, true
	case x == 2:
		data[c.rng.IntN(len(data))] ^= byte(1 + c.rng.IntN(255))
	case x < 12:
		wait = time.Duration(c.rng.IntN(30)) * time.Millisecond
	}
	return data, wait, false
}

func (c *chaos) set(calm bool) {
	c.mu.Lock()
	c.calm = calm
	c.mu.Unlock()
}

// TestChaos: whatever happens to the connections, every operation is accounted
// for. 20 seeds, and 200 with LOADSTONE_SOAK.
func TestChaos(t *testing.T) {
	rounds := uint64(20)
	if os.Getenv("LOADSTONE_SOAK") != "" {
		rounds = 200
	}
	server, err := nullpg.Listen(t.Context(), "127.0.0.1:0", nullpg.Options{Latency: 200 * time.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() }) // after the parallel rounds
	for seed := range rounds {
		all := engines()
		io := all[seed%uint64(len(all))]
		t.Run(fmt.Sprintf("%d %s", seed, io), func(t *testing.T) {
			t.Parallel()
			chaosRound(t, server.Addr().String(), seed, io)
		})
	}
}

func chaosRound(t *testing.T, address string, seed uint64, io engine.IOEngine) {
	rng := rand.New(rand.NewPCG(seed, 9))
	proxy := newChaos(t, address, seed)
	db, err := postgres.NewDriver().
		Open(target.Config{DSN: secret.New(fmt.Sprintf("postgres://null@%s/null?sslmode=disable", proxy.ln.Addr())),
			StatementTimeout: 100 * time.Millisecond, ConnectTimeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	sink := &counts{}
	cfg := load.Config{Plan: lookupPlan(), Database: db, Sink: sink, Log: zerolog.Nop(),
		Workload: engine.Workload{IOEngine: io, ConcurrentConnections: 12}}
	stream := &lookups{rand.New(rand.NewPCG(seed, 2)), 1000}
	cfg.Stream = stream
	if rng.IntN(2) == 0 {
		cfg.Stream = transactions{stream}
	}
	if rng.IntN(3) == 0 {
		cfg.Workload.ReconnectEvery = int64(5 + rng.IntN(50))
	}
	if rng.IntN(2) == 0 {
		cfg.Workload.Retry = &engine.Retry{Max: 2,
			Classes: []engine.ErrorClass{engine.ErrClassConnection, engine.ErrClassTimeout, engine.ErrClassOther}, BackoffMs: 1}
	}
	if rng.IntN(2) == 0 {
		openLoop(1500, 200)(&cfg)
	}
	g, err := load.Open(t.Context(), cfg, 12, nil)
	if err != nil {
		t.Fatal(err)
	}
	proxy.set(false)
	g.Start(engine.PhaseWarmup)
	time.Sleep(100 * time.Millisecond)
	g.SetPhase(engine.PhaseMeasurement)
	time.Sleep(time.Duration(100+rng.IntN(200)) * time.Millisecond)
	g.SetTarget(4+rng.IntN(16), 0)
	time.Sleep(100 * time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(500))*time.Millisecond)
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
}
