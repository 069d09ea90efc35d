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

// fakeNodes are those that a server sees.
type fakeNodes struct {
	mu      sync.Mutex
	all     []clusternodes.NodeInfo
	dialing int // are being dialled
}

// setDialing has nodes be dialled, and none be there.
func (n *fakeNodes) setDialing(coming int) {
	n.set()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dialing = coming
}

func (n *fakeNodes) set(all ...clusternodes.NodeInfo) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = all
}

func (n *fakeNodes) Nodes() []clusternodes.NodeInfo {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.all
}

func (n *fakeNodes) Capacity() clusternodes.Capacity {
	n.mu.Lock()
	c := clusternodes.Capacity{None: true, Own: true, Coming: n.dialing, Nodes: n.dialing}
	n.mu.Unlock()
	for _, one := range n.Nodes() {
		c.None = false
		c.Connections += one.Capacity
	}
	return c
}

func node(id string, capacity int) clusternodes.NodeInfo {
	return clusternodes.NodeInfo{NodeID: id, AcceptingWork: true, Capacity: capacity}
}

func scenario(connections, workers int) engine.Scenario {
	return engine.Scenario{Workload: engine.Workload{ConcurrentConnections: connections},
		Scaling: engine.Scaling{Mode: engine.ScalingFixed, WorkerCount: workers}}
}

// testCluster are two servers on one store that share nodes.
type testCluster struct {
	t           *testing.T
	store       *fake.Store
	nodes       *fakeNodes
	controllers [2]*Controller
}

func newWorld(t *testing.T, wait time.Duration) *testCluster {
	w := &testCluster{t: t, store: fake.New(), nodes: &fakeNodes{}}
	for i := range w.controllers {
		owner := fmt.Sprint("server-", i)
		w.controllers[i] = New(Options{Store: w.store, Nodes: w.nodes, Owner: owner, WaitForNodes: wait, Log: zerolog.Nop(),
			Runs: waitingRuns{w, i}})
	}
	return w
}

// waitingRuns are the runs of a server.
type waitingRuns struct {
	*testCluster
	server int
}

func (w waitingRuns) StartWaiting(ctx context.Context, runID, _ string) error {
	return w.start(ctx, w.server, runID)
}

func (w waitingRuns) Cancel(ctx context.Context, runID string, _ engine.StopReason, why string) error {
	_, err := w.store.Transition(ctx, store.Transition{RunID: runID, To: engine.StatusCancelled, CancellationReason: why})
	return err
}

// authorizer is a function as an Authorizer.
type authorizer func(runID string) error

func (a authorizer) Authorize(_ context.Context, runID string) error { return a(runID) }

func (w *testCluster) start(ctx context.Context, server int, runID string) error {
	run, err := w.store.Run(ctx, runID)
	if err != nil {
		return err
	}
	d := w.controllers[server]
	a := d.Demand(run.Scenario,
		engine.Spread(run.Scenario.Workload.ConcurrentConnections, run.Scenario.Scaling.WorkerCount), "")
	_, err = w.store.Transition(ctx, store.Transition{RunID: runID, From: []engine.Status{engine.StatusPrepared},
		To: engine.StatusRunning, Owner: d.opts.Owner, Admission: a})
	if err != nil {
		return d.Enqueue(ctx, runID, "ada", a)
	}
	return nil
}

// requestStart makes a run and asks a server to start it.
func (w *testCluster) requestStart(server int, id string, connections, workers int) {
	w.t.Helper()
	if err := w.store.CreateRun(w.t.Context(), engine.Run{RunID: id, ResultID: id, WorkersExpected: workers,
		Scenario: scenario(connections, workers)}); err != nil {
		w.t.Fatal(err)
	}
	if err := w.start(w.t.Context(), server, id); err != nil {
		w.t.Fatal(err)
	}
}

func (w *testCluster) checkStatus(id string, want engine.Status) {
	w.t.Helper()
	if run, err := w.store.Run(w.t.Context(), id); err != nil || run.Status != want {
		w.t.Errorf("%s is %s, not %s: %v", id, run.Status, want, err)
	}
}

func (w *testCluster) end(id string) {
	w.t.Helper()
	for _, to := range []engine.Status{engine.StatusStopping, engine.StatusCompleted} {
		if _, err := w.store.Transition(w.t.Context(), store.Transition{RunID: id, To: to}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// runControllers has both servers look after those that wait, until the test ends.
func (w *testCluster) runControllers() {
	for _, d := range w.controllers {
		go d.Run(w.t.Context())
	}
}

// TestARunThatFindsNoRoomIsStartedByAnyServer, in order, and says meanwhile what it waits for.
func TestARunThatFindsNoRoomIsStartedByAnyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		w.nodes.set(node("a", 32), node("b", 32))
		w.runControllers()
		w.requestStart(0, "first", 48, 2)
		w.requestStart(1, "second", 48, 2)
		w.requestStart(0, "third", 8, 1)
		time.Sleep(time.Minute)
		w.checkStatus("first", engine.StatusRunning)
		w.checkStatus("second", engine.StatusPrepared)
		w.checkStatus("third", engine.StatusPrepared) // there would be room, and another waits before it
		said, err := w.controllers[0].Waiting(t.Context(), "second")
		if err != nil || said.Position != 1 || said.Connections != 48 ||
			said.Reason != "waits for 48 connections; 16 are free on 2 nodes" {
			t.Errorf("%+v, %v", said, err)
		}
		needs, err := w.controllers[1].ScalingNeeds(t.Context())
		if err != nil || needs.QueueDepth != 2 || needs.OldestSeconds != 60 || needs.RunsRunning != 1 ||
			needs.ReservedConnections != 48 || needs.WaitingConnections != 56 || needs.TypicalCapacity != 32 || needs.WantedNodes != 4 {
			t.Errorf("%+v, %v", needs, err)
		}
		if got := scrape(t, w.controllers[0]); got["loadstone_runs_waiting"] != 2 || got["loadstone_nodes_wanted"] != 4 ||
			got["loadstone_runs_oldest_wait_seconds"] < 59 || got["loadstone_nodes_reserved_connections"] != 48 {
			t.Errorf("metrics: %v", got)
		}
		w.end("first")
		time.Sleep(2 * time.Second)
		w.checkStatus("second", engine.StatusRunning)
		w.checkStatus("third", engine.StatusRunning)
		w.end("second")
		w.end("third")
		if needs, err = w.controllers[0].ScalingNeeds(
			t.Context(),
		); err != nil || needs.WantedNodes != 0 ||
			needs.QueueDepth != 0 {
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
		for _, d := range w.controllers {
			d.opts.Authorizer = authorizer(func(runID string) error {
				switch {
				case runID != "second":
					return nil
				case !known.Load():
					return &engine.Error{Code: engine.CodeUnavailable, Message: "The control store does not answer."}
				}
				return &engine.Error{Code: engine.CodeForbidden, Message: "It was not begun: ada is locked out."}
			})
		}
		w.requestStart(0, "first", 32, 1)
		w.requestStart(1, "second", 32, 1)
		w.requestStart(0, "third", 32, 1)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		for _, d := range w.controllers {
			go d.Run(ctx)
		}
		time.Sleep(5 * time.Second)
		w.end("first")
		time.Sleep(5 * time.Second)
		w.checkStatus("second", engine.StatusPrepared)
		w.checkStatus("third", engine.StatusPrepared)
		known.Store(true)
		time.Sleep(5 * time.Second)
		w.checkStatus("second", engine.StatusCancelled)
		if run, err := w.store.Run(t.Context(), "second"); err != nil ||
			*run.CancellationReason != "It was not begun: ada is locked out." {
			t.Errorf("%+v, %v", run, err)
		}
		w.checkStatus("third", engine.StatusRunning)
	})
}

// scrape are the metrics of a controller.
func scrape(t *testing.T, d *Controller) map[string]float64 {
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
			{scenario(48, 1), "48 connections of 1 run worker do not fit on the nodes, which hold 64 together and 32 each"},
			{scenario(64, 2), ""},
		} {
			err := w.controllers[0].CheckCapacity(c.sc, "")
			if c.says == "" && err != nil || c.says != "" && (!engine.HasCode(err, engine.CodeInvalid) ||
				!strings.Contains(engine.ErrorText(err), c.says)) {
				t.Errorf("%v, want %q", err, c.says)
			}
		}
		w = newWorld(t, 10*time.Minute)
		if err := w.controllers[0].CheckCapacity(scenario(100, 4), ""); err != nil {
			t.Error(err)
		}
		w.runControllers()
		w.requestStart(0, "grows", 64, 4)
		w.requestStart(0, "larger", 100, 1)
		time.Sleep(time.Minute)
		needs, err := w.controllers[1].ScalingNeeds(t.Context())
		if err != nil || needs.WantedNodes != 1 {
			t.Errorf("from none: %+v, %v", needs, err)
		}
		w.nodes.set(node("a", 32), node("b", 32))
		time.Sleep(2 * time.Second)
		w.checkStatus("grows", engine.StatusRunning)
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
		err := w.controllers[0].CheckCapacity(scenario(connections, 1), protocol.OwnNode)
		if want == "" && err != nil || want != "" && (!engine.HasCode(err, engine.CodeInvalid) ||
			!strings.Contains(engine.ErrorText(err), want)) {
			t.Errorf("%d: %v", connections, err)
		}
	}
}

// TestServersOwnNodesAreToldApart: all have one name, and each holds what it holds.
func TestServersOwnNodesAreToldApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		w.nodes.set(node(protocol.OwnNode, 16))
		w.requestStart(0, "r1", 16, 1)
		w.requestStart(1, "r2", 16, 1)
		w.checkStatus("r1", engine.StatusRunning)
		w.checkStatus("r2", engine.StatusRunning)
		needs, err := w.controllers[0].ScalingNeeds(t.Context())
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
		w.runControllers()
		w.requestStart(0, "first", 48, 2)
		w.requestStart(0, "large", 64, 2)
		w.requestStart(1, "small", 8, 1)
		w.requestStart(1, "smaller", 4, 1)
		w.nodes.set(node("a", 32))
		w.end("first")
		time.Sleep(placement.BypassAfter - 20*time.Second)
		w.checkStatus("small", engine.StatusPrepared)
		time.Sleep(25 * time.Second)
		w.checkStatus("small", engine.StatusRunning)
		w.checkStatus("smaller", engine.StatusRunning)
		w.checkStatus("large", engine.StatusPrepared)
		// One that is started now waits for nobody either.
		w.requestStart(0, "new", 8, 1)
		w.checkStatus("new", engine.StatusRunning)
		said, err := w.controllers[1].Waiting(t.Context(), "large")
		if err != nil || said.Position != 1 || said.Reason != "waits for 64 connections; they do not fit on 1 node, also "+
			"when nothing else runs; runs behind it are let by until nodes for it come" {
			t.Errorf("%+v, %v", said, err)
		}
		w.requestStart(0, "behind", 32, 1)
		if said, err = w.controllers[1].Waiting(t.Context(), "behind"); err != nil || said.Position != 1 ||
			said.Reason != "waits for 32 connections; 12 are free on 1 node" {
			t.Errorf("%+v, %v", said, err)
		}
		w.nodes.set(node("a", 32), node("b", 32))
		time.Sleep(2 * time.Second)
		w.checkStatus("behind", engine.StatusPrepared)
		for _, id := range []string{"small", "smaller", "new"} {
			w.end(id)
		}
		time.Sleep(2 * time.Second)
		w.checkStatus("large", engine.StatusRunning)
		w.checkStatus("behind", engine.StatusPrepared)
	})
}

// TestAServerThatComesLetsNobodyByAtFirst: its nodes are being dialled.
func TestAServerThatComesLetsNobodyByAtFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		w.nodes.set(node("a", 8))
		w.requestStart(0, "first", 8, 1)
		w.requestStart(0, "large", 16, 2)
		w.requestStart(0, "small", 4, 1)
		w.end("first")
		time.Sleep(10 * time.Minute) // no server is there
		go w.controllers[1].Run(t.Context())
		time.Sleep(placement.BypassAfter - 5*time.Second)
		w.checkStatus("small", engine.StatusPrepared)
		time.Sleep(10 * time.Second)
		w.checkStatus("small", engine.StatusRunning)
	})
}

// TestNodesThatAreDialledAreWaitedFor: a run that is started in the first moments of a server.
func TestNodesThatAreDialledAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		w.nodes.setDialing(2)
		if err := w.controllers[0].CheckCapacity(scenario(4, 1), ""); !engine.HasCode(err, engine.CodeUnavailable) {
			t.Errorf("before the nodes are opened: %v", err)
		}
		go w.controllers[0].Run(t.Context())
		time.Sleep(time.Second)
		for _, id := range []string{"large", "fits"} {
			sc := scenario(map[string]int{"fits": 4, "large": 64}[id], 1)
			if err := w.controllers[0].CheckCapacity(sc, ""); err != nil {
				t.Error(err)
			}
			w.requestStart(0, id, sc.Workload.ConcurrentConnections, 1)
			said, err := w.controllers[0].Waiting(t.Context(), id)
			if err != nil || !strings.Contains(said.Reason, "there is no node to carry them") ||
				!strings.Contains(said.Reason, "its nodes are being dialled, for 15s at most") {
				t.Errorf("%+v, %v", said, err)
			}
		}
		time.Sleep(3 * time.Second)
		w.nodes.set(node("a", 8))
		time.Sleep(2 * time.Second)
		w.checkStatus("fits", engine.StatusPrepared) // the first is let wait for the other node
		w.checkStatus("large", engine.StatusPrepared)
		time.Sleep(dialTimeout)
		run, err := w.store.Run(t.Context(), "large")
		if err != nil || run.Status != engine.StatusCancelled || run.CancellationReason == nil ||
			!strings.Contains(*run.CancellationReason, "No nodes for it came in 15s: ") {
			t.Errorf("%s, %v", run.Status, run.CancellationReason)
		}
		w.checkStatus("fits", engine.StatusRunning)
		w.nodes.setDialing(2) // and these have not come in the first moments
		if err := w.controllers[0].CheckCapacity(scenario(4, 1), ""); !engine.HasCode(err, engine.CodeUnavailable) {
			t.Errorf("nodes that are still being dialled after the first moments: %v", err)
		}
		w.nodes.setDialing(0)
		if err := w.controllers[0].CheckCapacity(scenario(4, 1), ""); !engine.HasCode(err, engine.CodeUnavailable) {
			t.Errorf("after the first moments: %v", err)
		}
	})
}

// TestAPendingRunIsKeptUntilTheLedgerShowsIt: the ledger may have been read before the run was let wait.
func TestAPendingRunIsKeptUntilTheLedgerShowsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		w.nodes.setDialing(1)
		d := w.controllers[0]
		d.dialDeadline = time.Now()
		d.addPending("run", d.Demand(scenario(4, 1), []int{4}, ""))
		for _, kept := range []bool{true, false} {
			if d.failExpired(t.Context(), store.Ledger{}, nil); d.isPending("run") != kept {
				t.Errorf("kept: %t, and it is to be %t", !kept, kept)
			}
			time.Sleep(dialTimeout + time.Second)
		}
	})
}

// TestAProcessOfItsOwnRunStartsNobodyElses, and waits for nobody else's.
func TestAProcessOfItsOwnRunStartsNobodyElses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		w.nodes.set(node("a", 8))
		w.requestStart(0, "first", 8, 1)
		w.requestStart(0, "second", 8, 1)
		w.end("first")
		w.nodes.set(node(protocol.OwnNode, 0))
		alone := w.controllers[1]
		alone.opts.Standalone = true
		go alone.Run(t.Context())
		time.Sleep(time.Minute)
		w.checkStatus("second", engine.StatusPrepared)
		w.requestStart(1, "own", 100, 1)
		w.checkStatus("own", engine.StatusRunning)
	})
}
