package promapi

import (
	"context"
	"fmt"
)

// crowd bounds how many queries are evaluated at once, and how many wait for those.
type crowd struct {
	inside, all chan struct{}
}

func newCrowd(inside, waiting int) *crowd {
	return &crowd{make(chan struct{}, inside), make(chan struct{}, inside+waiting)}
}

// enter waits for room; the one that it lets in has to leave.
func (c *crowd) enter(ctx context.Context) (leave func(), err error) {
	select {
	case c.all <- struct{}{}:
	default:
		return nil, &failure{"unavailable", fmt.Errorf("%d queries are evaluated and %d wait, which is the limit; try again",
			cap(c.inside), cap(c.all)-cap(c.inside))}
	}
	leave = func() { <-c.inside; <-c.all }
	select {
	case c.inside <- struct{}{}:
		return leave, nil
	default:
	}
	select {
	case c.inside <- struct{}{}:
		return leave, nil
	case <-ctx.Done():
		<-c.all
		return nil, fmt.Errorf("waiting for %d other queries: %w", cap(c.inside), ctx.Err())
	}
}
