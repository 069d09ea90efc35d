// This part lets a few heavy requests in at a time, so many of each caller, and has the others
// wait for their turn, but not for ever.

package httpx

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadstone-db/loadstone/engine"
)

// gateTimeout is how long a heavy request waits for its turn.
const gateTimeout = 15 * time.Second

// Gate lets a few requests in at a time that read every execution of runs, or try a
// database: the machine may be measuring. The others wait for their turn.
type Gate struct {
	slots        chan struct{}
	maxTotal     int // of all callers, waiting or not
	maxPerCaller int // of one caller, waiting or not
	timeout      time.Duration

	mu      sync.Mutex
	callers map[string]int
	total   int
}

// NewGate makes a gate for so many requests at once, so many in all, and so many of each caller; the last two
// count those that wait too.
func NewGate(atOnce, limit, each int) *Gate {
	return &Gate{slots: make(chan struct{}, atOnce), maxTotal: limit, maxPerCaller: each, timeout: gateTimeout,
		callers: map[string]int{}}
}

// Acquire waits for a place; the caller leaves when the request is over. The error
// is the answer for one that does not get in.
func (g *Gate) Acquire(ctx context.Context, caller string) (leave func(), err error) {
	g.mu.Lock()
	if g.callers[caller] >= g.maxPerCaller || g.total >= g.maxTotal {
		g.mu.Unlock()
		return nil, busy()
	}
	g.callers[caller]++
	g.total++
	g.mu.Unlock()
	gone := func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.total--
		if g.callers[caller]--; g.callers[caller] == 0 {
			delete(g.callers, caller)
		}
	}
	patience := time.NewTimer(g.timeout)
	defer patience.Stop()
	select {
	case g.slots <- struct{}{}:
		return sync.OnceFunc(func() { <-g.slots; gone() }), nil
	case <-patience.C:
		err = busy()
	case <-ctx.Done():
		err = ctx.Err()
	}
	gone()
	return nil, err
}

func busy() error {
	const after = 5
	p := New(http.StatusTooManyRequests, engine.CodeRateLimited,
		"The server is busy with other requests that take as much as this one.",
		fmt.Sprintf("Try again in %d s, and ask for less at once.", after))
	return huma.ErrorWithHeaders(p, http.Header{"Retry-After": {strconv.Itoa(after)}})
}
