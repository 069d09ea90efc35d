package load_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/results/outage"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/nullpg"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/engine/worker/load"
)

// outageRun is a load that reconnects, at a rate, and what it recorded.
type outageRun struct {
	g    *load.Group
	sink *kept
	from int64
}

func startOutageRun(t *testing.T, io engine.IOEngine, dsn string, rate float64, connections int) *outageRun {
	t.Helper()
	database, err := postgres.NewDriver().Open(target.Config{DSN: secret.New(dsn), Reconnects: true,
		StatementTimeout: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = database.Close() })
	r := &outageRun{sink: &kept{}}
	if r.g, err = load.Open(t.Context(), load.Config{Stream: &lookups{rand.New(rand.NewPCG(1, 2)), 1000},
		Database: database, Sink: r.sink, Log: zerolog.Nop(),
		Workload: engine.Workload{LoadMode: engine.LoadQPS, TargetQPS: &rate, IOEngine: io,
			OnDisconnect: engine.DisconnectReconnect},
		Plan: &engine.Plan{Statements: []engine.Statement{{ID: "s", Kind: engine.KindInsert, Writes: true,
			SQL: "SELECT $1::bigint", Binds: []engine.Bind{{Type: engine.TypeI64}}}}}}, connections, nil); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "linux" && r.g.IOEngine() != string(io) {
		t.Errorf("the connections are driven by %s", r.g.IOEngine())
	}
	r.from = time.Now().UnixNano()
	r.g.Start(engine.PhaseMeasurement)
	return r
}

// outages ends the load, checks its accounts, and finds the outages.
func (r *outageRun) outages(t *testing.T) []engine.Outage {
	t.Helper()
	select {
	case err := <-r.g.Failed():
		t.Fatal(err)
	default:
	}
	if open, want := r.g.Connections(); open != want {
		t.Errorf("%d of %d connections are open", open, want)
	}
	ended := time.Now().UnixNano()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := r.g.Drain(ctx); err != nil {
		t.Error(err)
	}
	if err := r.g.Close(); err != nil {
		t.Error(err)
	}
	if n := r.g.Totals(); n.Started != n.Succeeded+n.Failed || n.Recorded != n.Started ||
		n.Scheduled != n.Started+n.Dropped {
		t.Errorf("%+v", n)
	}
	var courses outage.Courses
	ops := make([]outage.Operation, 0, len(r.sink.recs))
	for _, rec := range r.sink.recs {
		op := outage.Operation{Kind: rec.Kind, Due: rec.DueAt, Ended: rec.DueAt + rec.Elapsed, OK: rec.Success}
		if !op.OK {
			e := r.g.Error(rec.ErrorID)
			op.Class, op.Code = e.Class, e.Code
		}
		ops = append(ops, op)
		courses.Add(r.from, op)
	}
	found := outage.Find(&courses, r.from, ended)
	for _, op := range ops {
		outage.Count(found, op)
	}
	return found
}

// away takes the target of a run away for a time, and returns what the proxy knows of that.
func (p *outageProxy) away(mode proxyMode, length time.Duration) {
	p.set(mode)
	time.Sleep(length)
	p.set(carries)
}

// TestOutagesAreMeasuredAsAProxyKnowsThem: what the record says of an outage is what passed a proxy, with each I/O engine,
// whatever the proxy does. How near that is only a machine with nothing else to do can tell: the long test asks.
func TestOutagesAreMeasuredAsAProxyKnowsThem(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]proxyMode{"refuses": refuses, "half open": halfOpens} {
		for _, io := range engines() {
			t.Run(fmt.Sprint(name, " ", io), func(t *testing.T) {
				if os.Getenv("LOADSTONE_CHECK") == "" { // make check, on a machine that is otherwise idle
					t.Parallel()
					measuredOutage(t, io, mode)
					return
				}
				for range 10 {
					late := lateness(t)
					wrong := measuredOutage(t, io, mode)
					// Both ends are read by threads that wait for a processor.
					if allowed := 0.005 + 1/outageRate + 2*late(); math.Abs(wrong) > allowed {
						t.Errorf("%.2f ms from the proxy's, and %.2f ms are allowed", 1000*wrong, 1000*allowed)
					}
				}
			})
		}
	}
}

const outageRate = 200.0

// lateness returns by how much a thread of this process has woken up too late at most meanwhile, in seconds.
func lateness(t *testing.T) func() float64 {
	t.Helper()
	stop, worst := make(chan struct{}), make(chan float64, 1)
	go func() {
		most := 0.0
		for {
			began := time.Now()
			select {
			case <-stop:
				worst <- most
				return
			case <-time.After(time.Millisecond):
				most = max(most, time.Since(began).Seconds()-0.001)
			}
		}
	}()
	return func() float64 {
		close(stop)
		return <-worst
	}
}

// measuredOutage returns by how much the length of an outage is not the proxy's, in seconds.
func measuredOutage(t *testing.T, io engine.IOEngine, mode proxyMode) float64 {
	t.Helper()
	s, err := nullpg.Listen(t.Context(), "127.0.0.1:0", nullpg.Options{Latency: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	proxy := newOutageProxy(t, s.Addr().String())
	run := startOutageRun(t, io, strings.ReplaceAll(s.DSN(), s.Addr().String(), proxy.ln.Addr().String()), outageRate, 8)
	time.Sleep(800 * time.Millisecond)
	proxy.away(mode, 600*time.Millisecond+time.Duration(rand.IntN(500))*time.Millisecond)
	time.Sleep(1500 * time.Millisecond)
	found := run.outages(t)
	last, first, _ := proxy.truth()
	if len(found) != 1 || first.IsZero() {
		t.Fatalf("%d outages: %+v", len(found), found)
	}
	o := found[0]
	// What a proxy has let through arrives later, and nothing that it has not let through.
	if o.FirstSuccess.Before(first) || o.FirstSuccess.Before(o.LastSuccess.Time) || o.LastSuccess.After(first) {
		t.Errorf("%s: from %v to %v, and the proxy says from %v to %v", o.Text(), o.LastSuccess, o.FirstSuccess, last, first)
	}
	wrong := o.DownSeconds - first.Sub(last).Seconds()
	t.Logf("%s; %.2f ms from the proxy's %.3f s", o.Text(), 1000*wrong, first.Sub(last).Seconds())
	return wrong
}

// TestManyConnectionsComeBackSoon: 500 connections are open again 2 s after the return of a server that takes them.
func TestManyConnectionsComeBackSoon(t *testing.T) {
	if testing.Short() {
		t.Skip("500 connections take a machine for themselves")
	}
	onEach(t, func(t *testing.T, io engine.IOEngine) {
		s, err := nullpg.Listen(t.Context(), "127.0.0.1:0", nullpg.Options{Latency: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		proxy := newOutageProxy(t, s.Addr().String())
		run := startOutageRun(
			t,
			io,
			strings.ReplaceAll(s.DSN(), s.Addr().String(), proxy.ln.Addr().String()),
			outageRate,
			500,
		)
		time.Sleep(time.Second)
		proxy.away(refuses, 3*time.Second)
		late, back := lateness(t), time.Now()
		for open, want := run.g.Connections(); open < want && time.Since(back) < 20*time.Second; {
			time.Sleep(5 * time.Millisecond)
			open, want = run.g.Connections()
		}
		took := time.Since(back)
		// Each of the rounds in which they are opened waits for a processor.
		allowed := 2 + 10*late()
		if t.Logf("all are open after %v", took); took.Seconds() > allowed {
			t.Errorf("all are open %v after the return, and %.2f s are allowed", took, allowed)
		}
		time.Sleep(500 * time.Millisecond)
		if found := run.outages(t); len(found) != 1 {
			t.Errorf("%+v", found)
		}
	})
}
