package coordinator

import (
	"context"
	"time"
)

// A server may run fragments of its queries for as long as nobody else can own them. What it has said to the store of
// itself ends with its lease; it counts from before it said so, and ends all that runs well before. That is nobody's
// business but this file's: a look at the catalog may take longer than a lease when the store is slow.

// claimRetryDelay is how long a claim waits that has failed.
const claimRetryDelay = 500 * time.Millisecond

// margin is how much of a lease is left when the fragments of this server are ended.
func (c *Coordinator) margin() time.Duration { return c.o.Lease / 4 }

// claim says that this server is alive, and takes over what nobody looks after.
func (c *Coordinator) claim(ctx context.Context) (n int, err error) {
	began := time.Now()
	if n, err = c.o.Store.ClaimQueries(ctx, c.o.Owner, c.o.Lease); err != nil {
		return 0, err
	}
	c.renewing <- struct{}{}
	defer func() { <-c.renewing }()
	if !began.Before(c.leaseDeadline()) {
		c.abandon() // between the two leases another server may have begun with what runs here
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if began.After(c.renewed) {
		c.renewed = began
	}
	return n, nil
}

// leaseDeadline is when fragments that run here have to have been ended, unless the lease is renewed before.
func (c *Coordinator) leaseDeadline() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.renewed.Add(c.o.Lease - c.margin())
}

// leaseValid reports whether fragments may run here; c is locked.
func (c *Coordinator) leaseValid() bool { return time.Since(c.renewed) < c.o.Lease-c.margin() }

// awaitStopped waits while what ran in a lease that was over is being ended: the lease that follows it is not known to
// be there before. Who looks then would take it for lost, and ask for it once more.
func (c *Coordinator) awaitStopped(ctx context.Context) error {
	select {
	case c.renewing <- struct{}{}:
		<-c.renewing
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leaseTerm returns the term, in which the lease was never over: what was read in it may be acted upon in it. It says
// whether the lease is over by now.
func (c *Coordinator) leaseTerm() (term int64, holds bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.term, c.leaseValid()
}

// keepLease renews the lease in good time, and ends what runs here when it could not.
func (c *Coordinator) keepLease(ctx context.Context) {
	wait := c.margin()
	for held := true; ; {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		within := c.margin()
		if left := time.Until(c.leaseDeadline()); left > 0 {
			within, held = left, true // a look may have got it back while the answers to this one were lost
		}
		claiming, cancel := context.WithTimeout(ctx, within)
		n, err := c.claim(claiming)
		cancel()
		switch {
		case err == nil:
			if wait, held = c.margin(), true; n > 0 {
				c.wakeLoop()
			}
			continue
		case held && !time.Now().Before(c.leaseDeadline()):
			c.o.Log.Warn().Err(err).Msg("the lease of continuous queries is over; another server may go on with them")
			c.abandon()
			held = false
		}
		if wait = claimRetryDelay; held {
			wait = min(wait, time.Until(c.leaseDeadline()))
		}
	}
}
