package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/worker/load/record"
)

func open(t *testing.T, cfg Config, connections int) *Group {
	t.Helper()
	g, err := Open(t.Context(), cfg, connections, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// settle ends the group and returns what does not add up.
func settle(g *Group, db *fakeDB, sink *memorySink, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := g.Drain(ctx); err != nil {
		return fmt.Errorf("draining: %w", err)
	}
	if err := g.Close(); err != nil {
		return fmt.Errorf("closing: %w", err)
	}
	t := g.Totals()
	if t.Scheduled != t.Started+t.Dropped || t.Started != t.Succeeded+t.Failed || t.Recorded != t.Started ||
		int(t.Recorded+t.Statements) != len(sink.recs) {
		return fmt.Errorf("%+v with %d records", t, len(sink.recs))
	}
	// Each connection's records are complete and in order.
	next := map[uint32]uint32{}
	var failed, warm int64
	var inside int64
	for _, r := range sink.recs {
		if r.Position != 0 { // its transaction follows
			if r.Seq != next[r.ConnectionID] {
				return fmt.Errorf("connection %d: a statement of %d follows %d", r.ConnectionID, r.Seq, next[r.ConnectionID])
			}
			inside++
			continue
		}
		if r.Seq != next[r.ConnectionID] {
			return fmt.Errorf("connection %d: record %d follows %d", r.ConnectionID, r.Seq, next[r.ConnectionID])
		}
		next[r.ConnectionID]++
		if !r.Success {
			failed++
		}
		if r.Success != (r.ErrorID == 0) {
			return fmt.Errorf("success %v with error %d", r.Success, r.ErrorID)
		}
		if r.Warmup {
			warm++
		}
	}
	if inside != t.Statements {
		return fmt.Errorf("%d statements of transactions, totals %+v", inside, t)
	}
	if failed != t.Failed || warm != t.Warmup {
		return fmt.Errorf("%d failed and %d warm-up records, totals %+v", failed, warm, t)
	}
	if db.open != 0 {
		return fmt.Errorf("%d connections are still open", db.open)
	}
	return nil
}

func TestPhasesAndFigures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &fakeDB{latency: between(time.Millisecond, time.Millisecond)}
		sink := &memorySink{}
		g := open(t, fakeConfig(db, &fakeStream{}, sink), 4)
		time.Sleep(time.Second)
		if got := g.Totals(); got.Started != 0 {
			t.Fatalf("operations before Start: %+v", got)
		}
		g.Start(engine.PhaseWarmup)
		time.Sleep(time.Second + 500*time.Microsecond)
		var s engine.WorkerSnapshot
		g.Collect(&s)
		if s.Started != 4000 || s.TickStarted != 4000 || s.ActiveConnections != 4 || s.TargetConnections != 4 {
			t.Errorf("after a second: %d started, %d in the tick, %d of %d connections", s.Started, s.TickStarted,
				s.ActiveConnections, s.TargetConnections)
		}
		g.SetPhase(engine.PhaseMeasurement)
		g.Collect(&s)
		if s.Started != 0 {
			t.Errorf("the measurement begins with %d", s.Started)
		}
		time.Sleep(2 * time.Second)
		g.Collect(&s)
		// The four that were in flight at the change belong to the warm-up.
		if s.Started != 8000-4 || s.ByKind[engine.KindPointLookup].Count != s.Started || s.TickStarted != 8000 ||
			s.TickSeconds != 2 {
			t.Errorf("measurement: %d started, %d in %v s", s.Started, s.TickStarted, s.TickSeconds)
		}
		if h := s.PhaseLatency; h.Min != 1e6 || h.Max != 1e6 || h.Sum != s.Started*1e6 {
			t.Errorf("latency %+v", h)
		}
		if err := settle(g, db, sink, time.Minute); err != nil {
			t.Error(err)
		}
		if got := g.Totals(); got.Warmup != 4004 || got.Started != 12004 {
			t.Errorf("totals %+v", got)
		}
		g.Collect(&s)
		if s.ActiveConnections != 0 || s.Started != 8000 {
			t.Errorf("at the end: %d connections, %d started", s.ActiveConnections, s.Started)
		}
	})
}

func TestStreamsEndIsClean(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &fakeDB{latency: between(0, 3*time.Millisecond), seen: map[int64]int{}}
		sink := &memorySink{}
		g := open(t, fakeConfig(db, &fakeStream{limit: 1000}, sink), 7)
		g.Start(engine.PhaseMeasurement)
		<-g.Done()
		if err := settle(g, db, sink, time.Minute); err != nil {
			t.Error(err)
		}
		if len(sink.recs) != 1000 || len(db.seen) != 1000 {
			t.Errorf("%d records of %d operations, 1000 given", len(sink.recs), len(db.seen))
		}
	})
}

func TestThinkTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &fakeDB{latency: between(10*time.Millisecond, 10*time.Millisecond)}
		sink := &memorySink{}
		cfg := fakeConfig(db, &fakeStream{think: 20 * time.Millisecond}, sink)
		cfg.Workload.ThinkTimeMs = 70
		g := open(t, cfg, 2)
		g.Start(engine.PhaseMeasurement)
		time.Sleep(999 * time.Millisecond)
		begin := time.Now()
		g.Stop()
		<-g.Done()
		if d := time.Since(begin); d > 11*time.Millisecond {
			t.Errorf("stopping took %v of a think time", d)
		}
		if err := settle(g, db, sink, time.Minute); err != nil {
			t.Error(err)
		}
		if n := len(sink.recs); n != 2*10 {
			t.Errorf("%d operations of 100 ms in a second on two connections", n)
		}
	})
}

func TestTransactionsAreOneExecution(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &fakeDB{latency: between(time.Millisecond, time.Millisecond), fail: func() (error, bool) {
			if rand.N(3) == 0 {
				return errServer, false
			}
			return nil, false
		}}
		sink := &memorySink{}
		g := open(t, fakeConfig(db, &fakeStream{group: true, limit: 300}, sink), 3)
		g.Start(engine.PhaseMeasurement)
		<-g.Done()
		if err := settle(g, db, sink, time.Minute); err != nil {
			t.Error(err)
		}
		var names []string
		for _, r := range sink.recs[:2] {
			names = append(names, fmt.Sprint(r.Kind, r.Statement, r.Position))
		}
		if g.Totals().Started != 300 || fmt.Sprint(names) != "[GENERIC_SQL 65280 1 POINT_LOOKUP 0 2]" {
			t.Errorf("%+v, the first records %v", g.Totals(), names)
		}
		for _, r := range sink.recs {
			if r.Position == 0 && (r.Kind != engine.KindTransaction || r.Statement != 0) {
				t.Errorf("%+v", r)
			}
		}
	})
}

func TestRampAddsAndRetires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &fakeDB{latency: between(time.Millisecond, 5*time.Millisecond)}
		sink := &memorySink{}
		g := open(t, fakeConfig(db, &fakeStream{}, sink), 2)
		g.Start(engine.PhaseMeasurement)
		connections := func() int {
			var s engine.WorkerSnapshot
			g.Collect(&s)
			return s.ActiveConnections
		}
		g.SetTarget(22, 10*time.Second)
		time.Sleep(5 * time.Second)
		if n := connections(); n < 11 || n > 13 {
			t.Errorf("%d connections half way from 2 to 22", n)
		}
		time.Sleep(5300 * time.Millisecond)
		if n := connections(); n != 22 {
			t.Errorf("%d connections, 22 wanted", n)
		}
		g.SetTarget(3, 0)
		time.Sleep(10 * time.Millisecond)
		if n := connections(); n != 3 {
			t.Errorf("%d connections, 3 wanted", n)
		}
		g.SetTarget(0, 0)
		time.Sleep(time.Second)
		before := g.Totals().Started
		time.Sleep(time.Second)
		if after := g.Totals().Started; after != before {
			t.Errorf("%d operations without connections", after-before)
		}
		g.SetTarget(1, 0)
		time.Sleep(time.Second)
		if err := settle(g, db, sink, time.Minute); err != nil {
			t.Error(err)
		}
		select {
		case err := <-g.Failed():
			t.Error(err)
		default:
		}
	})
}

// cancelled counts records of that class.
func cancelled(g *Group, sink *memorySink) (n int) {
	for _, r := range sink.recs {
		if !r.Success && g.Error(r.ErrorID).Class == engine.ErrClassCancelled {
			n++
		}
	}
	return n
}

func TestDrainCutsOffWhatDoesNotEnd(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		t.Run(fmt.Sprintf("deaf=%v", deaf), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := &fakeDB{}
				db.hang.Store(true)
				db.deaf.Store(deaf)
				sink := &memorySink{}
				g := open(t, fakeConfig(db, &fakeStream{}, sink), 5)
				g.Start(engine.PhaseMeasurement)
				time.Sleep(time.Second)
				begin := time.Now()
				if err := settle(g, db, sink, 10*time.Second); err != nil {
					t.Error(err)
				}
				limit := 10 * time.Second
				if deaf {
					limit += cancelGrace
				}
				if d := time.Since(begin); d != limit {
					t.Errorf("draining took %v", d)
				}
				if n := cancelled(g, sink); n != 5 || len(sink.recs) != 5 {
					t.Errorf("%d of %d records are cancelled", n, len(sink.recs))
				}
			})
		})
	}
}

// TestDrainNeverWaitsWithoutEnd: a driver that comes back neither when its operation
// is cancelled nor when its connection is closed holds nobody up for good.
func TestDrainNeverWaitsWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &fakeDB{stuck: make(chan struct{})}
		db.hang.Store(true)
		sink := &memorySink{}
		g := open(t, fakeConfig(db, &fakeStream{}, sink), 3)
		g.Start(engine.PhaseMeasurement)
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		begin := time.Now()
		err := g.Drain(ctx)
		if d := time.Since(begin); d != 10*time.Second+cancelGrace+closeGrace {
			t.Errorf("draining took %v", d)
		}
		if err == nil || !strings.Contains(err.Error(), "3 connections did not come back") {
			t.Errorf("draining gave %v", err)
		}
		begin = time.Now()
		if err := g.Close(); err == nil || time.Since(begin) > time.Second {
			t.Errorf("closing gave %v after %v", err, time.Since(begin))
		}
		// What was begun and has no record leaves the account open.
		if got := g.Totals(); got.Started != 3 || got.Succeeded+got.Failed != 0 || got.Recorded != 0 {
			t.Errorf("%+v", got)
		}
		close(db.stuck)
	})
}

// failure waits for the group's fatal error.
func failure(t *testing.T, g *Group) *engine.Error {
	t.Helper()
	select {
	case err := <-g.Failed():
		var e *engine.Error
		if !errors.As(err, &e) {
			t.Fatalf("%v is not for users", err)
		}
		return e
	case <-time.After(time.Minute):
		t.Fatal("the group goes on")
		return nil
	}
}

func TestLosingEveryConnectionIsFatal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := time.Now().Add(time.Second)
		db := &fakeDB{latency: between(time.Millisecond, time.Millisecond), fail: func() (error, bool) {
			return map[bool]error{true: errEOF}[time.Now().After(down)], true
		}}
		sink := &memorySink{}
		g := open(t, fakeConfig(db, &fakeStream{}, sink), 5)
		g.Start(engine.PhaseMeasurement)
		e := failure(t, g)
		if e.Code != engine.CodeTarget || !strings.HasPrefix(e.Message, "The target closed all connections: ") {
			t.Errorf("%+v", e)
		}
		if err := settle(g, db, sink, time.Minute); err != nil {
			t.Error(err)
		}
		if last := sink.recs[len(sink.recs)-1]; g.Error(last.ErrorID).Class != engine.ErrClassConnection {
			t.Errorf("the last record's error is %+v", g.Error(last.ErrorID))
		}
	})
}

func TestSingleLossesAreRepaired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		db := &fakeDB{latency: between(time.Millisecond, 2*time.Millisecond)}
		db.fail = func() (error, bool) {
			db.mu.Lock()
			defer db.mu.Unlock()
			if n++; n%1000 == 0 {
				return errEOF, true
			}
			return nil, false
		}
		sink := &memorySink{}
		g := open(t, fakeConfig(db, &fakeStream{}, sink), 5)
		g.Start(engine.PhaseMeasurement)
		time.Sleep(10 * time.Second)
		select {
		case err := <-g.Failed():
			t.Fatal(err)
		default:
		}
		var s engine.WorkerSnapshot
		g.Collect(&s)
		if s.Failed < 5 || s.ByClass[engine.ErrClassConnection] != s.Failed || len(s.LastErrors) != 1 {
			t.Errorf("%d failed, %v, %v", s.Failed, s.ByClass, s.LastErrors)
		}
		if err := settle(g, db, sink, time.Minute); err != nil {
			t.Error(err)
		}
		if db.opened < 10 {
			t.Errorf("%d connections opened", db.opened)
		}
	})
}

func TestPluginFailureIsFatal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &fakeDB{latency: between(time.Millisecond, time.Millisecond)}
		sink := &memorySink{}
		trap := fmt.Errorf("%w: unreachable executed in ls_fill", plugin.ErrTrapped)
		g := open(t, fakeConfig(db, &fakeStream{failAt: 500, failure: trap}, sink), 5)
		g.Start(engine.PhaseMeasurement)
		e := failure(t, g)
		if e.Code != engine.CodePlugin || !errors.Is(e, plugin.ErrTrapped) || !strings.Contains(e.Message, "unreachable") {
			t.Errorf("%+v", e)
		}
		if err := settle(g, db, sink, time.Minute); err != nil {
			t.Error(err)
		}
	})
}

func TestSinkFailureIsFatal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &fakeDB{latency: between(time.Millisecond, time.Millisecond)}
		full := &engine.Error{Code: engine.CodeInternal, Message: "The disk is full."}
		sink := &memorySink{err: full}
		g := open(t, fakeConfig(db, &fakeStream{}, sink), 5)
		g.Start(engine.PhaseMeasurement)
		if e := failure(t, g); e != full {
			t.Errorf("%+v", e)
		}
		if err := g.Drain(t.Context()); !errors.Is(err, full) {
			t.Errorf("draining: %v", err)
		}
		if g.Close(); db.open != 0 {
			t.Errorf("%d connections are still open", db.open)
		}
		if got := g.Totals(); got.Recorded != 0 || got.Started == 0 {
			t.Errorf("%+v", got)
		}
	})
}

func TestSlowSinkStallsAndLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &fakeDB{latency: between(time.Microsecond, time.Microsecond)}
		sink := &memorySink{delay: 100 * time.Millisecond}
		cfg := fakeConfig(db, &fakeStream{limit: 20 * record.ChunkSize}, sink)
		g, err := Open(t.Context(), cfg, 2, nil)
		if err != nil {
			t.Fatal(err)
		}
		g.pool.Mu.Lock()
		g.pool.Limit, g.pool.Free = 4, g.pool.Free[:4]
		g.pool.Made = 4
		g.pool.Mu.Unlock()
		g.Start(engine.PhaseMeasurement)
		<-g.Done()
		var s engine.WorkerSnapshot
		g.Collect(&s)
		if s.StalledMs <= 0 {
			t.Error("no stall was reported")
		}
		if err := settle(g, db, sink, time.Minute); err != nil {
			t.Error(err)
		}
		if len(sink.recs) != 20*record.ChunkSize {
			t.Errorf("%d records", len(sink.recs))
		}
	})
}

func TestOpenIsAllOrNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &fakeDB{}
		cfg := fakeConfig(db, &fakeStream{}, &memorySink{})
		_, err := Open(t.Context(), cfg, 40, func(open, want int) {
			if want != 40 {
				t.Errorf("%d of %d", open, want)
			}
			if open == 10 {
				db.refuse.Store(true)
			}
		})
		if e := engine.AsError(err); e.Code != engine.CodeTarget || e.Message != "Nothing accepts connections." {
			t.Errorf("%v", err)
		}
		if db.open != 0 {
			t.Errorf("%d connections are still open", db.open)
		}
	})
}

// TestAccountingAddsUp: whatever fails, whoever comes and goes, and whenever
// it ends, every operation that began is recorded exactly once.
func TestAccountingAddsUp(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		connections := rapid.IntRange(1, 12).Draw(rt, "connections")
		errorsIn := rapid.SampledFrom([]int{0, 2, 50}).Draw(rt, "errors in")
		breaksIn := rapid.SampledFrom([]int{0, 20, 500}).Draw(rt, "breaks in")
		hang := rapid.Bool().Draw(rt, "hang")
		deaf := rapid.Bool().Draw(rt, "deaf")
		limit := rapid.SampledFrom([]int{0, 0, 1500}).Draw(rt, "stream")
		drain := time.Duration(rapid.IntRange(0, 50).Draw(rt, "drain ms")) * time.Millisecond
		think := rapid.SampledFrom([]time.Duration{0, 5 * time.Millisecond}).Draw(rt, "think")
		sinkDelay := rapid.SampledFrom([]time.Duration{0, time.Millisecond}).Draw(rt, "sink")
		reconnect := rapid.SampledFrom([]int64{0, 7}).Draw(rt, "reconnect")
		type change struct{ target, ramp, pause int }
		changes := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) change {
			return change{rapid.IntRange(0, 20).Draw(rt, "target"), rapid.IntRange(0, 300).Draw(rt, "ramp"),
				rapid.IntRange(0, 300).Draw(rt, "pause")}
		}), 0, 4).Draw(rt, "changes")
		var problem error
		synctest.Test(t, func(t *testing.T) {
			db := &fakeDB{latency: between(0, 10*time.Millisecond), seen: map[int64]int{}}
			db.fail = func() (error, bool) {
				if breaksIn > 0 && rand.N(breaksIn) == 0 {
					return errEOF, true
				}
				if errorsIn > 0 && rand.N(errorsIn) == 0 {
					return errServer, false
				}
				return nil, false
			}
			sink := &memorySink{delay: sinkDelay}
			cfg := fakeConfig(db, &fakeStream{limit: limit, think: think}, sink)
			cfg.Workload.ReconnectEvery = reconnect
			g := open(t, cfg, connections)
			g.Start(engine.PhaseWarmup)
			time.Sleep(100 * time.Millisecond)
			g.SetPhase(engine.PhaseMeasurement)
			for _, c := range changes {
				g.SetTarget(c.target, time.Duration(c.ramp)*time.Millisecond)
				time.Sleep(time.Duration(c.pause) * time.Millisecond)
				g.Collect(&engine.WorkerSnapshot{})
			}
			db.hang.Store(hang)
			db.deaf.Store(deaf)
			time.Sleep(30 * time.Millisecond)
			if problem = settle(g, db, sink, drain); problem != nil {
				return
			}
			for arg, n := range db.seen {
				if n != 1 {
					problem = fmt.Errorf("operation %d ran %d times", arg, n)
				}
			}
			if len(db.seen) != len(sink.recs) {
				problem = fmt.Errorf("%d operations ran, %d records", len(db.seen), len(sink.recs))
			}
		})
		if problem != nil {
			rt.Fatal(problem)
		}
	})
}
