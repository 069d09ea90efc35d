package run_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/plugin"
	enginerun "github.com/loadstone-db/loadstone/engine/run"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/store/fake"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/worker"
	"github.com/loadstone-db/loadstone/engine/worker/load"
	"github.com/loadstone-db/loadstone/storage/results"
)

// farAway is a node in another process, with a clock of its own, at the end of a way that takes time.
type farAway struct {
	name string
	// ahead is how far its clock is.
	ahead time.Duration
	way   time.Duration
	// stalls is how long the way stands still once START is under way.
	stalls time.Duration
	link   *protocol.Memory

	mu    sync.Mutex
	begun time.Time
}

// Serve implements protocol.Listener.
func (n *farAway) Serve(parts protocol.Parts) { n.link.Serve(parts) }

// Accept implements protocol.Listener.
func (n *farAway) Accept(ctx context.Context) (protocol.NodeEnd, error) {
	end, err := n.link.Accept(ctx)
	return slowEnd{end, n}, err
}

type slowEnd struct {
	protocol.NodeEnd
	n *farAway
}

// Server implements protocol.Peer: the nodes of these tests have a way of their own to each server.
func (e slowEnd) Server() string { return e.n.name }

func (e slowEnd) Receive(ctx context.Context) (protocol.ToNode, error) {
	m, err := e.NodeEnd.Receive(ctx)
	time.Sleep(e.n.way)
	switch m := m.(type) {
	case protocol.AssignRun:
		m.Clock = nil // as another process gets it
		return m, err
	case protocol.RunEvent:
		if m.Event.Type == engine.EventStart {
			time.Sleep(e.n.stalls)
		}
	}
	return m, err
}

func (e slowEnd) Send(ctx context.Context, m protocol.FromNode) error {
	time.Sleep(e.n.way)
	return e.NodeEnd.Send(ctx, m)
}

// quietLoad is a load that issues nothing.
type quietLoad struct {
	n    *farAway
	done chan struct{}
	once sync.Once
}

func (l *quietLoad) Start(engine.Phase) {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	l.n.begun = time.Now()
}
func (l *quietLoad) SetPhase(engine.Phase)              {}
func (l *quietLoad) SetTarget(int, time.Duration)       {}
func (l *quietLoad) SetRate(float64, time.Duration)     {}
func (l *quietLoad) SetStep(uint16)                     {}
func (l *quietLoad) Connections() (open, target int)    { return 1, 1 }
func (l *quietLoad) Collect(*engine.WorkerSnapshot)     {}
func (l *quietLoad) SetDeadline(time.Time)              {}
func (l *quietLoad) Stop()                              { l.once.Do(func() { close(l.done) }) }
func (l *quietLoad) DropQueued()                        {}
func (l *quietLoad) Drain(context.Context) error        { return nil }
func (l *quietLoad) Close() error                       { return nil }
func (l *quietLoad) Failed() <-chan error               { return nil }
func (l *quietLoad) Done() <-chan struct{}              { return l.done }
func (l *quietLoad) Totals() engine.Totals              { return engine.Totals{} }
func (l *quietLoad) Error(uint32) engine.ExecutionError { return engine.ExecutionError{} }

// What a run worker needs besides.
type (
	quietHost     struct{ plugin.Host }
	quietWorkload struct{ plugin.Workload }
	quietStream   struct{ plugin.Stream }
	quietDriver   struct{ target.Driver }
	quietDatabase struct{ target.Database }
)

func (quietHost) Workload(context.Context, string) (plugin.Workload, error) {
	return quietWorkload{}, nil
}
func (quietWorkload) Open(context.Context, plugin.OpenRequest, []engine.Statement) (plugin.Stream, error) {
	return quietStream{}, nil
}
func (quietStream) Close() error                                { return nil }
func (quietDriver) Name() string                                { return "postgres" }
func (quietDriver) Open(target.Config) (target.Database, error) { return quietDatabase{}, nil }
func (quietDatabase) Close() error                              { return nil }

// lazyStore takes its time for a transition.
type lazyStore struct {
	*fake.Store
	takes time.Duration
}

func (s lazyStore) Transition(ctx context.Context, t store.Transition) ([]engine.Event, error) {
	time.Sleep(s.takes)
	return s.Store.Transition(ctx, t)
}

// begins carries a run on the nodes, in virtual time.
func begins(t *testing.T, storeTakes time.Duration, nodes []*farAway) engine.RunDetail {
	t.Helper()
	folder, err := results.Open(filepath.Join(t.TempDir(), "results"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	var dialers []protocol.Dialer
	for _, n := range nodes {
		n.link = protocol.NewMemory()
		dialers = append(dialers, n.link)
		w := worker.NewNode(
			worker.Options{NodeID: n.name, Sample: sampleMachine(), Plugins: quietHost{}, SpoolDir: t.TempDir(), Reserve: -1,
				Capacity: 10, Drivers: map[string]target.Driver{"postgres": quietDriver{}}, Log: zerolog.Nop(),
				Clock: func() time.Time { return time.Now().Add(n.ahead) },
				OpenLoad: func(context.Context, load.Config, int, func(int, int)) (worker.Load, error) {
					return &quietLoad{n: n, done: make(chan struct{})}, nil
				}},
		)
		serving.Go(func() { _ = w.Listen(ctx, n) })
	}
	kept := lazyStore{fake.New(), storeTakes}
	svc := enginerun.New(enginerun.Options{Store: kept, Results: folder, Plugins: quietHost{},
		Drivers: map[string]target.Driver{"postgres": quietDriver{}}, Nodes: dialers, Log: zerolog.Nop(), Version: "test",
		TempDir: t.TempDir(), Plan: func(context.Context, prepare.Deps, engine.Scenario,
			func(engine.PrepareProgress)) (*prepare.Prepared, error) {
			time.Sleep(5 * time.Second) // the clocks have been compared by then
			return &prepare.Prepared{Plan: &engine.Plan{Driver: "postgres", KeySlots: 64}}, nil
		}})
	if err := svc.Open(ctx); err != nil {
		t.Fatal(err)
	}
	defer func() {
		closing, done := context.WithTimeout(context.Background(), 10*time.Minute)
		defer done()
		if err := svc.Close(closing); err != nil {
			t.Error(err)
		}
		cancel()
		serving.Wait()
	}()
	sc := engine.Scenario{Name: "together", Workload: engine.Workload{Plugin: "mix", LoadMode: engine.LoadConcurrency,
		ConcurrentConnections: len(nodes), WarmupSeconds: 2, DurationSeconds: 20, Repeat: 1},
		Scaling: engine.Scaling{Mode: engine.ScalingFixed, WorkerCount: len(nodes), PerWorkerCapacity: 1, MinWorkers: 1}}
	run := engine.Run{RunID: "run-1", ResultID: "run-1", RunName: "together", Scenario: sc, Status: engine.StatusPrepared,
		Phase: engine.PhasePreparing, WorkersExpected: len(nodes)}
	if err := kept.CreateRun(ctx, run); err != nil {
		t.Fatal(err)
	}
	if _, err := svc.Start(ctx, run.RunID, "tester"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(15 * time.Second) // it measures
	if p := svc.LiveState(run.RunID); p == nil || len(p.Workers) != len(nodes) {
		t.Errorf("live: %+v", p)
	} else {
		for _, w := range p.Workers {
			if w.LoadStart == nil || w.LoadStart.NodeID != w.NodeID || w.LoadStart.ClockErrorMs == nil {
				t.Errorf("live, %s: %+v", w.WorkerID, w.LoadStart)
			}
		}
	}
	if _, err := svc.Wait(ctx, run.RunID); err != nil {
		t.Fatal(err)
	}
	d, err := svc.Detail(ctx, run.RunID)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestAllNodesBeginAtOneInstant: their clocks are hours apart, and the ways to them differ; their
// loads begin within what their clocks may be wrong, which the run's notes say, and the run is
// stored as begun then.
func TestAllNodesBeginAtOneInstant(t *testing.T) {
	for name, c := range map[string]struct{ stalls, store time.Duration }{
		"in time": {}, "with a slow store": {store: 120 * time.Millisecond},
		"one of them late": {stalls: 1400 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				nodes := []*farAway{{name: "near", way: time.Millisecond}, {name: "far", way: 40 * time.Millisecond},
					{name: "middle", way: 10 * time.Millisecond, stalls: c.stalls}}
				nodes[0].ahead, nodes[1].ahead = time.Hour, -2*time.Hour
				d := begins(t, c.store, nodes)
				notes := strings.Join(d.Summary.ValidityDetail.Notes, " ")
				first, last := nodes[0].begun, nodes[0].begun
				for _, n := range nodes[1:] {
					if n.begun.Before(first) {
						first = n.begun
					}
					if n.begun.After(last) {
						last = n.begun
					}
				}
				if c.stalls == 0 && last.Sub(first) > 5*time.Millisecond || first.IsZero() {
					t.Errorf("the loads began %v apart", last.Sub(first))
				}
				if !strings.Contains(notes, "3 run workers on 3 nodes began within") ||
					strings.Contains(notes, "the latest") != (c.stalls > 0) {
					t.Error(notes)
				}
				for _, w := range d.Workers {
					b := w.Figures.LoadStart
					i := slices.IndexFunc(nodes, func(n *farAway) bool { return b != nil && n.name == b.NodeID })
					if i < 0 || b.ClockErrorMs == nil {
						t.Fatalf("%s: %+v", w.WorkerID, b)
					}
					late := time.Duration(b.LateMs * float64(time.Millisecond))
					if off := b.StartedAt.Sub(nodes[i].begun); engine.Milliseconds(off.Abs()) > *b.ClockErrorMs+1 ||
						*b.ClockErrorMs <= 0 || *b.ClockErrorMs > 100 {
						t.Errorf("%s began %v from when it did, to within %v ms", b.NodeID, off, *b.ClockErrorMs)
					}
					if behind := nodes[i].begun.Sub(first); (late - behind).Abs() > 60*time.Millisecond {
						t.Errorf("%s began %v after the first, and says that it was %v late", b.NodeID, behind, late)
					}
				}
				if off := d.WarmupStartTime.Sub(first); off.Abs() > 5*time.Millisecond {
					t.Errorf("the load is stored as begun %v from when it was", off)
				}
				if warm := d.WarmupEndTime.Sub(d.WarmupStartTime.Time); (warm - 2*time.Second).Abs() > 600*time.Millisecond {
					t.Errorf("the warm-up took %v", warm)
				}
				if d.Status != engine.StatusCompleted {
					t.Errorf("%s %+v", d.Status, d.Summary.ValidityDetail)
				}
			})
		})
	}
}
