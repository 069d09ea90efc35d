package worker

import (
	"context"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine/base/clock"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

const (
	// maxSamples are remembered of a server's clock, a few minutes.
	maxSamples = 256
	// maxDrift is what two clocks may drift apart, as a part of the time since they were compared.
	maxDrift = 1.0 / 5000
	// firstSampleTimeout is how long a run worker waits for the first comparison of the clocks.
	firstSampleTimeout = 5 * time.Second
)

// clockSync compares the clock of a server with the node's, by each Status that it acknowledges:
// of four times, of which each side reads two, follows by how much it is ahead, to within
// half of what was under way. The best of late counts, and the older it is the less.
type clockSync struct {
	mu      sync.Mutex
	samples []clockSample
	first   chan struct{} // closed when there is one
}

type clockSample struct {
	at           time.Time
	ahead, error time.Duration
}

func newClockSync() *clockSync { return &clockSync{first: make(chan struct{})} }

// addSample takes an acknowledgement in: the Status left at sent and the acknowledgement came at
// back, both by the node's clock. It reports whether that was the first to say something.
func (c *clockSync) addSample(sent, back time.Time, ack protocol.StatusAck) (first bool) {
	if ack.Received.IsZero() || ack.Sent.IsZero() {
		return false
	}
	underWay := back.Sub(sent) - ack.Sent.Sub(ack.Received)
	drift := drifted(back.Sub(sent)) + 1
	if underWay < -drift {
		return false // no times that can be
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if first = len(c.samples) == 0; first {
		close(c.first)
	}
	if len(c.samples) == maxSamples {
		c.samples = c.samples[:copy(c.samples, c.samples[1:])]
	}
	c.samples = append(c.samples, clockSample{back, (ack.Received.Sub(sent) + ack.Sent.Sub(back)) / 2,
		max(underWay, 0)/2 + drift})
	return first
}

// drifted is how far clocks may have drifted apart in a time.
func drifted(d time.Duration) time.Duration { return time.Duration(maxDrift * float64(d)) }

// estimate is by how much the server's clock is ahead now, and how wrong that may be; 0 and 0 when nobody knows.
func (c *clockSync) estimate(now time.Time) (ahead, wrong time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.samples {
		if e := s.error + drifted(now.Sub(s.at)); wrong == 0 || e < wrong {
			ahead, wrong = s.ahead, e
		}
	}
	return ahead, wrong
}

// runClock is the run's: the server's own in its process, and elsewhere the node's, set by
// the server's clock as it is when the load is opened. It does not follow what is measured
// later: that is how wrong it is.
func (w *runWorker) runClock(ctx context.Context) *clock.Clock {
	if w.a.Clock != nil {
		return w.a.Clock
	}
	limit := time.NewTimer(firstSampleTimeout)
	defer limit.Stop()
	select {
	case <-w.server.first:
	case <-limit.C:
	case <-ctx.Done():
	}
	ahead, _ := w.server.estimate(w.node.clock.Now())
	w.mu.Lock()
	w.ahead = ahead
	w.mu.Unlock()
	return w.node.clock.WithOffset(ahead + w.a.ClockAhead)
}

// clockError is how wrong the times of the worker's record may be, as times of the server. It needs mu.
func (w *runWorker) clockError() time.Duration {
	if w.a.Clock != nil {
		return 0
	}
	ahead, wrong := w.server.estimate(w.node.clock.Now())
	return wrong + (ahead - w.ahead).Abs()
}

// runClockAhead is by how much a run's line, which says at, is ahead of the clock of the server that owns the
// run now, and how wrong that may be: one that has taken it over goes on by it. 0 and 0 is not known.
func (n *Node) runClockAhead(runID string, at time.Time) (ahead, wrong time.Duration) {
	c := n.out.ownersClocks(runID)
	if c == nil {
		return 0, 0
	}
	now := n.clock.Now()
	owner, wrong := c.estimate(now)
	if wrong == 0 {
		return 0, 0
	}
	return at.Round(0).Sub(now.Round(0)) - owner, wrong
}

// end is how a run worker has ended, and the line of its run.
type end struct {
	protocol.WorkerState
	line *clock.Clock
}

// restampEnd is an end as it is said now: it stays what it was, and the line is compared with the clock of who owns the
// run now. That of the owner in whose time it ended may be any other.
func (n *Node) restampEnd(e end) protocol.WorkerState {
	s := e.WorkerState
	s.LineAhead, s.LineError = n.runClockAhead(s.RunID, e.line.Now())
	return s
}

// resendEnds says the ends of a server's runs again when its clock has just been compared: with a run that it has
// taken over before, they could not tell of its time.
func (n *Node) resendEnds(c *clockSync) {
	for _, s := range n.hello().Workers {
		if s.Status.Ended() && n.out.ownersClocks(s.RunID) == c {
			n.out.Put(s)
		}
	}
}
