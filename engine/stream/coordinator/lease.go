package coordinator

import (
	"context"
	"time"
)

// A server may run fragments of its queries for as long as nobody else can own them. What it has said to the store of
// itself ends with its lease; it counts from before it said so, and ends all that runs well before. That is nobody's
// business but this file's: a look at the catalog may take longer than a lease when the store is slow.

// retryClaim is how long a claim waits that has failed.
const retryClaim = 500 * time.Millisecond

// margin is how much of a lease is left when the fragments of this server are ended.
func (c *Coordinator) margin() time.Duration { return c.o.Lease / 4 }

// claim says that this server is alive, and takes over what nobody looks after.
func (c *Coordinator) claim(ctx context.Context) (n int, err error) {
	began := time.Now()
	if n, err = c.o.Keeper.ClaimQueries(ctx, c.o.Owner, c.o.Lease); err != nil {
		return 0, err
	}
	c.renewing <- struct{}{}
	defer func() { <-c.renewing }()
	if !began.Before(c.until()) {
		c.abandon() // between the two leases another server may have begun with what runs here
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if began.After(c.renewed) {
		c.renewed = began
	}
	return n, nil
}

// until is when fragments that run here have to have been ended, unless the lease is renewed before.
func (c *Coordinator) until() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.renewed.Add(c.o.Lease - c.margin())
}

// holds reports whether fragments may run here; c is locked.
func (c *Coordinator) holds() bool { return time.Since(c.renewed) < c.o.Lease-c.margin() }

// settle waits while what ran in a lease that was over is being ended: the lease that follows it is not known to be
// there before. Who looks then would take it for lost, and ask for it once more.
func (c *Coordinator) settle(ctx context.Context) error {
	select {
	case c.renewing <- struct{}{}:
		<-c.renewing
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// holding returns the term, in which the lease was never over: what was read in it may be acted upon in it. It says
// whether the lease is over by now.
func (c *Coordinator) holding() (term int64, holds bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.term, c.holds()
}

// hold renews the lease in good time, and ends what runs here when it could not.
func (c *Coordinator) hold(ctx context.Context) {
	wait := c.margin()
	for held := true; ; {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		within := c.margin()
		if left := time.Until(c.until()); left > 0 {
			within, held = left, true // a look may have got it back while the answers to this one were lost
		}
		claiming, cancel := context.WithTimeout(ctx, within)
		n, err := c.claim(claiming)
		cancel()
		switch {
		case err == nil:
			if wait, held = c.margin(), true; n > 0 {
				c.poke()
			}
			continue
		case held && !time.Now().Before(c.until()):
			c.o.Log.Warn().Err(err).Msg("the lease of continuous queries is over; another server may go on with them")
			c.abandon()
			held = false
		}
		if wait = retryClaim; held {
			wait = min(wait, time.Until(c.until()))
		}
	}
}
