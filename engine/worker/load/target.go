package load

import (
	"context"
	"time"
)

// expect prepares for so many connections: what each of them keeps gets smaller with their number.
func (g *Group) expect(connections int) {
	g.pool.Resize(g.io.recorders(connections))
	g.source.Expect(connections)
}

// SetTarget changes the number of connections, linearly over ramp. Connections
// that leave finish their operation first; those that come are opened in the background and
// retried until they are open. A later call replaces an unfinished ramp from
// where it stands. A stopped group ignores it.
func (g *Group) SetTarget(connections int, ramp time.Duration) {
	connections = max(connections, 0)
	g.expect(connections)
	ctx, cancel := context.WithCancel(g.ctx)
	g.mu.Lock()
	if g.ended || g.stopped() {
		g.mu.Unlock()
		cancel()
		return
	}
	if g.ramp != nil {
		g.ramp()
	}
	g.ramp = cancel
	g.target = connections
	from := g.staying()
	g.ramps.Add(1)
	g.mu.Unlock()
	if ramp <= 0 || from == connections {
		g.apply(ctx, connections)
		cancel()
		g.ramps.Done()
		return
	}
	go func() {
		defer g.ramps.Done()
		defer cancel()
		g.climb(ctx, from, connections, ramp)
	}()
}

// level is where a ramp stands after a time.
func level(from, to int, elapsed, ramp time.Duration) int {
	if elapsed >= ramp {
		return to
	}
	return from + int(float64(to-from)*float64(elapsed)/float64(ramp))
}

func (g *Group) climb(ctx context.Context, from, to int, ramp time.Duration) {
	begin := g.clock.now()
	ticker := time.NewTicker(max(min(ramp/time.Duration(max(to-from, from-to)), 250*time.Millisecond),
		10*time.Millisecond))
	defer ticker.Stop()
	for {
		now := level(from, to, time.Duration(g.clock.now()-begin), ramp)
		g.apply(ctx, now)
		if now == to {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		case <-g.stopping:
			return
		}
	}
}

// staying counts the slots that have not been told to leave. It needs mu.
func (g *Group) staying() int {
	n := 0
	for _, s := range g.slots {
		if !s.retired {
			n++
		}
	}
	return n
}

// apply makes slots, or retires those with the highest ids, until n stay.
func (g *Group) apply(ctx context.Context, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if ctx.Err() != nil || g.ended || g.stopped() {
		return
	}
	have := g.staying()
	for ; have < n; have++ {
		s := g.newSlot()
		g.slots = append(g.slots, s)
		go func() {
			if s.connect(g, false) {
				g.io.add(s)
			} else {
				g.left(s)
			}
		}()
	}
	for i := len(g.slots) - 1; i >= 0 && have > n; i-- {
		if s := g.slots[i]; !s.retired {
			s.retired = true
			s.leave.Store(true)
			close(s.retire)
			if g.queue != nil {
				g.queue.dismiss(s)
			}
			g.io.nudge(s)
			have--
		}
	}
}
