package load_test

import (
	"context"
	"math/rand/v2"
	"net"
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

// halting lets the first byte of each piece of an answer pass, and the others after a while.
func halting(t *testing.T, address string, pause time.Duration) net.Listener {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		conns []net.Conn
	)
	pass := func(to, from net.Conn, halt bool) {
		defer to.Close()
		buf := make([]byte, 4096)
		for {
			n, err := from.Read(buf)
			if err != nil {
				return
			}
			data := buf[:n]
			if halt {
				_, _ = to.Write(data[:1])
				data = data[1:]
				time.Sleep(pause)
			}
			if _, err := to.Write(data); err != nil {
				return
			}
		}
	}
	wg.Go(func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			server, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
			if err != nil {
				_ = client.Close()
				return
			}
			mu.Lock()
			conns = append(conns, client, server)
			mu.Unlock()
			wg.Go(func() { pass(server, client, false) })
			wg.Go(func() { pass(client, server, true) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		mu.Lock()
		for _, c := range conns {
			_ = c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return ln
}

// TestDecodingBeginsWithTheFirstByte: what passes between the first byte of an
// answer and its last is decoding, in transactions the sum of their statements'.
func TestDecodingBeginsWithTheFirstByte(t *testing.T) {
	const pause = 20 * time.Millisecond
	onEach(t, func(t *testing.T, io engine.IOEngine) {
		server, err := nullpg.Listen(t.Context(), "127.0.0.1:0", nullpg.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = server.Close() }()
		proxy := halting(t, server.Addr().String(), pause)
		db, err := postgres.NewDriver().
			Open(target.Config{DSN: secret.New("postgres://x@" + proxy.Addr().String() + "/x?sslmode=disable")})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		for _, transaction := range []bool{false, true} {
			sink := &kept{}
			cfg := load.Config{Plan: lookupPlan(), Database: db, Sink: sink, Log: zerolog.Nop(),
				Workload: engine.Workload{IOEngine: io}}
			var stream = &lookups{rand.New(rand.NewPCG(1, 2)), 1000}
			cfg.Stream = stream
			if transaction {
				cfg.Stream = transactions{stream}
			}
			g, err := load.Open(t.Context(), cfg, 4, nil)
			if err != nil {
				t.Fatal(err)
			}
			g.Start(engine.PhaseMeasurement)
			time.Sleep(15 * pause)
			if err := g.Drain(context.WithoutCancel(t.Context())); err != nil {
				t.Fatal(err)
			}
			var snapshot engine.WorkerSnapshot
			g.Collect(&snapshot)
			_ = g.Close()
			var split engine.LatencySplit
			var longest int64
			inside := map[uint32]int64{} // by connection: those of an event loop are mixed
			for _, r := range sink.recs {
				if r.Decode < 0 || r.Decode > r.Elapsed {
					t.Fatalf("%v of %v were decoding", time.Duration(r.Decode), time.Duration(r.Elapsed))
				}
				if r.Position > 0 {
					inside[r.ConnectionID] += r.Decode
					continue
				}
				if transaction && r.Decode != inside[r.ConnectionID] {
					t.Fatalf("decoding took %v in the transaction, %v in its statements", time.Duration(r.Decode),
						time.Duration(inside[r.ConnectionID]))
				}
				inside[r.ConnectionID], longest = 0, max(longest, r.Decode)
				split.Add(engine.LatencySplit{Count: 1, RoundTrip: r.Elapsed - r.Decode, Decode: r.Decode})
			}
			// Not every time: a busy machine may find both pieces at once.
			if longest < int64(pause)/2 {
				t.Errorf("decoding took %v at most, %v passed between the pieces of the answers", time.Duration(longest), pause)
			}
			if snapshot.TickSplit != split {
				t.Errorf("the snapshot says %+v, the records %+v", snapshot.TickSplit, split)
			}
		}
	})
}
