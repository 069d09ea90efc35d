package load

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/results/outage"
	"github.com/loadstone-db/loadstone/engine/target"
)

// errUnanswered is a loss after which nobody knows what became of the operation.
var errUnanswered = errors.Join(errEOF, target.ErrNoAnswer)

// down takes a database away, with all of its connections, and brings it back.
type down struct {
	db   *fakeDB
	away atomic.Bool
}

func newDown(db *fakeDB) *down {
	d := &down{db: db}
	db.fail = func() (error, bool) {
		if d.away.Load() {
			return errUnanswered, true
		}
		return nil, false
	}
	return d
}

func (d *down) set(away bool) {
	d.away.Store(away)
	d.db.refuse.Store(away)
}

// outagesOf are those of what was recorded.
func outagesOf(g *Group, recs []engine.Execution, began, ended int64) []engine.Outage {
	var courses outage.Courses
	var ops []outage.Operation
	for _, r := range recs {
		if r.Position != 0 {
			continue
		}
		op := outage.Operation{Kind: r.Kind, Due: r.DueAt, Ended: r.DueAt + r.Elapsed, OK: r.Success}
		if !op.OK {
			e := g.Error(r.ErrorID)
			op.Class, op.Code = e.Class, e.Code
		}
		ops = append(ops, op)
		courses.Add(began, op)
	}
	found := outage.Find(&courses, began, ended)
	for _, op := range ops {
		outage.Count(found, op)
	}
	return found
}

// TestAGroupReconnects: a closed loop goes through two outages, and its record shows them as they were.
func TestAGroupReconnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { reconnects(t, 20*time.Second, 3*time.Second, 2, func(*Config) {}) })
}

// TestAnOpenLoopReconnects: what is due meanwhile waits, or is dropped where more than max_in_flight wait. Its waits
// are precise, and so in real time.
func TestAnOpenLoopReconnects(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]int{"all wait": 0, "few may wait": 50} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dropped := reconnects(t, 1500*time.Millisecond, time.Second, 1, func(c *Config) {
				c.Workload.LoadMode, c.Workload.TargetQPS, c.Workload.MaxInFlight = engine.LoadQPS, new(200.0), limit
			})
			if (limit > 0) != (dropped > 0) {
				t.Errorf("%d were dropped", dropped)
			}
		})
	}
}

// reconnects takes a target away so many times, and returns what was dropped.
func reconnects(t *testing.T, well, ill time.Duration, times int, change func(*Config)) (dropped int64) {
	db := &fakeDB{latency: between(2*time.Millisecond, 6*time.Millisecond)}
	server := newDown(db)
	sink := &memorySink{}
	cfg := fakeConfig(db, &fakeStream{}, sink)
	cfg.Workload.OnDisconnect = engine.DisconnectReconnect
	cfg.Plan.Statements[0].Kind, cfg.Plan.Statements[0].Writes = engine.KindInsert, true
	change(&cfg)
	g := open(t, cfg, 10)
	g.Start(engine.PhaseMeasurement)
	began := g.clock.now()
	went, back := make([]int64, times), make([]int64, times)
	for i := range times {
		time.Sleep(well)
		went[i] = g.clock.now()
		server.set(true)
		time.Sleep(ill)
		back[i] = g.clock.now()
		server.set(false)
	}
	time.Sleep(well)
	select {
	case err := <-g.Failed():
		t.Fatal(err)
	default:
	}
	if open, want := g.Connections(); open != want {
		t.Errorf("%d of %d connections are open", open, want)
	}
	ended := g.clock.now()
	if err := settle(g, db, sink, time.Minute); err != nil {
		t.Fatal(err)
	}
	found := outagesOf(g, sink.recs, began, ended)
	if len(found) != times {
		t.Fatalf("%d outages: %+v", len(found), found)
	}
	for i, o := range found {
		// An operation that was under way when the target went may still end, and none that began later.
		if o.LastSuccess.UnixNano() > back[i] || o.FirstSuccess.UnixNano() < back[i] || o.DownSeconds < ill.Seconds()-0.1 {
			t.Errorf("outage %d: %s, from %v to %v after the loss", i, o.Text(), time.Duration(o.LastSuccess.UnixNano()-went[i]),
				time.Duration(o.FirstSuccess.UnixNano()-went[i]))
		}
		if o.Failed == 0 || o.Unknown != o.Failed {
			t.Errorf("%s", o.Text())
		}
		if times > 1 { // in virtual time nothing is late
			if late := o.LastSuccess.UnixNano() - went[i]; late > int64(10*time.Millisecond) {
				t.Errorf("outage %d began %v after the loss", i, time.Duration(late))
			}
			// A connection is tried again after a second at most.
			if late := o.FirstSuccess.UnixNano() - back[i]; late > int64(1100*time.Millisecond) {
				t.Errorf("outage %d ended %v after the return", i, time.Duration(late))
			}
			if o.Failed > 20 || o.FullRateSeconds == nil {
				t.Errorf("%s", o.Text())
			}
		}
	}
	return g.Totals().Dropped
}

// TestAGroupWaitsForItsTargetOnlySoLong: one that does not come back ends the run, with its reason.
func TestAGroupWaitsForItsTargetOnlySoLong(t *testing.T) {
	for name, accepts := range map[string]bool{"refuses": false, "accepts and closes": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := &fakeDB{latency: between(time.Millisecond, 3*time.Millisecond)}
				server := newDown(db)
				sink := &memorySink{}
				cfg := fakeConfig(db, &fakeStream{}, sink)
				cfg.Workload.OnDisconnect, cfg.Workload.ReconnectForSeconds = engine.DisconnectReconnect, new(30.0)
				g := open(t, cfg, 4)
				g.Start(engine.PhaseMeasurement)
				time.Sleep(time.Second)
				connects := func() int {
					db.mu.Lock()
					defer db.mu.Unlock()
					return db.opened
				}
				opened := connects()
				server.set(true)
				db.refuse.Store(!accepts)
				time.Sleep(29 * time.Second)
				select {
				case err := <-g.Failed():
					t.Fatalf("too soon: %v", err)
				default:
				}
				// Each connection is tried with pauses of up to a second, whatever it is that fails.
				if tries := connects() - opened; tries > 4*80 {
					t.Errorf("%d connections in 29 s", tries)
				}
				select {
				case err := <-g.Failed():
					if !engine.HasCode(err, engine.CodeTarget) || !strings.Contains(err.Error(), "has not answered for 30 s") {
						t.Error(err)
					}
				case <-time.After(5 * time.Second):
					t.Error("the group goes on")
				}
				if err := settle(g, db, sink, time.Minute); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestOutcomesThatAreNotKnown: a COMMIT and a write alone whose answers never came may have happened; reads, and what
// was not sent or not committed, have not.
func TestOutcomesThatAreNotKnown(t *testing.T) {
	const alone = plugin.StatementDelay // no statement of a transaction
	for name, c := range map[string]struct {
		lost    uint16 // the operation of a transaction
		write   bool
		unsent  bool
		policy  engine.OnDisconnect
		unknown bool
	}{
		"a write":                   {alone, true, false, engine.DisconnectReconnect, true},
		"a write that was not sent": {alone, true, true, engine.DisconnectReconnect, false},
		"a read":                    {alone, false, false, engine.DisconnectReconnect, false},
		"a BEGIN":                   {plugin.StatementBegin, true, false, engine.DisconnectReconnect, false},
		"a write of a transaction":  {0, true, false, engine.DisconnectReconnect, false},
		"a COMMIT":                  {plugin.StatementCommit, true, false, engine.DisconnectReconnect, true},
		"a run that does not go on": {alone, true, false, engine.DisconnectFail, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			db := &fakeDB{latency: between(time.Millisecond, time.Millisecond)}
			var done atomic.Bool
			once := func() bool { return !done.Swap(true) }
			switch {
			case c.unsent:
				db.fail = func() (error, bool) {
					if once() {
						return errEOF, true
					}
					return nil, false
				}
			case c.lost == alone:
				db.loses = func(uint16) bool { return once() }
			default:
				db.loses = func(statement uint16) bool { return statement == c.lost && once() }
			}
			sink := &memorySink{}
			cfg := fakeConfig(db, &fakeStream{group: c.lost != alone}, sink)
			cfg.Workload.OnDisconnect = c.policy
			if c.write {
				cfg.Plan.Statements[0].Kind, cfg.Plan.Statements[0].Writes = engine.KindUpdate, true
			}
			g := open(t, cfg, 2)
			g.Start(engine.PhaseMeasurement)
			time.Sleep(time.Second)
			if err := settle(g, db, sink, time.Minute); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			for _, r := range sink.recs {
				if r.Success || r.Position != 0 {
					continue
				}
				e := g.Error(r.ErrorID)
				if unknown := e.Code == engine.CodeUnknownOutcome; unknown != c.unknown || e.Class != engine.ErrClassConnection {
					t.Errorf("%s: %+v", name, e)
				}
				return
			}
			t.Errorf("%s: nothing failed", name)
		})
	}
}
