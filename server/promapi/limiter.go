package promapi

import (
	"context"
	"fmt"
)

// queryLimiter bounds how many queries are evaluated at once, and how many wait for those.
type queryLimiter struct {
	running, all chan struct{}
}

func newQueryLimiter(inside, waiting int) *queryLimiter {
	return &queryLimiter{make(chan struct{}, inside), make(chan struct{}, inside+waiting)}
}

// acquire waits for room; the one that it lets in has to leave.
func (c *queryLimiter) acquire(ctx context.Context) (leave func(), err error) {
	select {
	case c.all <- struct{}{}:
	default:
		return nil, &failure{"unavailable", fmt.Errorf("%d queries are evaluated and %d wait, which is the limit; try again",
			cap(c.running), cap(c.all)-cap(c.running))}
	}
	leave = func() { <-c.running; <-c.all }
	select {
	case c.running <- struct{}{}:
		return leave, nil
	default:
	}
	select {
	case c.running <- struct{}{}:
		return leave, nil
	case <-ctx.Done():
		<-c.all
		return nil, fmt.Errorf("waiting for %d other queries: %w", cap(c.running), ctx.Err())
	}
}
