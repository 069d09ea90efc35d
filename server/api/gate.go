package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadstone-db/loadstone/server/problem"
)

// gatePatient is how long a heavy request waits for its turn.
const gatePatient = 15 * time.Second

// gate lets a few requests in at a time that read every execution of runs, or try a
// database: the machine may be measuring. The others wait for their turn.
type gate struct {
	places  chan struct{}
	most    int // of all callers, waiting or not
	each    int // of one caller, waiting or not
	patient time.Duration

	mu      sync.Mutex
	callers map[string]int
	all     int
}

func newGate(atOnce, most, each int) *gate {
	return &gate{places: make(chan struct{}, atOnce), most: most, each: each, patient: gatePatient,
		callers: map[string]int{}}
}

// enter waits for a place; the caller leaves when the request is over. The error
// is the answer for one that does not get in.
func (g *gate) enter(ctx context.Context, caller string) (leave func(), err error) {
	g.mu.Lock()
	if g.callers[caller] >= g.each || g.all >= g.most {
		g.mu.Unlock()
		return nil, busy()
	}
	g.callers[caller]++
	g.all++
	g.mu.Unlock()
	gone := func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.all--
		if g.callers[caller]--; g.callers[caller] == 0 {
			delete(g.callers, caller)
		}
	}
	patience := time.NewTimer(g.patient)
	defer patience.Stop()
	select {
	case g.places <- struct{}{}:
		return sync.OnceFunc(func() { <-g.places; gone() }), nil
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
	p := problem.New(http.StatusTooManyRequests, problem.CodeRateLimited,
		"The server is busy with other requests that take as much as this one.",
		fmt.Sprintf("Try again in %d s, and ask for less at once.", after))
	return huma.ErrorWithHeaders(p, http.Header{"Retry-After": {strconv.Itoa(after)}})
}

// heavily is a handler that waits for a place of the gate.
func heavily[I, O any](a *API, h func(ctx context.Context, in *I) (*O, error)) func(ctx context.Context, in *I) (*O,
	error) {
	return func(ctx context.Context, in *I) (*O, error) {
		leave, err := a.gate.enter(ctx, a.identity(ctx).User.UserID)
		if err != nil {
			return nil, err
		}
		defer leave()
		return h(ctx, in)
	}
}
