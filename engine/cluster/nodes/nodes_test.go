package nodes

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/protocoltest"
	"github.com/loadstone-db/loadstone/engine/cluster/version"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recordingListener notes what the nodes say.
type recordingListener struct {
	mu          sync.Mutex
	messages    []string
	parts       []Part
	states      []protocol.WorkerState
	quarantined []protocol.QuarantinedPart
	// rejected are run workers that were said not to begin.
	rejected []string
	// unknown are run workers that nobody carries; carried says of which runs nobody does.
	unknown []string
	carried func(runID string) bool
}

// missed are the run workers that were said to have failed.
func (h *recordingListener) missed() (ids []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.states {
		if s.Status == engine.WorkerFailed {
			ids = append(ids, s.WorkerID)
		}
	}
	return ids
}

func (h *recordingListener) UnknownWorker(from Node, w protocol.WorkerState) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unknown = append(h.unknown, from.ID()+" of "+w.RunID)
}

func (h *recordingListener) Receive(runID string, from Node, m protocol.FromNode) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch m := m.(type) {
	case protocol.WorkReady:
		h.parts = append(h.parts, Part{m, from})
	case protocol.RunRejected:
		h.rejected = append(h.rejected, m.RunID+"/"+m.WorkerID)
	case protocol.WorkerState:
		h.states = append(h.states, m)
	}
	h.messages = append(h.messages, from.ID()+" of "+runID)
	return h.carried == nil || h.carried(runID)
}

func (h *recordingListener) OwnedRuns(bool) []protocol.OwnedRun {
	return []protocol.OwnedRun{{RunID: "r", Epoch: 7}}
}

func (h *recordingListener) PartQuarantined(p protocol.QuarantinedPart) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.quarantined = append(h.quarantined, p)
}

// fakeNode is a node as a test plays it: it answers pings, and keeps what else it is told.
type fakeNode struct {
	protocol.NodeEnd
	mu       sync.Mutex
	received []protocol.ToNode
}

// send sends what the node says, and waits until it is taken in.
func (e *fakeNode) send(t *testing.T, m protocol.FromNode) {
	t.Helper()
	if err := e.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

func (e *fakeNode) serve(ctx context.Context, mute *atomic.Bool) {
	for {
		m, err := e.Receive(ctx)
		if err != nil {
			return
		}
		if p, ok := m.(protocol.Ping); ok {
			if !mute.Load() {
				_ = e.Send(ctx, protocol.Pong(p))
			}
			continue
		}
		e.mu.Lock()
		e.received = append(e.received, m)
		e.mu.Unlock()
	}
}

// messages is what the node was told besides pings.
func (e *fakeNode) messages() []protocol.ToNode {
	synctest.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.received)
}

// fleetTest is a fleet in virtual time, with nodes that the test plays.
type fleetTest struct {
	*Fleet
	*recordingListener
	t     *testing.T
	links []*protocol.Memory
	mute  atomic.Bool
	ctx   context.Context
	wg    sync.WaitGroup
}

func withFleet(t *testing.T, nodes int, test func(t *testing.T, f *fleetTest)) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleetTest{recordingListener: &recordingListener{}, t: t}
		var dialers []protocol.Dialer
		for range nodes {
			m := protocol.NewMemory()
			f.links, dialers = append(f.links, m), append(dialers, m)
		}
		f.Fleet = New(Options{Log: zerolog.Nop(), Dialers: dialers})
		var cancel context.CancelFunc
		f.ctx, cancel = context.WithCancel(t.Context())
		test(t, f)
		cancel()
		f.wg.Wait()
	})
}

func (f *fleetTest) open() {
	if err := f.Open(f.ctx, f.ctx, f.wg.Go, f.recordingListener); err != nil {
		f.t.Error(err)
	}
}

// node accepts a stream on a link, and answers its pings.
func (f *fleetTest) node(i int) *fakeNode {
	f.t.Helper()
	accepted, err := f.links[i].Accept(f.ctx)
	if err != nil {
		f.t.Fatal(err)
	}
	e := &fakeNode{NodeEnd: accepted}
	f.wg.Go(func() { e.serve(f.ctx, &f.mute) })
	return e
}

func hello(id string, capacity int) protocol.Hello {
	return protocol.Hello{NodeID: id, Protocol: version.Protocol, Session: id + "-process", Capacity: capacity}
}

// TestOpenKnowsWhatTheNodesStillHold: who finishes the runs of an earlier process has all
// parts before it begins, and tells their node when they are safe.
func TestOpenKnowsWhatTheNodesStillHold(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, f *fleetTest) {
		part := protocoltest.Announcement([]byte("x"))
		m := hello("a", 0)
		m.Parts, m.Quarantined = []protocol.WorkReady{part}, []protocol.QuarantinedPart{{RunID: "r", Name: "q"}}
		var e *fakeNode
		f.wg.Go(func() {
			e = f.node(0)
			_ = e.Send(f.ctx, m)
		})
		f.open()
		if len(f.parts) != 1 || len(f.quarantined) != 1 || !slices.Equal(f.messages, []string{"a of r"}) {
			t.Fatalf("heard %v, %d parts, %d aside", f.messages, len(f.parts), len(f.quarantined))
		}
		f.parts[0].Acknowledge()
		want := protocol.ArtifactAck{RunID: "r", WorkerID: "worker-0", Name: part.Artifact.Name, SHA256: part.Artifact.SHA256}
		if got := e.messages(); len(got) != 1 || got[0] != protocol.ToNode(want) {
			t.Errorf("told %+v", got)
		}
	})
}

func run(workers, connections int) (all []protocol.AssignRun) {
	for i := range workers {
		all = append(all, protocol.AssignRun{RunID: "r", ResultID: fmt.Sprint("test-", i), WorkerID: fmt.Sprint("worker-", i),
			WorkerGroupID: i, Connections: connections})
	}
	return all
}

// TestANodeThatIsSilentHoldsNobodyUp: the others are known, and it gets no run worker.
func TestANodeThatIsSilentHoldsNobodyUp(t *testing.T) {
	withFleet(t, 3, func(t *testing.T, f *fleetTest) {
		var a, c *fakeNode
		f.wg.Go(func() { a = f.node(0); _ = a.Send(f.ctx, hello("a", 10)) })
		f.wg.Go(func() { c = f.node(2); _ = c.Send(f.ctx, hello("c", 5)) })
		begin := time.Now()
		f.open()
		if took := time.Since(begin); took != helloTimeout {
			t.Errorf("opened after %v", took)
		}
		if c := f.Capacity(); c.None || c.Unlimited || c.Connections != 15 || c.Own || len(c.Out) != 0 {
			t.Errorf("%+v", c)
		}
		on, err := f.AssignWorkers(nil, run(4, 2)...)
		if err != nil {
			t.Fatal(err)
		}
		if at := count(on); at["a"] != 2 || at["c"] != 2 {
			t.Errorf("placed on %v", at)
		}
		// No room for two more of 5: none of them is placed.
		more := run(2, 5)
		more[0].RunID, more[1].RunID = "other", "other"
		if _, err := f.AssignWorkers(nil, more...); err == nil {
			t.Error("more was placed than fits")
		}
		if got := len(a.messages()) + len(c.messages()); got != 4 {
			t.Errorf("the nodes were told %d times", got)
		}
		// One drains, and one is lost.
		a.send(t, protocol.Status{AcceptingWork: false, Draining: true})
		if f.Capacity().Connections != 5 {
			t.Errorf("while one drains: %+v", f.Capacity())
		}
		_ = c.Close()
		synctest.Wait()
		if !f.Capacity().None {
			t.Errorf("with one draining and one lost: %+v", f.Capacity())
		}
		// The silent one comes at last, and takes any number.
		b := f.node(1)
		b.send(t, hello("b", 0))
		if on, err := f.AssignWorkers(nil, more...); err != nil || count(on)["b"] != 2 || !f.Capacity().Unlimited {
			t.Errorf("%v, %v, %+v", on, err, f.Capacity())
		}
	})
}

func count(nodes []Node) map[string]int {
	at := map[string]int{}
	for _, n := range nodes {
		at[n.ID()]++
	}
	return at
}

// TestANodeThatFallsSilentIsNoticed, although its stream stands, and is back with its first answer.
func TestANodeThatFallsSilentIsNoticed(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, f *fleetTest) {
		f.wg.Go(func() { _ = f.node(0).Send(f.ctx, hello("a", 10)) })
		f.open()
		time.Sleep(5500 * time.Millisecond)
		if f.Capacity().None {
			t.Fatal("a node that answers is out of rotation")
		}
		f.mute.Store(true)
		silent := time.Now()
		for !f.Capacity().None {
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
		}
		if took := time.Since(silent); took > 4*time.Second {
			t.Errorf("noticed after %v", took)
		}
		f.mute.Store(false)
		time.Sleep(11 * time.Second)
		if f.Capacity().None {
			t.Error("a node that answers again stays out of rotation")
		}
	})
}

// TestWhatANodeLostIsTold: a node whose process is another one holds nothing of what it
// had; what it salvaged is heard first.
func TestWhatANodeLostIsTold(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, f *fleetTest) {
		var e *fakeNode
		f.wg.Go(func() { e = f.node(0); _ = e.Send(f.ctx, hello("a", 10)) })
		f.open()
		if _, err := f.AssignWorkers(nil, run(1, 2)...); err != nil {
			t.Fatal(err)
		}
		e.send(t, protocol.RunAccepted{RunID: "r", WorkerID: "worker-0"})
		_ = e.Close()
		again := f.node(0)
		m := hello("a", 10)
		m.Session = "another"
		m.Parts = []protocol.WorkReady{protocoltest.Announcement([]byte("x"))}
		again.send(t, m)
		if len(f.parts) != 1 || len(f.states) != 1 {
			t.Fatalf("%d parts, states %+v", len(f.parts), f.states)
		}
		s := f.states[0]
		if s.Status != engine.WorkerFailed || s.ResultID != "test-0" || s.Err == nil || !strings.Contains(s.Err.Message,
			"restarted") {
			t.Errorf("%+v", s)
		}
	})
}

// TestAnEndIsAcknowledgedAlsoAfterTheStreamBroke: a node repeats it until the server knows.
func TestAnEndIsHeardAlsoAfterTheStreamBroke(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, f *fleetTest) {
		var e *fakeNode
		f.wg.Go(func() { e = f.node(0); _ = e.Send(f.ctx, hello("a", 10)) })
		f.open()
		if _, err := f.AssignWorkers(nil, run(1, 10)...); err != nil {
			t.Fatal(err)
		}
		e.send(t, protocol.RunAccepted{RunID: "r", WorkerID: "worker-0"})
		_ = e.Close()
		again := f.node(0)
		m := hello("a", 10)
		m.Workers = []protocol.WorkerState{{RunID: "r", ResultID: "test-0", WorkerID: "worker-0",
			Status: engine.WorkerCompleted}}
		again.send(t, m)
		// Who carries the run acknowledges it when it is stored.
		if got := again.messages(); len(got) != 0 || len(f.unknown) != 0 {
			t.Errorf("told %+v, strangers %v", got, f.unknown)
		}
		if len(f.states) != 1 || f.states[0].Status != engine.WorkerCompleted {
			t.Errorf("heard %+v", f.states)
		}
		// Its room is free again.
		if on, err := f.AssignWorkers(
			nil,
			protocol.AssignRun{RunID: "next", WorkerID: "worker-0", Connections: 10},
		); err != nil {
			t.Errorf("%v, %v", on, err)
		}
	})
}

// TestWhatNobodyAsksAboutIsEnded: a run worker of a run that is over, in the epoch in which it was
// placed. One of a run that nobody here carries may be another server's: the listener decides.
func TestWhatNobodyAsksAboutIsEnded(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, f *fleetTest) {
		var e *fakeNode
		m := hello("a", 10)
		m.Workers = []protocol.WorkerState{{RunID: "unknown", ResultID: "x", WorkerID: "worker-3",
			Status: engine.WorkerRunning}}
		f.wg.Go(func() { e = f.node(0); _ = e.Send(f.ctx, m) })
		f.carried = func(runID string) bool { return runID == "r" }
		f.open()
		stops := func() (ids []string) {
			for _, m := range e.messages() {
				if m, ok := m.(protocol.RunEvent); ok && m.Event.Type == engine.EventStop && m.Event.For(m.Event.Data.WorkerID, 0) {
					ids = append(ids, fmt.Sprintf("%s/%s in %d", m.Event.RunID, m.Event.Data.WorkerID, m.Epoch))
				}
			}
			return ids
		}
		if got := stops(); len(got) > 0 || !slices.Equal(f.unknown, []string{"a of unknown"}) {
			t.Errorf("stopped %v, strangers %v", got, f.unknown)
		}
		placed := run(1, 2)
		placed[0].Epoch = 7
		if _, err := f.AssignWorkers(nil, placed...); err != nil {
			t.Fatal(err)
		}
		f.ReleaseRun("r")
		if got := stops(); !slices.Equal(got, []string{"r/worker-0 in 7"}) {
			t.Errorf("stopped %v", got)
		}
	})
}

// TestTwoNodesWithOneNameAreNotMixed: the second is refused while the first is there.
func TestTwoNodesWithOneNameAreNotMixed(t *testing.T) {
	withFleet(t, 2, func(t *testing.T, f *fleetTest) {
		f.wg.Go(func() { _ = f.node(0).Send(f.ctx, hello("a", 10)) })
		var second *fakeNode
		f.wg.Go(func() {
			e := f.node(1)
			time.Sleep(time.Second)
			m := hello("a", 10)
			m.Session = "another"
			m.Parts = []protocol.WorkReady{protocoltest.Announcement([]byte("x"))}
			_ = e.Send(f.ctx, m)
			second = e
		})
		f.open()
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		if _, err := second.Receive(f.ctx); !errors.Is(err, protocol.ErrClosed) {
			t.Errorf("the stream of the second: %v", err)
		}
		if len(f.parts) != 0 || f.Capacity().Connections != 10 {
			t.Errorf("%d parts of the second were heard, %+v", len(f.parts), f.Capacity())
		}
	})
}

// TestWhatNodesCarryIsTakenOver: who takes a run over is told what its nodes hold, of those
// that are there and of those that come later, and what they do not hold is lost.
func TestWhatNodesCarryIsTakenOver(t *testing.T) {
	withFleet(t, 2, func(t *testing.T, f *fleetTest) {
		var a *fakeNode
		f.wg.Go(func() { a = f.node(0); _ = a.Send(f.ctx, hello("a", 10)) })
		f.open()
		carried := func(n int, node string) AdoptedWorker {
			return AdoptedWorker{AssignRun: run(3, 2)[n], Node: node}
		}
		state := protocol.RunState{RunID: "r", Epoch: 9, Started: true}
		nodes := f.Adopt(state, carried(0, "a"), carried(1, "a"), carried(2, "b"))
		if got := a.messages(); len(got) != 1 || !reflect.DeepEqual(got[0], protocol.ToNode(state)) {
			t.Fatalf("told %+v", got)
		}
		for i, want := range []string{"a", "a", "b"} {
			if nodes[i].ID() != want {
				t.Errorf("%d is on %s", i, nodes[i].ID())
			}
		}
		holding := func(node string, workers ...string) protocol.Hello {
			m := hello(node, 10)
			for _, id := range workers {
				m.Workers = append(m.Workers, protocol.WorkerState{RunID: "r", WorkerID: id, Status: engine.WorkerRunning})
			}
			return m
		}
		a.send(t, holding("a", "worker-0"))
		if got := f.missed(); !slices.Equal(got, []string{"worker-1"}) {
			t.Fatalf("lost %v", got)
		}
		b := f.node(1)
		b.send(t, holding("b", "worker-2"))
		if err := nodes[2].Send(protocol.RunState{RunID: "r", Epoch: 9, LastSequence: 4}); err != nil {
			t.Error(err)
		}
		if got := b.messages(); len(got) == 0 || got[len(got)-1].(protocol.RunState).LastSequence != 4 {
			t.Errorf("the node that came later was told %+v", got)
		}
		// What is taken over takes room.
		if _, err := f.AssignWorkers(nil, protocol.AssignRun{RunID: "next", WorkerID: "worker-0", Connections: 9},
			protocol.AssignRun{RunID: "next", WorkerID: "worker-1", Connections: 9}); err == nil {
			t.Error("two nodes of 10 that carry 2 took 18 more")
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := f.missed(); !slices.Equal(got, []string{"worker-1"}) {
			t.Errorf("lost %v", got)
		}
	})
}

// TestWhatANodeHoldsThatDoesNotComeIsLost: when it must have stopped by itself.
func TestWhatANodeHoldsThatDoesNotComeIsLost(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, f *fleetTest) {
		f.wg.Go(func() { _ = f.node(0).Send(f.ctx, hello("a", 10)) })
		f.open()
		f.Adopt(protocol.RunState{RunID: "r", Epoch: 9}, AdoptedWorker{AssignRun: run(1, 2)[0], Node: "gone"})
		time.Sleep(protocol.ContactTimeout)
		synctest.Wait()
		if got := f.missed(); len(got) > 0 {
			t.Fatalf("lost before its node must have stopped: %v", got)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := f.missed(); len(got) != 1 {
			t.Errorf("lost %v", got)
		}
	})
}

// network is who reaches databases by their DSN.
type network map[string]Reachability

func (n network) Reachability(dsn secret.Secret) Reachability { return n[dsn.Reveal()] }

// TestWhatOnlyTheServerReachesIsCarriedByItsOwnNode: a recorded run, and the server's own
// database, however many nodes there are beside it.
func TestWhatOnlyTheServerReachesIsCarriedByItsOwnNode(t *testing.T) {
	replayed := engine.Workload{ConcurrentConnections: 2, Feed: &engine.Feed{Run: "r"}}
	fed := engine.Workload{ConcurrentConnections: 2, Feed: &engine.Feed{CSV: "at_ms"}}
	reach := network{"home": FromSameMachine, "inside": FromServerOnly}
	place := func(f *fleetTest, run, dsn string, w engine.Workload, workers int) (on []string, err error) {
		var all []protocol.AssignRun
		for i := range workers {
			all = append(
				all,
				protocol.AssignRun{RunID: run, WorkerID: fmt.Sprint("w", i), Connections: 2, DSN: secret.New(dsn), Workload: w},
			)
		}
		nodes, err := f.AssignWorkers(nil, all...)
		for _, n := range nodes {
			on = append(on, n.ID())
		}
		return on, err
	}
	withFleet(t, 3, func(t *testing.T, f *fleetTest) {
		f.opts.Network = reach
		f.wg.Go(func() { _ = f.node(1).Send(f.ctx, hello("a", 100)) })
		f.wg.Go(func() { _ = f.node(2).Send(f.ctx, hello("b", 100)) })
		f.wg.Go(func() {
			time.Sleep(time.Second)
			_ = f.node(0).Send(f.ctx, hello(protocol.OwnNode, 10))
		})
		f.open()
		for _, tt := range []struct {
			run, dsn string
			workload engine.Workload
			on       string // of all run workers; empty: of several nodes
		}{{"replay", "away", replayed, protocol.OwnNode}, {"playground", "home", fed, protocol.OwnNode},
			{"any", "away", fed, ""}} {
			on, err := place(f, tt.run, tt.dsn, tt.workload, 2)
			if err != nil || tt.on == "" && on[0] == on[1] || tt.on != "" && (on[0] != tt.on || on[1] != tt.on) {
				t.Errorf("%s is on %v: %v", tt.run, on, err)
			}
		}
		for _, dsn := range []string{"home", "inside"} {
			large := engine.Workload{ConcurrentConnections: 11}
			if err := f.CheckReachable(engine.Scenario{Workload: large}, secret.New(dsn)); err == nil ||
				!strings.Contains(err.Error(), "more than the 10 of the server's own node") {
				t.Errorf("%s: %v", dsn, err)
			}
		}
		if err := f.CheckReachable(engine.Scenario{Workload: fed}, secret.New("inside")); err != nil {
			t.Error(err)
		}
		if _, err := place(f, "too much", "home", fed, 2); err == nil || !strings.Contains(err.Error(), protocol.OwnNode) {
			t.Errorf("more than the node has room for: %v", err)
		}
	})
	withFleet(t, 1, func(t *testing.T, f *fleetTest) {
		f.opts.Network = reach
		f.wg.Go(func() { _ = f.node(0).Send(f.ctx, hello("a", 100)) })
		f.open()
		if err := f.Capacity().Fits(engine.Scenario{Workload: replayed}); !engine.HasCode(err, engine.CodeUnsupported) {
			t.Errorf("a replay without a node that can read it: %v", err)
		}
		if err := f.Capacity().Fits(engine.Scenario{Workload: fed}); err != nil {
			t.Errorf("a feed that comes with the run: %v", err)
		}
		// What is in the server's process is refused before the run, by field.
		var e *engine.Error
		if err := f.CheckReachable(
			engine.Scenario{Workload: fed},
			secret.New("inside"),
		); !errors.As(err, &e) ||
			len(e.Fields) != 1 ||
			e.Fields[0].Field != "target.connection" {
			t.Errorf("a database of the server's process: %v", err)
		}
		if _, err := place(f, "inside", "inside", fed, 1); err == nil {
			t.Error("it is placed on another node")
		}
		for _, dsn := range []string{"home", "away"} {
			if err := f.CheckReachable(engine.Scenario{Workload: fed}, secret.New(dsn)); err != nil {
				t.Errorf("%s: %v", dsn, err)
			}
		}
		// It may be on the server's machine.
		if on, err := place(f, "playground", "home", fed, 1); err != nil || on[0] != "a" {
			t.Errorf("the playground without a node of the server's own: %v, %v", on, err)
		}
	})
}
