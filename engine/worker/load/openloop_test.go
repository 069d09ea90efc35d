package load

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	loadarrival "github.com/loadstone-db/loadstone/engine/worker/load/arrival"
	"github.com/loadstone-db/loadstone/engine/worker/load/record"
)

// openRate opens an open loop whose timers are those of the bubble.
func openRate(t *testing.T, db *fakeDB, stream plugin.Stream, sink record.Sink, connections int,
	w engine.Workload) *Group {
	t.Helper()
	cfg := fakeConfig(db, stream, sink)
	cfg.Workload = w
	cfg.Workload.LoadMode = engine.LoadQPS
	g := open(t, cfg, connections)
	g.dispatcher.waiter = plainTimers{}
	return g
}

func rate(r float64) *float64 { return &r }

func TestOpenLoopKeepsItsScheduleExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &fakeDB{latency: between(time.Millisecond, 9*time.Millisecond)}
		sink := &memorySink{}
		g := openRate(t, db, &fakeStream{}, sink, 50, engine.Workload{TargetQPS: rate(1000)})
		time.Sleep(time.Second)
		begin := time.Now().UnixNano()
		g.Start(engine.PhaseMeasurement)
		time.Sleep(10*time.Second - time.Nanosecond)
		g.Stop()
		if err := settle(g, db, sink, time.Minute); err != nil {
			t.Error(err)
		}
		if len(sink.recs) != 10_000 {
			t.Errorf("%d operations in ten seconds at 1000/s", len(sink.recs))
		}
		slices.SortFunc(sink.recs, func(a, b engine.Execution) int { return int(a.DueAt - b.DueAt) })
		for i, r := range sink.recs {
			if r.DueAt != begin+int64(i)*1e6 || r.StartedAt != r.DueAt || r.ScheduleLag != 0 || r.PoolWait != 0 {
				t.Fatalf("operation %d: %+v", i, r)
			}
		}
	})
}

func TestOpenLoopMeasuresFromTheDueTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const frozenAt, frozen = 5 * time.Second, 1400 * time.Millisecond
		begin := time.Now()
		db := &fakeDB{latency: func() time.Duration {
			if at := time.Since(begin); at >= frozenAt && at < frozenAt+frozen {
				return frozenAt + frozen - at
			}
			return time.Millisecond
		}}
		sink := &memorySink{}
		const connections, perSecond = 10, 1000
		g := openRate(t, db, &fakeStream{}, sink, connections,
			engine.Workload{TargetQPS: rate(perSecond), MaxInFlight: 10_000})
		g.Start(engine.PhaseMeasurement)
		time.Sleep(60 * time.Second)
		g.Stop()
		var s engine.WorkerSnapshot
		if err := settle(g, db, sink, time.Minute); err != nil {
			t.Error(err)
		}
		g.Collect(&s)
		var all []float64
		for _, r := range sink.recs {
			all = append(all, float64(r.Elapsed)/1e9)
			if r.Elapsed-r.ScheduleLag-r.PoolWait > int64(frozen) || r.ScheduleLag != 0 {
				t.Fatalf("service time of %+v", r)
			}
		}
		slices.Sort(all)
		// Ten connections of a millisecond drain ten thousand a second: ρ is 0.1.
		want := 1.4 - 0.6*(1-0.1)
		if got := all[len(all)*99/100]; math.Abs(got-want) > 0.02*want {
			t.Errorf("P99 is %.4f s, %.4f by the theory", got, want)
		}
		if got := s.Dropped; got != 0 || s.Scheduled != s.Started {
			t.Errorf("%d dropped, %d scheduled, %d started", got, s.Scheduled, s.Started)
		}
	})
}

func TestOpenLoopDropsBeyondItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &fakeDB{latency: between(100*time.Millisecond, 100*time.Millisecond)}
		sink := &memorySink{}
		g := openRate(t, db, &fakeStream{}, sink, 2, engine.Workload{TargetQPS: rate(100), MaxInFlight: 5})
		g.Start(engine.PhaseWarmup)
		time.Sleep(time.Second - time.Millisecond)
		g.SetPhase(engine.PhaseMeasurement)
		time.Sleep(10*time.Second + 6*time.Millisecond)
		var s engine.WorkerSnapshot
		g.Collect(&s)
		if s.InFlight < 4 || s.InFlight != s.Waiting+2 || s.TargetQPS == nil || *s.TargetQPS != 100 {
			t.Errorf("%d in flight, %d waiting, rate %v", s.InFlight, s.Waiting, s.TargetQPS)
		}
		// Two connections take twenty a second; the rest of a hundred is dropped.
		if s.Dropped < 795 || s.Dropped > 805 || len(s.ByClass) != 0 || s.Scheduled != s.Started+s.Dropped+int64(s.InFlight) {
			t.Errorf("%d dropped, %v, %d scheduled, %d started", s.Dropped, s.ByClass, s.Scheduled, s.Started)
		}
		g.Stop()
		if err := settle(g, db, sink, time.Minute); err != nil {
			t.Error(err)
		}
		total := g.Totals()
		if total.Scheduled != 1101 || total.Dropped <= s.Dropped {
			t.Errorf("%+v", total)
		}
		for _, r := range sink.recs {
			// Five in flight on two connections: the wait is bounded by what is before it.
			if r.PoolWait > int64(200*time.Millisecond) {
				t.Fatalf("%+v", r)
			}
		}
	})
}

func TestOpenLoopPhaseIsThatOfTheDueTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &fakeDB{latency: between(300*time.Millisecond, 300*time.Millisecond)}
		sink := &memorySink{}
		g := openRate(t, db, &fakeStream{}, sink, 10, engine.Workload{TargetQPS: rate(30)})
		g.Start(engine.PhaseWarmup)
		time.Sleep(2*time.Second + time.Millisecond)
		change := time.Now().UnixNano()
		g.SetPhase(engine.PhaseMeasurement)
		time.Sleep(2 * time.Second)
		g.Stop()
		if err := settle(g, db, sink, time.Minute); err != nil {
			t.Error(err)
		}
		for _, r := range sink.recs {
			if r.Warmup != (r.DueAt < change) {
				t.Fatalf("%+v, the measurement began at %d", r, change)
			}
		}
	})
}

func TestWhatIsDueAtTheEndIsExecuted(t *testing.T) {
	for _, given := range []string{"ended", "given up", "cut off"} {
		t.Run(given, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := &fakeDB{latency: between(50*time.Millisecond, 50*time.Millisecond)}
				sink := &memorySink{}
				g := openRate(t, db, &fakeStream{}, sink, 1, engine.Workload{TargetQPS: rate(100)})
				g.Start(engine.PhaseMeasurement)
				time.Sleep(time.Second + 5*time.Millisecond)
				limit := time.Minute
				g.Stop()
				switch given {
				case "given up":
					g.DropQueued()
				case "cut off":
					limit = time.Second
				}
				if err := settle(g, db, sink, limit); err != nil {
					t.Error(err)
				}
				total := g.Totals()
				dropped := map[string]int64{"ended": 0, "given up": 101 - 21, "cut off": 101 - 41}[given]
				if total.Scheduled != 101 || total.Dropped != dropped {
					t.Errorf("%+v, %d dropped wanted", total, dropped)
				}
			})
		})
	}
}

func TestOpenLoopFollowsStages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &fakeDB{latency: between(time.Millisecond, time.Millisecond)}
		sink := &memorySink{}
		g := openRate(t, db, &fakeStream{}, sink, 20, engine.Workload{Stages: []engine.Stage{
			{DurationSeconds: 10, TargetQPS: rate(100), Ramp: engine.RampLinear},
			{DurationSeconds: 10, TargetQPS: rate(300), Ramp: engine.RampLinear},
			{DurationSeconds: 10, TargetQPS: rate(50), Ramp: engine.RampStep},
		}})
		g.Start(engine.PhaseWarmup)
		time.Sleep(time.Second - time.Microsecond)
		g.SetPhase(engine.PhaseMeasurement)
		for _, want := range []struct{ n, rate float64 }{{1000, 100}, {2000, 300}, {500, 50}} {
			before := g.Totals().Started
			time.Sleep(10*time.Second - time.Microsecond)
			var s engine.WorkerSnapshot
			g.Collect(&s)
			if n := float64(g.Totals().Started - before); math.Abs(n-want.n) > 2 || math.Abs(*s.TargetQPS-want.rate) > 0.1 {
				t.Errorf("%.0f operations, %.0f wanted; the rate is %v", n, want.n, *s.TargetQPS)
			}
			time.Sleep(time.Microsecond)
		}
		g.SetRate(1000, 0)
		before := g.Totals().Started
		time.Sleep(time.Second)
		if n := g.Totals().Started - before; n < 998 || n > 1002 {
			t.Errorf("%d operations in a second at 1000/s", n)
		}
		g.Stop()
		if err := settle(g, db, sink, time.Minute); err != nil {
			t.Error(err)
		}
	})
}

func TestClosedLoopFollowsStages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var groups []*Group
		db := &fakeDB{latency: between(time.Millisecond, time.Millisecond)}
		sinks := []*memorySink{{}, {}, {}}
		connections := func(n int) *int { return &n }
		for i := range 3 {
			cfg := fakeConfig(db, &fakeStream{}, sinks[i])
			cfg.Share = loadarrival.Share{Index: i, Of: 3}
			cfg.Workload = engine.Workload{ConcurrentConnections: 4, Stages: []engine.Stage{
				{DurationSeconds: 10, Connections: connections(24), Ramp: engine.RampLinear},
				{DurationSeconds: 5, Connections: connections(7), Ramp: engine.RampStep},
			}}
			g := open(t, cfg, engine.Spread(4, 3)[i])
			g.Start(engine.PhaseMeasurement)
			groups = append(groups, g)
		}
		total := func() (n, target int) {
			for _, g := range groups {
				var s engine.WorkerSnapshot
				g.Collect(&s)
				n += s.ActiveConnections
				target += s.TargetConnections
			}
			return n, target
		}
		time.Sleep(5*time.Second + 20*time.Millisecond)
		if n, target := total(); n != 14 || target != 14 {
			t.Errorf("%d of %d connections half way from 4 to 24", n, target)
		}
		time.Sleep(5*time.Second + 100*time.Millisecond)
		if n, target := total(); n != 7 || target != 7 {
			t.Errorf("%d of %d connections in a stage of 7", n, target)
		}
		for i, g := range groups {
			g.Stop()
			if i < 2 {
				_ = g.Close()
			}
		}
		_ = groups[2].Close()
		if db.open != 0 {
			t.Errorf("%d connections are open", db.open)
		}
	})
}

func TestTheWorkloadsDelaysAreASchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &fakeDB{latency: between(70*time.Millisecond, 70*time.Millisecond)}
		sink := &memorySink{}
		g := openRate(t, db, &fakeStream{think: 20 * time.Millisecond, limit: 500}, sink, 10,
			engine.Workload{Arrival: engine.ArrivalWorkload})
		begin := time.Now().UnixNano()
		g.Start(engine.PhaseMeasurement)
		<-g.Done()
		if err := settle(g, db, sink, time.Minute); err != nil {
			t.Error(err)
		}
		slices.SortFunc(sink.recs, func(a, b engine.Execution) int { return int(a.DueAt - b.DueAt) })
		if len(sink.recs) != 500 {
			t.Fatalf("%d records", len(sink.recs))
		}
		for i, r := range sink.recs {
			if want := begin + int64(i+1)*20e6; r.DueAt != want || r.StartedAt != want {
				t.Fatalf("operation %d is due at %d, %d wanted", i, r.DueAt, want)
			}
		}
	})
}

// TestWithoutWarmupTheFirstArrivalIsMeasured runs in real time: the clock has to move within Start.
func TestWithoutWarmupTheFirstArrivalIsMeasured(t *testing.T) {
	db := &fakeDB{}
	sink := &memorySink{}
	g := openRate(t, db, &fakeStream{limit: 20}, sink, 2, engine.Workload{Arrival: engine.ArrivalWorkload})
	g.Start(engine.PhaseMeasurement)
	<-g.Done()
	if err := settle(g, db, sink, time.Minute); err != nil {
		t.Error(err)
	}
	if total := g.Totals(); total.Started != 20 || total.Warmup != 0 {
		t.Errorf("%+v", total)
	}
}

func TestAWorkloadWithoutDelaysIsNoSchedule(t *testing.T) {
	db := &fakeDB{}
	sink := &memorySink{}
	cfg := fakeConfig(db, &fakeStream{}, sink)
	cfg.Workload = engine.Workload{LoadMode: engine.LoadQPS, Arrival: engine.ArrivalWorkload}
	cfg.maxBurst = 50_000
	g := open(t, cfg, 1)
	g.dispatcher.waiter = plainTimers{}
	g.Start(engine.PhaseMeasurement)
	if e := failure(t, g); e.Code != engine.CodePlugin {
		t.Errorf("%+v", e)
	}
	if err := settle(g, db, sink, time.Minute); err != nil {
		t.Error(err)
	}
}

// TestOpenLoopAccounts lets connections break, come and go while operations are dropped.
func TestOpenLoopAccounts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		workers := rapid.IntRange(1, 12).Draw(rt, "connections")
		perSecond := rapid.Float64Range(10, 3000).Draw(rt, "rate")
		limit := rapid.IntRange(1, 40).Draw(rt, "limit")
		arrival := rapid.SampledFrom([]engine.Arrival{engine.ArrivalConstant, engine.ArrivalPoisson}).Draw(rt, "arrival")
		breaks := rapid.IntRange(0, 3).Draw(rt, "breaks")
		reconnect := rapid.Int64Range(0, 30).Draw(rt, "reconnect")
		ends := rapid.SampledFrom([]string{"stop", "drop", "close", "stream"}).Draw(rt, "end")
		targets := rapid.SliceOfN(rapid.IntRange(0, 15), 0, 4).Draw(rt, "targets")
		synctest.Test(t, func(t *testing.T) {
			var n atomic.Int64
			db := &fakeDB{latency: between(0, 20*time.Millisecond), seen: map[int64]int{}}
			db.fail = func() (error, bool) {
				switch k := n.Add(1); {
				case breaks > 0 && k%int64(97*breaks) == 0:
					return errEOF, true
				case k%11 == 0:
					return errServer, false
				}
				return nil, false
			}
			sink := &memorySink{}
			stream := &fakeStream{group: rand.N(2) == 0}
			if ends == "stream" {
				stream.limit = 500
			}
			g := openRate(t, db, stream, sink, workers,
				engine.Workload{TargetQPS: &perSecond, Arrival: arrival, MaxInFlight: limit, ReconnectEvery: reconnect})
			g.Start(engine.PhaseWarmup)
			time.Sleep(300 * time.Millisecond)
			g.SetPhase(engine.PhaseMeasurement)
			for _, target := range targets {
				g.SetTarget(target, 100*time.Millisecond)
				time.Sleep(200 * time.Millisecond)
			}
			g.SetTarget(workers, 0)
			time.Sleep(time.Second)
			switch ends {
			case "stop":
				g.Stop()
			case "drop":
				g.Stop()
				g.DropQueued()
			case "close":
				_ = g.Close()
			case "stream":
				select {
				case <-g.Done():
				case <-time.After(5 * time.Minute):
					rt.Fatal("the stream does not end")
				}
			}
			if err := settle(g, db, sink, time.Minute); err != nil {
				rt.Fatal(err)
			}
			if got := g.Totals(); ends == "stream" && got.Scheduled != 500 {
				select {
				case <-g.Failed(): // every connection was lost at once
				default:
					rt.Fatalf("%+v of 500", got)
				}
			}
			for arg, times := range db.seen {
				if times > 1 {
					rt.Fatalf("operation %d was executed %d times", arg, times)
				}
			}
		})
	})
}
