package postgres

import (
	"context"
	"slices"
	"sync"
	"time"
)

// watchdog enforces the statement timeout of all load connections of a
// database with one goroutine that looks at them a few dozen times a second.
// Operations pay two atomic stores for it; no timer is armed. A
// statement is cancelled between timeout and timeout + one scan after it began.
type watchdog struct {
	mu      sync.Mutex
	conns   []*watch
	running bool
}

type watch struct {
	c      *conn
	flight uint64
	since  time.Time
	// cancelled is when the cancellation was sent.
	cancelled time.Time
}

const (
	minScan = 5 * time.Millisecond
	maxScan = 50 * time.Millisecond
	// cancelGrace is how long a server may take to end a cancelled statement
	// before the connection is given up.
	cancelGrace = 2 * time.Second
)

func (w *watchdog) watch(c *conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns = append(w.conns, &watch{c: c})
	if !w.running {
		w.running = true
		go w.run(max(minScan, min(maxScan, c.timeout/20)))
	}
}

func (w *watchdog) forget(c *conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns = slices.DeleteFunc(w.conns, func(x *watch) bool { return x.c == c })
}

// run ends by itself when the last connection has been forgotten.
func (w *watchdog) run(every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for now := range ticker.C {
		w.mu.Lock()
		if len(w.conns) == 0 {
			w.running = false
			w.mu.Unlock()
			return
		}
		for _, x := range w.conns {
			x.check(now)
		}
		w.mu.Unlock()
	}
}

// check never blocks: requests are sent, and sockets closed, by goroutines of their own.
func (x *watch) check(now time.Time) {
	c := x.c
	flight := c.flight.Load()
	if flight&1 == 0 {
		x.flight = flight
		return
	}
	if flight != x.flight {
		x.flight, x.since, x.cancelled = flight, now, time.Time{}
		return
	}
	switch {
	case x.cancelled.IsZero() && now.Sub(x.since) >= c.timeout:
		if !c.cancelMu.TryLock() {
			return // someone else is cancelling it
		}
		x.cancelled = now
		c.cancelling.Store(flight)
		go func() {
			defer c.cancelMu.Unlock()
			// The statement may have ended since: its successor must not be hit.
			if c.flight.Load() != flight {
				return
			}
			ctx, cancel := context.WithTimeout(context.Background(), cancelGrace)
			defer cancel()
			_ = c.cancelRequest(ctx) // a server that cannot be reached is given up after the grace
		}()
	case !x.cancelled.IsZero() && now.Sub(x.cancelled) >= cancelGrace:
		c.broken.Store(true)
		go c.hangUp()
	}
}
