package admission

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	clusternodes "github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/cluster/placement"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/store/fake"
)

// nodes are those that a server sees.
type nodes struct {
	mu     sync.Mutex
	all    []clusternodes.InfoNode
	coming int // are being dialled
}

// dialled has nodes be dialled, and none be there.
func (n *nodes) dialled(coming int) {
	n.set()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.coming = coming
}

func (n *nodes) set(all ...clusternodes.InfoNode) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = all
}

func (n *nodes) Nodes() []clusternodes.InfoNode {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.all
}

func (n *nodes) Capacity() clusternodes.Capacity {
	n.mu.Lock()
	c := clusternodes.Capacity{None: true, Own: true, Coming: n.coming, Nodes: n.coming}
	n.mu.Unlock()
	for _, one := range n.Nodes() {
		c.None = false
		c.Connections += one.Capacity
	}
	return c
}

func node(id string, capacity int) clusternodes.InfoNode {
	return clusternodes.InfoNode{NodeID: id, AcceptingWork: true, Capacity: capacity}
}

func scenario(connections, workers int) engine.Scenario {
	return engine.Scenario{Workload: engine.Workload{ConcurrentConnections: connections},
		Scaling: engine.Scaling{Mode: engine.ScalingFixed, WorkerCount: workers}}
}

// world are two servers on one store that share nodes.
type world struct {
	t     *testing.T
	store *fake.Store
	nodes *nodes
	doors [2]*Doorman
}

func newWorld(t *testing.T, wait time.Duration) *world {
	w := &world{t: t, store: fake.New(), nodes: &nodes{}}
	for i := range w.doors {
		owner := fmt.Sprint("server-", i)
		w.doors[i] = New(Options{Store: w.store, Nodes: w.nodes, Owner: owner, WaitForNodes: wait, Log: zerolog.Nop(),
			Start: func(ctx context.Context, runID, _ string) error { return w.start(ctx, i, runID) },
			GiveUp: func(ctx context.Context, runID, why string) error {
				_, err := w.store.Transition(ctx, store.Transition{RunID: runID, To: engine.StatusCancelled,
					CancellationReason: why})
				return err
			}})
	}
	return w
}

func (w *world) start(ctx context.Context, server int, runID string) error {
	run, err := w.store.Run(ctx, runID)
	if err != nil {
		return err
	}
	d := w.doors[server]
	a := d.Needs(run.Scenario,
		engine.Spread(run.Scenario.Workload.ConcurrentConnections, run.Scenario.Scaling.WorkerCount), "")
	_, err = w.store.Transition(ctx, store.Transition{RunID: runID, From: []engine.Status{engine.StatusPrepared},
		To: engine.StatusRunning, Owner: d.opts.Owner, Room: a})
	if err != nil {
		return d.Wait(ctx, runID, "ada", a)
	}
	return nil
}

// ask makes a run and asks a server to start it.
func (w *world) ask(server int, id string, connections, workers int) {
	w.t.Helper()
	if err := w.store.CreateRun(w.t.Context(), engine.Run{RunID: id, ResultID: id, WorkersExpected: workers,
		Scenario: scenario(connections, workers)}); err != nil {
		w.t.Fatal(err)
	}
	if err := w.start(w.t.Context(), server, id); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) is(id string, want engine.Status) {
	w.t.Helper()
	if run, err := w.store.Run(w.t.Context(), id); err != nil || run.Status != want {
		w.t.Errorf("%s is %s, not %s: %v", id, run.Status, want, err)
	}
}

func (w *world) end(id string) {
	w.t.Helper()
	for _, to := range []engine.Status{engine.StatusStopping, engine.StatusCompleted} {
		if _, err := w.store.Transition(w.t.Context(), store.Transition{RunID: id, To: to}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// keep has both servers look after those that wait, until the test ends.
func (w *world) keep() {
	for _, d := range w.doors {
		go d.Keep(w.t.Context())
	}
}

// TestARunThatFindsNoRoomIsStartedByAnyServer, in order, and says meanwhile what it waits for.
func TestARunThatFindsNoRoomIsStartedByAnyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		w.nodes.set(node("a", 32), node("b", 32))
		w.keep()
		w.ask(0, "first", 48, 2)
		w.ask(1, "second", 48, 2)
		w.ask(0, "third", 8, 1)
		time.Sleep(time.Minute)
		w.is("first", engine.StatusRunning)
		w.is("second", engine.StatusPrepared)
		w.is("third", engine.StatusPrepared) // there would be room, and another waits before it
		said, err := w.doors[0].Waiting(t.Context(), "second")
		if err != nil || said.Position != 1 || said.Connections != 48 ||
			said.Reason != "waits for 48 connections; 16 are free on 2 nodes" {
			t.Errorf("%+v, %v", said, err)
		}
		needs, err := w.doors[1].Scaling(t.Context())
		if err != nil || needs.QueueDepth != 2 || needs.OldestSeconds != 60 || needs.RunsRunning != 1 ||
			needs.Held != 48 || needs.Wanting != 56 || needs.TypicalCapacity != 32 || needs.WantedNodes != 4 {
			t.Errorf("%+v, %v", needs, err)
		}
		if got := scraped(t, w.doors[0]); got["loadstone_runs_waiting"] != 2 || got["loadstone_nodes_wanted"] != 4 ||
			got["loadstone_runs_oldest_wait_seconds"] < 59 || got["loadstone_nodes_reserved_connections"] != 48 {
			t.Errorf("metrics: %v", got)
		}
		w.end("first")
		time.Sleep(2 * time.Second)
		w.is("second", engine.StatusRunning)
		w.is("third", engine.StatusRunning)
		w.end("second")
		w.end("third")
		if needs, err = w.doors[0].Scaling(t.Context()); err != nil || needs.WantedNodes != 0 || needs.QueueDepth != 0 {
			t.Errorf("idle: %+v, %v", needs, err)
		}
	})
}

// TestARunThatMayNotBeginAnyMoreIsEnded when room comes, with the reason, and holds up nobody behind it. While nobody
// knows, it waits.
func TestARunThatMayNotBeginAnyMoreIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		w.nodes.set(node("a", 32))
		var known atomic.Bool
		for _, d := range w.doors {
			d.opts.May = func(_ context.Context, runID string) error {
				switch {
				case runID != "second":
					return nil
				case !known.Load():
					return &engine.Error{Code: engine.CodeUnavailable, Message: "The control store does not answer."}
				}
				return &engine.Error{Code: engine.CodeForbidden, Message: "It was not begun: ada is locked out."}
			}
		}
		w.ask(0, "first", 32, 1)
		w.ask(1, "second", 32, 1)
		w.ask(0, "third", 32, 1)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		for _, d := range w.doors {
			go d.Keep(ctx)
		}
		time.Sleep(5 * time.Second)
		w.end("first")
		time.Sleep(5 * time.Second)
		w.is("second", engine.StatusPrepared)
		w.is("third", engine.StatusPrepared)
		known.Store(true)
		time.Sleep(5 * time.Second)
		w.is("second", engine.StatusCancelled)
		if run, err := w.store.Run(t.Context(), "second"); err != nil ||
			*run.CancellationReason != "It was not begun: ada is locked out." {
			t.Errorf("%+v, %v", run, err)
		}
		w.is("third", engine.StatusRunning)
	})
}

// scraped are the metrics of a doorman.
func scraped(t *testing.T, d *Doorman) map[string]float64 {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(d)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		values[f.GetName()] = f.GetMetric()[0].GetGauge().GetValue()
	}
	return values
}

// TestARunThatNoNodesCanHoldIsRefused by its field, with the figures, unless nodes come when they are wanted.
func TestARunThatNoNodesCanHoldIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		w.nodes.set(node("a", 32), node("b", 32))
		for _, c := range []struct {
			sc   engine.Scenario
			says string
		}{
			{scenario(100, 4), "100 connections are more than the 64 that the nodes hold"},
			{scenario(48, 1), "48 connections of 1 run worker(s) do not fit on the nodes, which hold 64 together and 32 each"},
			{scenario(64, 2), ""},
		} {
			err := w.doors[0].Fits(c.sc, "")
			if c.says == "" && err != nil || c.says != "" && (!engine.HasCode(err, engine.CodeInvalid) ||
				!strings.Contains(engine.Sentences(err), c.says)) {
				t.Errorf("%v, want %q", err, c.says)
			}
		}
		w = newWorld(t, 10*time.Minute)
		if err := w.doors[0].Fits(scenario(100, 4), ""); err != nil {
			t.Error(err)
		}
		w.keep()
		w.ask(0, "grows", 64, 4)
		w.ask(0, "larger", 100, 1)
		time.Sleep(time.Minute)
		needs, err := w.doors[1].Scaling(t.Context())
		if err != nil || needs.WantedNodes != 1 {
			t.Errorf("from none: %+v, %v", needs, err)
		}
		w.nodes.set(node("a", 32), node("b", 32))
		time.Sleep(2 * time.Second)
		w.is("grows", engine.StatusRunning)
		time.Sleep(10 * time.Minute)
		run, err := w.store.Run(t.Context(), "larger")
		if err != nil || run.Status != engine.StatusCancelled || run.CancellationReason == nil ||
			*run.CancellationReason != "No nodes came in 10m0s: the run waits for 100 connections; they do not fit on "+
				"2 nodes, also when nothing else runs" {
			t.Errorf("%s, %v", run.Status, err)
		}
	})
}

// TestWhatOnlyTheOwnNodeCanCarryIsMeasuredByIt: room on other nodes, and nodes that will come, are no help to it.
func TestWhatOnlyTheOwnNodeCanCarryIsMeasuredByIt(t *testing.T) {
	w := newWorld(t, 10*time.Minute)
	w.nodes.set(node(protocol.OwnNode, 16), node("a", 64))
	for connections, want := range map[int]string{16: "", 17: "17 connections do not fit on the server's own node, " +
		"which alone reaches what this run needs and holds 16"} {
		err := w.doors[0].Fits(scenario(connections, 1), protocol.OwnNode)
		if want == "" && err != nil || want != "" && (!engine.HasCode(err, engine.CodeInvalid) ||
			!strings.Contains(engine.Sentences(err), want)) {
			t.Errorf("%d: %v", connections, err)
		}
	}
}

// TestServersOwnNodesAreToldApart: all have one name, and each holds what it holds.
func TestServersOwnNodesAreToldApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		w.nodes.set(node(protocol.OwnNode, 16))
		w.ask(0, "r1", 16, 1)
		w.ask(1, "r2", 16, 1)
		w.is("r1", engine.StatusRunning)
		w.is("r2", engine.StatusRunning)
		needs, err := w.doors[0].Scaling(t.Context())
		if err != nil || len(needs.Nodes) != 2 || needs.WantedNodes != 0 || needs.Nodes[0].Reserved != 16 ||
			needs.Nodes[1].Reserved != 16 || needs.Nodes[0].NodeID != "local@server-0" {
			t.Errorf("%+v, %v", needs, err)
		}
	})
}

// TestRunsWhoseNodesHaveLeftAreLetBy after a minute, wherever it was seen that there are none; when nodes come, it is
// their turn again. A server that has just begun lets nobody by while its nodes are dialled.
func TestRunsWhoseNodesHaveLeftAreLetBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		w.nodes.set(node("a", 32), node("b", 32))
		w.keep()
		w.ask(0, "first", 48, 2)
		w.ask(0, "large", 64, 2)
		w.ask(1, "small", 8, 1)
		w.ask(1, "smaller", 4, 1)
		w.nodes.set(node("a", 32))
		w.end("first")
		time.Sleep(placement.PassAfter - 20*time.Second)
		w.is("small", engine.StatusPrepared)
		time.Sleep(25 * time.Second)
		w.is("small", engine.StatusRunning)
		w.is("smaller", engine.StatusRunning)
		w.is("large", engine.StatusPrepared)
		// One that is started now waits for nobody either.
		w.ask(0, "new", 8, 1)
		w.is("new", engine.StatusRunning)
		said, err := w.doors[1].Waiting(t.Context(), "large")
		if err != nil || said.Position != 1 || said.Reason != "waits for 64 connections; they do not fit on 1 node, also "+
			"when nothing else runs; runs behind it are let by until nodes for it come" {
			t.Errorf("%+v, %v", said, err)
		}
		w.ask(0, "behind", 32, 1)
		if said, err = w.doors[1].Waiting(t.Context(), "behind"); err != nil || said.Position != 1 ||
			said.Reason != "waits for 32 connections; 12 are free on 1 node" {
			t.Errorf("%+v, %v", said, err)
		}
		w.nodes.set(node("a", 32), node("b", 32))
		time.Sleep(2 * time.Second)
		w.is("behind", engine.StatusPrepared)
		for _, id := range []string{"small", "smaller", "new"} {
			w.end(id)
		}
		time.Sleep(2 * time.Second)
		w.is("large", engine.StatusRunning)
		w.is("behind", engine.StatusPrepared)
	})
}

// TestAServerThatComesLetsNobodyByAtFirst: its nodes are being dialled.
func TestAServerThatComesLetsNobodyByAtFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		w.nodes.set(node("a", 8))
		w.ask(0, "first", 8, 1)
		w.ask(0, "large", 16, 2)
		w.ask(0, "small", 4, 1)
		w.end("first")
		time.Sleep(10 * time.Minute) // no server is there
		go w.doors[1].Keep(t.Context())
		time.Sleep(placement.PassAfter - 5*time.Second)
		w.is("small", engine.StatusPrepared)
		time.Sleep(10 * time.Second)
		w.is("small", engine.StatusRunning)
	})
}

// TestNodesThatAreDialledAreWaitedFor: a run that is started in the first moments of a server.
func TestNodesThatAreDialledAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		w.nodes.dialled(2)
		if err := w.doors[0].Fits(scenario(4, 1), ""); !engine.HasCode(err, engine.CodeUnavailable) {
			t.Errorf("before the nodes are opened: %v", err)
		}
		go w.doors[0].Keep(t.Context())
		time.Sleep(time.Second)
		for _, id := range []string{"large", "fits"} {
			sc := scenario(map[string]int{"fits": 4, "large": 64}[id], 1)
			if err := w.doors[0].Fits(sc, ""); err != nil {
				t.Error(err)
			}
			w.ask(0, id, sc.Workload.ConcurrentConnections, 1)
			said, err := w.doors[0].Waiting(t.Context(), id)
			if err != nil || !strings.Contains(said.Reason, "there is no node to carry them") ||
				!strings.Contains(said.Reason, "its nodes are being dialled, for 15s at most") {
				t.Errorf("%+v, %v", said, err)
			}
		}
		time.Sleep(3 * time.Second)
		w.nodes.set(node("a", 8))
		time.Sleep(2 * time.Second)
		w.is("fits", engine.StatusPrepared) // the first is let wait for the other node
		w.is("large", engine.StatusPrepared)
		time.Sleep(dialLimit)
		run, err := w.store.Run(t.Context(), "large")
		if err != nil || run.Status != engine.StatusCancelled || run.CancellationReason == nil ||
			!strings.Contains(*run.CancellationReason, "No nodes for it came in 15s: ") {
			t.Errorf("%s, %v", run.Status, run.CancellationReason)
		}
		w.is("fits", engine.StatusRunning)
		w.nodes.dialled(2) // and these have not come in the first moments
		if err := w.doors[0].Fits(scenario(4, 1), ""); !engine.HasCode(err, engine.CodeUnavailable) {
			t.Errorf("nodes that are still being dialled after the first moments: %v", err)
		}
		w.nodes.dialled(0)
		if err := w.doors[0].Fits(scenario(4, 1), ""); !engine.HasCode(err, engine.CodeUnavailable) {
			t.Errorf("after the first moments: %v", err)
		}
	})
}

// TestAHopeIsKeptUntilTheLedgerShowsItsRun: the ledger may have been read before the run was let wait.
func TestAHopeIsKeptUntilTheLedgerShowsItsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		w.nodes.dialled(1)
		d := w.doors[0]
		d.opened = time.Now()
		d.hope("run", d.Needs(scenario(4, 1), []int{4}, ""))
		for _, kept := range []bool{true, false} {
			if d.despair(t.Context(), store.Ledger{}, nil); d.hoped("run") != kept {
				t.Errorf("kept: %t, and it is to be %t", !kept, kept)
			}
			time.Sleep(dialLimit + time.Second)
		}
	})
}

// TestAProcessOfItsOwnRunStartsNobodyElses, and waits for nobody else's.
func TestAProcessOfItsOwnRunStartsNobodyElses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		w.nodes.set(node("a", 8))
		w.ask(0, "first", 8, 1)
		w.ask(0, "second", 8, 1)
		w.end("first")
		w.nodes.set(node(protocol.OwnNode, 0))
		alone := w.doors[1]
		alone.opts.Alone = true
		go alone.Keep(t.Context())
		time.Sleep(time.Minute)
		w.is("second", engine.StatusPrepared)
		w.ask(1, "own", 100, 1)
		w.is("own", engine.StatusRunning)
	})
}
