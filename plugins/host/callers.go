package host

import (
	"context"
	"sync"
	"time"
)

const (
	// idleCallers is how many instances are kept for the next call.
	idleCallers = 2
	// maxCalls bounds what a leak in a guest can grow to.
	maxCalls = 200
)

// instancePool keeps a few instances for ls_call: starting one costs more than most
// calls do. One that failed never comes back here.
type instancePool struct {
	host   *Host
	module *compiled

	mu     sync.Mutex
	closed bool
	free   []*instance
	idle   *time.Timer
}

// take returns an instance that is the caller's alone until give or close.
func (c *instancePool) take(ctx context.Context) (*instance, error) {
	c.mu.Lock()
	if n := len(c.free); n > 0 {
		i := c.free[n-1]
		c.free = c.free[:n-1]
		c.mu.Unlock()
		return i, nil
	}
	c.mu.Unlock()
	return c.module.instantiate(ctx, c.host)
}

func (c *instancePool) put(i *instance) {
	i.calls++
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || i.calls >= maxCalls || len(c.free) >= idleCallers {
		i.close()
		return
	}
	c.free = append(c.free, i)
	if c.idle == nil {
		c.idle = time.AfterFunc(idleTime, c.drop)
	} else {
		c.idle.Reset(idleTime)
	}
}

// drop closes the instances that wait.
func (c *instancePool) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range c.free {
		i.close()
	}
	c.free = nil
}

func (c *instancePool) close() {
	c.mu.Lock()
	c.closed = true
	if c.idle != nil {
		c.idle.Stop()
	}
	c.mu.Unlock()
	c.drop()
}
