package simtest

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// machineClock is that of a machine: off by up to an hour, faster or slower than others, and set now and then.
type machineClock struct {
	begun time.Time
	drift float64
	off   atomic.Int64 // s
}

func newClock(s *simulation) *machineClock {
	c := &machineClock{begun: time.Now()}
	if s.w.oneIn(2) {
		c.off.Store(s.w.chance.Int64N(7201) - 3600)
		c.drift = (s.w.chance.Float64() - 0.5) / 5000
	}
	return c
}

// epoch is what a time with a monotonic reading counts its seconds from.
var epoch = time.Date(1885, 1, 1, 0, 0, 0, 0, time.UTC).Unix()

// read is the time by it: what is set is the wall clock, the monotonic reading stays. There is none in a bubble, so
// it is made here: one bit, 33 bits of seconds, 30 bits of nanoseconds, and the reading.
func (c *machineClock) read() time.Time {
	went := time.Since(c.begun)
	went += time.Duration(float64(went) * c.drift)
	wall := c.begun.Add(went)
	var t time.Time
	raw := (*struct {
		wall uint64
		ext  int64
	})(unsafe.Pointer(&t))
	raw.wall = 1<<63 | uint64(wall.Unix()+c.off.Load()-epoch)<<30 | uint64(wall.Nanosecond())
	raw.ext = int64(went) + 1
	return t
}

// TestAClockThatIsSetKeepsItsPace: a clock of the simulation is as that of a machine.
func TestAClockThatIsSetKeepsItsPace(t *testing.T) {
	c := &machineClock{begun: time.Now(), drift: 1}
	before := c.read()
	c.off.Add(3600)
	time.Sleep(time.Millisecond)
	after := c.read()
	if went := after.Sub(before); went < 2*time.Millisecond || went > time.Minute {
		t.Errorf("%v went by", went)
	}
	if wall := after.Round(0).Sub(before.Round(0)); wall < time.Hour {
		t.Errorf("set by %v", wall)
	}
}

// clockOf is the clock of the machine on which the servers of an owner are.
func (s *simulation) clockOf(owner string) *machineClock {
	if s.clocks[owner] == nil {
		s.clocks[owner] = newClock(s)
	}
	return s.clocks[owner]
}

// line is the time of a run: that of the clock of the server that began it, as it was then and not as it is set later.
type line struct {
	begun time.Time
	ahead time.Duration
	drift float64
}

// begins takes note of the time of a run that begins.
func (m *model) begins(run string, srv *server) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.lines[run] = line{now, srv.clock.read().Round(0).Sub(now.Round(0)), srv.clock.drift}
}

// ahead is by how much the time of a run is ahead of that of the world.
func (m *model) ahead(run string, at time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.lines[run]
	return l.ahead + time.Duration(l.drift*float64(at.Sub(l.begun)))
}

// sets has the clock of a server be set, when no run is about to begin.
func (s *simulation) sets(srv *server) {
	for _, id := range slices.Sorted(maps.Keys(s.runs)) {
		if run, err := s.store.Run(context.Background(), id); err != nil || run.Status == engine.StatusPrepared {
			return
		}
	}
	srv.clock.set(s, srv.name)
}

// set sets it, as somebody does.
func (c *machineClock) set(s *simulation, name string) {
	by := s.w.chance.Int64N(7201) - 3600
	s.w.note("the clock of %s is set by %d s", name, by)
	c.off.Add(by)
}

// timed holds the time that a run worker says against what it is, to within the error that it states (invariant 10).
// The time of a run is that of the server that began it. One that may have been told the time of a later owner is not
// held to it.
func (p *process) timed(m protocol.WorkerState) {
	if m.Status != engine.WorkerRunning {
		return
	}
	p.mu.Lock()
	epoch := p.epochs[m.RunID]
	p.mu.Unlock()
	ahead := time.Until(m.At) - p.node.sim.model.ahead(m.RunID, time.Now())
	if epoch == 1 && (ahead > m.ClockError+time.Millisecond || ahead < -30*time.Minute) {
		p.node.w.violated(10, "%s on %s says that it is %v later than it is, and that this is right to within %v", m.WorkerID,
			p.node.name, ahead, m.ClockError)
	}
}
