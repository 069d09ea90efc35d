package nodes

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// fakeSource is a source that does what the test says.
type fakeSource struct {
	first   func(DialerSet)
	dialers chan DialerSet
}

func (s *fakeSource) Discover(_ context.Context, w DialerSet) { s.first(w) }

func (s *fakeSource) Watch(ctx context.Context, w DialerSet) {
	s.dialers <- w
	<-ctx.Done()
}

// closeCounter counts how often a way is closed.
type closeCounter struct {
	*protocol.Memory
	closed chan struct{}
}

func (c closeCounter) Close() error { close(c.closed); return nil }

// link is a link to a node that a source finds.
func (f *fleetTest) link() (closeCounter, int) {
	c := closeCounter{protocol.NewMemory(), make(chan struct{})}
	f.links = append(f.links, c.Memory)
	return c, len(f.links) - 1
}

func (c closeCounter) dial() (protocol.Dialer, error) { return c, nil }

func (c closeCounter) over() bool {
	synctest.Wait()
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// opened is a fleet with one node that its source has found before.
func sourcedFleet(t *testing.T, test func(f *fleetTest, w DialerSet, c closeCounter, e *fakeNode)) {
	withFleet(t, 0, func(t *testing.T, f *fleetTest) {
		c, link := f.link()
		s := &fakeSource{first: func(w DialerSet) {
			if err := w.Add("a", c.dial); err != nil {
				t.Error(err)
			}
		}, dialers: make(chan DialerSet, 1)}
		f.Fleet = New(Options{Log: zerolog.Nop(), Source: s})
		var e *fakeNode
		f.wg.Go(func() {
			e = f.node(link)
			_ = e.Send(f.ctx, hello("node-a", 4))
		})
		begin := time.Now()
		f.open()
		synctest.Wait()
		if f.Capacity().Connections != 4 || time.Since(begin) >= helloTimeout {
			t.Errorf("after %s there is room for %+v", time.Since(begin), f.Capacity())
		}
		test(f, <-s.dialers, c, e)
	})
}

func TestANodeThatIsFoundLaterCarriesLoad(t *testing.T) {
	sourcedFleet(t, func(f *fleetTest, w DialerSet, _ closeCounter, _ *fakeNode) {
		c, link := f.link()
		for range 2 { // twice is as good as once
			if err := w.Add("b", c.dial); err != nil {
				t.Error(err)
			}
		}
		f.node(link).send(f.t, hello("node-b", 8))
		if got := f.Capacity().Connections; got != 12 {
			t.Errorf("room for %d", got)
		}
		nodes, err := f.AssignWorkers(nil, protocol.AssignRun{RunID: "r", WorkerID: "w", Connections: 7})
		if err != nil || nodes[0].ID() != "node-b" {
			t.Errorf("%v, %v", nodes, err)
		}
		w.Remove("b")
		if over, got := c.over(), f.Capacity().Connections; !over || got != 4 {
			t.Errorf("after it is removed, room for %d, closed: %v", got, over)
		}
		if err := w.Add("c", func() (protocol.Dialer, error) { return nil, errors.New("no way") }); err == nil {
			t.Error("a way that cannot be made")
		}
	})
}

// TestAWayThatIsRetiredEndsWithItsStream: a name that is not resolved for a moment ends no load.
func TestAWayThatIsRetiredEndsWithItsStream(t *testing.T) {
	sourcedFleet(t, func(f *fleetTest, w DialerSet, c closeCounter, e *fakeNode) {
		w.Retire("a")
		time.Sleep(time.Minute)
		if f.Capacity().Connections != 4 || c.over() {
			t.Fatal("its stream has ended")
		}
		// It is there again, and its stream breaks: it is dialled.
		if err := w.Add("a", c.dial); err != nil {
			t.Error(err)
		}
		_ = e.Close()
		synctest.Wait()
		select {
		case <-w.Disconnected():
		default:
			t.Error("the source does not learn that a stream has broken")
		}
		e = f.node(0)
		e.send(f.t, hello("node-a", 4))
		w.Retire("a")
		_ = e.Close()
		time.Sleep(time.Minute)
		if !c.over() || !f.Capacity().None {
			t.Error("it is dialled for ever")
		}
		// What comes back is dialled anew.
		again, link := f.link()
		if err := w.Add("a", again.dial); err != nil {
			t.Error(err)
		}
		f.node(link).send(f.t, hello("node-a", 4))
		if f.Capacity().Connections != 4 {
			t.Error("it is not there again")
		}
	})
}

// TestANodeThatNobodyDialsIsForgotten when it is shown no longer, unless an operator wants something of it; one that
// is dialled stays, however long it is away.
func TestANodeThatNobodyDialsIsForgotten(t *testing.T) {
	sourcedFleet(t, func(f *fleetTest, w DialerSet, _ closeCounter, e *fakeNode) {
		c, link := f.link()
		if err := w.Add("b", c.dial); err != nil {
			t.Error(err)
		}
		other := f.node(link)
		other.send(f.t, hello("node-b", 8))
		kept, link := f.link()
		if err := w.Add("c", kept.dial); err != nil {
			t.Error(err)
		}
		f.node(link).send(f.t, hello("node-c", 8))
		f.Drain("node-c")
		_ = e.Close()
		w.Remove("b")
		w.Remove("c")
		_ = other.Close()
		knows := func(id string) bool {
			f.Fleet.mu.Lock()
			defer f.Fleet.mu.Unlock()
			_, ok := f.coord.Node(id)
			return ok || f.byID[id] != nil || f.shown[id] != shownState{}
		}
		time.Sleep(forgetAfter - time.Minute)
		synctest.Wait()
		if !knows("node-b") {
			t.Error("it is forgotten while it is shown")
		}
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if knows("node-b") {
			t.Error("it is never forgotten")
		}
		if !knows("node-c") {
			t.Error("what an operator wants of a node is forgotten with it")
		}
		if !knows("node-a") {
			t.Error("a node that is dialled is forgotten")
		}
	})
}

// TestARunWithoutANodeIsToldWhy, and what to do.
func TestARunWithoutANodeIsToldWhy(t *testing.T) {
	sc := engine.Scenario{Workload: engine.Workload{ConcurrentConnections: 1}}
	told := func(f *fleetTest) (message, hint string) {
		var e *engine.Error
		if !errors.As(f.Capacity().Fits(sc), &e) {
			t.Fatal("it fits")
		}
		return e.Message, e.Hint
	}
	sourcedFleet(t, func(f *fleetTest, _ DialerSet, _ closeCounter, e *fakeNode) {
		f.Drain("node-a")
		if m, h := told(f); !strings.Contains(m, "node-a: an operator has asked it to drain") || !strings.Contains(h,
			"node resume") {
			t.Errorf("drained: %s %s", m, h)
		}
		f.Resume("node-a")
		e.send(f.t, protocol.Status{AcceptingWork: true})
		_ = e.Close()
		synctest.Wait()
		if m, h := told(f); !strings.Contains(m, "node-a: its stream has broken") || strings.Contains(h, "resume") {
			t.Errorf("gone: %s %s", m, h)
		}
	})
	withFleet(t, 0, func(t *testing.T, f *fleetTest) {
		f.open()
		if m, h := told(f); !strings.Contains(m, "no node") || !strings.Contains(h, "--local-capacity") {
			t.Errorf("none: %s %s", m, h)
		}
	})
}

func TestAWayWithoutAStreamIsRetiredAtOnce(t *testing.T) {
	sourcedFleet(t, func(f *fleetTest, w DialerSet, _ closeCounter, _ *fakeNode) {
		c, _ := f.link()
		if err := w.Add("nobody", c.dial); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		w.Retire("nobody")
		if !c.over() {
			t.Error("nobody is dialled for ever")
		}
	})
}
