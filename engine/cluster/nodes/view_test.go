package nodes

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/version"
)

// cuttableDialer is a way with an address, which can be cut.
type cuttableDialer struct {
	*protocol.Memory
	address string
	mu      sync.Mutex
	cut     error
}

func (a *cuttableDialer) Address() string { return a.address }

func (a *cuttableDialer) Dial(ctx context.Context) (protocol.ServerEnd, error) {
	a.mu.Lock()
	err := a.cut
	a.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return a.Memory.Dial(ctx)
}

// watchedFleet is a fleet with what it told its watcher and its meter.
type watchedFleet struct {
	*fleetTest
	way    *cuttableDialer
	events []NodeEvent
	meter  countingMeter
}

// countingMeter counts what a Meter is told.
type countingMeter struct {
	mu                            sync.Mutex
	trips, connected, lost, given int
	preferred, accepted, rejected int
	after                         time.Duration
}

func (c *countingMeter) note(f func()) { c.mu.Lock(); defer c.mu.Unlock(); f() }

func (c *countingMeter) RoundTrip(time.Duration) { c.note(func() { c.trips++ }) }
func (c *countingMeter) Connected(after time.Duration) {
	c.note(func() { c.connected++; c.after = max(c.after, after) })
}
func (c *countingMeter) Disconnected() { c.note(func() { c.lost++ }) }
func (c *countingMeter) Assigned(w Work, preferred, _ bool) string {
	c.note(func() {
		if c.given++; preferred {
			c.preferred++
		}
	})
	return "context of " + w.RunID + " " + w.WorkerID + " " + w.NodeID
}
func (*countingMeter) Cancelled(Work, time.Duration)                    {}
func (c *countingMeter) FetchStarted(Work, time.Duration)               {}
func (c *countingMeter) Fetched(Work, int64, time.Duration, bool, bool) {}
func (c *countingMeter) Responded(_ Work, accepted bool, _ time.Duration) {
	c.note(func() {
		if accepted {
			c.accepted++
		} else {
			c.rejected++
		}
	})
}

func withWatchedFleet(t *testing.T, test func(t *testing.T, f *watchedFleet)) {
	withFleet(t, 1, func(t *testing.T, p *fleetTest) {
		f := &watchedFleet{fleetTest: p, way: &cuttableDialer{Memory: p.links[0], address: "n-1.example:9090"}}
		p.Fleet = New(Options{Log: zerolog.Nop(), Dialers: []protocol.Dialer{f.way}, Meter: &f.meter,
			Watcher: f})
		test(t, f)
	})
}

// RecordEvent implements Watcher.
func (f *watchedFleet) RecordEvent(e NodeEvent) { f.events = append(f.events, e) }

// history is what became of the node, in words.
func (f *watchedFleet) history() (states []string) {
	synctest.Wait()
	for _, e := range f.events {
		states = append(states, string(e.From)+">"+string(e.To))
	}
	return states
}

func (f *watchedFleet) one(t *testing.T) NodeInfo {
	t.Helper()
	synctest.Wait()
	all := f.Nodes()
	if len(all) != 1 {
		t.Fatalf("%d nodes: %+v", len(all), all)
	}
	return all[0]
}

// TestANodeIsShownFromItsAddressToItsLoss: what is seen of it at each turn, and the turns
// in the watcher's order.
func TestANodeIsShownFromItsAddressToItsLoss(t *testing.T) {
	withWatchedFleet(t, func(t *testing.T, f *watchedFleet) {
		f.way.cut = errors.New("connection refused")
		f.wg.Go(f.open)
		time.Sleep(time.Second)
		if n := f.one(t); n.NodeID != "" || n.State != NodeConnecting || n.Address != f.way.address ||
			n.Reason != "connection refused" || n.AcceptingWork || n.Local {
			t.Errorf("before it came: %+v", n)
		}
		f.way.mu.Lock()
		f.way.cut = nil
		f.way.mu.Unlock()
		e := f.node(0)
		h := hello("a", 10)
		h.Version = "1.2.3"
		e.send(t, h)
		e.send(t, protocol.Status{AcceptingWork: true, Resources: engine.Resources{CPUPercent: 7},
			ClockOffset: -3 * time.Millisecond, ClockError: time.Millisecond})
		if _, err := f.AssignWorkers(nil, run(2, 3)...); err != nil {
			t.Fatal(err)
		}
		e.send(t, protocol.RunAccepted{RunID: "r", WorkerID: "worker-0"})
		e.send(t, protocol.RunRejected{RunID: "r", WorkerID: "worker-1"})
		time.Sleep(1500 * time.Millisecond)
		n := f.one(t)
		if n.State != NodeActive || n.Health != engine.HealthHealthy || !n.AcceptingWork || n.OutReason != "" ||
			n.Version != "1.2.3" || n.Capacity != 10 || n.Used != 3 || n.Resources.CPUPercent != 7 || *n.ClockOffsetMs != 3 ||
			*n.ClockErrorMs != 1 || n.Since.IsZero() ||
			len(n.Workers) != 1 || n.Workers[0].WorkerID != "worker-0" || n.Workers[0].Connections != 3 || n.TimeoutMs < 500 {
			t.Errorf("while it works: %+v", n)
		}
		f.mute.Store(true)
		time.Sleep(10 * time.Second)
		if n := f.one(t); n.State != NodeProbing || n.AcceptingWork || !strings.Contains(n.OutReason, "heartbeats") {
			t.Errorf("while it is silent: %+v", n)
		}
		f.way.mu.Lock()
		f.way.cut = errors.New("no route to host")
		f.way.mu.Unlock()
		_ = e.Close()
		time.Sleep(25 * time.Second)
		if n := f.one(t); n.State != NodeUnreachable || n.Health != engine.HealthStale || n.Resources != nil ||
			!strings.Contains(n.Reason, "no route to host") || n.Misses == 0 {
			t.Errorf("while it is away: %+v", n)
		}
		time.Sleep(30 * time.Second)
		if n := f.one(t); n.Health != engine.HealthDead {
			t.Errorf("after a minute: %+v", n)
		}
		want := []string{">ACTIVE", "ACTIVE>PROBING", "PROBING>UNREACHABLE"}
		if got := f.history(); !slices.Equal(got, want) {
			t.Errorf("its course is %q, want %q", got, want)
		}
		m := &f.meter
		if m.trips < 2 || m.connected != 1 || m.lost != 1 || m.given != 2 || m.preferred != 2 || m.accepted != 1 ||
			m.rejected != 1 {
			t.Errorf("measured %+v", m)
		}
		// Back again: how long that took is measured.
		f.way.mu.Lock()
		f.way.cut = nil
		f.way.mu.Unlock()
		f.mute.Store(false)
		f.node(0).send(t, hello("a", 10))
		if n := f.one(t); n.State != NodeActive || m.after < 50*time.Second {
			t.Errorf("back: %+v after %v", n, m.after)
		}
	})
}

// TestANodeIsDrainedResumedAndRemoved by an operator, also before it has come.
func TestANodeIsDrainedResumedAndRemoved(t *testing.T) {
	withWatchedFleet(t, func(t *testing.T, f *watchedFleet) {
		f.Drain("a")
		f.wg.Go(f.open)
		e := f.node(0)
		e.send(t, hello("a", 10))
		if n := f.one(t); n.State != NodeDraining || n.DesiredState != DesiredDrain || n.AcceptingWork {
			t.Errorf("one that was to drain before it came: %+v", n)
		}
		drains := func() (over []bool) {
			for _, m := range e.messages() {
				if d, ok := m.(protocol.Drain); ok {
					over = append(over, d.Over)
				}
			}
			return over
		}
		e.send(t, protocol.Status{Draining: true})
		time.Sleep(time.Second)
		if n := f.one(t); time.Since(n.Since.Time) != time.Second {
			t.Errorf("it drains since %v", n.Since)
		}
		f.Resume("a")
		if n := f.one(t); n.State != NodeDraining || n.DesiredState != DesiredNone {
			t.Errorf("one that says that it drains: %+v", n)
		}
		e.send(t, protocol.Status{AcceptingWork: true})
		if n := f.one(t); n.State != NodeActive || !n.AcceptingWork {
			t.Errorf("one that was resumed: %+v", n)
		}
		if got := drains(); !slices.Equal(got, []bool{false, true}) {
			t.Errorf("it was told %v", got)
		}
		f.Remove("a")
		if n := f.one(t); n.State != NodeRemoved || n.DesiredState != DesiredRemove {
			t.Errorf("one that was removed: %+v", n)
		}
		// It tries again and again, and that is one line.
		for range 3 {
			again := f.node(0)
			again.send(t, hello("a", 10))
			time.Sleep(20 * time.Second)
		}
		if n := f.one(t); n.State != NodeRemoved {
			t.Errorf("one that came again: %+v", n)
		}
		refused := 0
		for _, e := range f.events {
			if e.Kind == NodeRefused {
				refused++
			}
		}
		if refused != 1 {
			t.Errorf("%d lines about it", refused)
		}
		f.Admit("a")
		f.node(0).send(t, hello("a", 10))
		if n := f.one(t); n.State != NodeActive || n.DesiredState != DesiredNone {
			t.Errorf("one that was let in again: %+v", n)
		}
	})
}

// TestANodeTwoMinorVersionsApartIsSentAway: the page and the log's event name both versions and the
// cure, no run worker is placed on it, and it is let in when it comes with a version that fits.
func TestANodeTwoMinorVersionsApartIsSentAway(t *testing.T) {
	withWatchedFleet(t, func(t *testing.T, f *watchedFleet) {
		f.opts.Version = "v1.4.0"
		f.wg.Go(f.open)
		greeting := func(of string, protocol int) {
			h := hello("a", 10)
			h.Version, h.Protocol = of, protocol
			f.node(0).send(t, h)
			time.Sleep(time.Second)
		}
		for range 3 {
			time.Sleep(20 * time.Second)
			greeting("v1.2.7", version.Protocol)
			if n := f.one(t); n.State != NodeUnreachable {
				t.Fatalf("it is let in: %+v", n)
			}
		}
		const why = "the node is Loadstone v1.2.7 and the server v1.4.0, which are more than one minor version apart: " +
			"upgrade the node to 1.4"
		n := f.one(t)
		if n.State != NodeUnreachable || n.Version != "v1.2.7" || n.AcceptingWork || n.Reason != why ||
			n.OutReason != why {
			t.Errorf("%+v", n)
		}
		if _, err := f.AssignWorkers(nil, run(2, 3)...); err == nil {
			t.Error("a run worker was placed on it")
		}
		sc := engine.Scenario{Workload: engine.Workload{ConcurrentConnections: 1}}
		if err := f.Capacity().Fits(sc); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("a run that does not find a node is told %v", err)
		}
		refused := 0
		for _, e := range f.events {
			if e.Kind == NodeRefused && strings.HasSuffix(e.Reason, why) {
				refused++
			}
		}
		if refused != 1 {
			t.Errorf("%d lines about it: %+v", refused, f.events)
		}
		// A later protocol of a program that was built between versions, and one that fits.
		greeting("8629e92", version.Protocol+2)
		if n := f.one(t); n.State != NodeUnreachable || !strings.Contains(n.Reason, "upgrade the server") {
			t.Errorf("%+v", n)
		}
		// One minor version apart, but from before nodes were told the sampled keys; or what is the
		// server's own.
		for protocol, why := range map[int]string{2: "keys of tables", 1: "own databases"} {
			greeting("v1.3.0", protocol)
			if n := f.one(t); n.State != NodeUnreachable || n.AcceptingWork || !strings.Contains(n.Reason, why) {
				t.Errorf("%+v", n)
			}
			if _, err := f.AssignWorkers(nil, run(2, 3)...); err == nil {
				t.Errorf("a node of protocol %d was given a run", protocol)
			}
		}
		greeting("v1.3.0", version.Protocol)
		if n := f.one(t); n.State != NodeActive || !n.AcceptingWork {
			t.Errorf("one minor version apart: %+v", n)
		}
		if _, err := f.AssignWorkers(nil, run(2, 3)...); err != nil {
			t.Error(err)
		}
	})
}
