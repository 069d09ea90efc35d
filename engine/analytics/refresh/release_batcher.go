package refresh

import (
	"context"
	"fmt"
	"sync"

	"github.com/loadstone-db/loadstone/engine/store"
)

// releaseBatcher ends claims. What comes while a call of the store is under way goes with the next one: many workers
// need few transactions.
type releaseBatcher struct {
	store Store

	mu      sync.Mutex
	waiting []pendingRelease
	busy    bool
}

// pendingRelease is a claim that a worker wants ended, and where it waits for the answer.
type pendingRelease struct {
	Completion
	ctx  context.Context
	done chan error
}

// release ends a claim, and returns when that is done or has failed.
func (d *releaseBatcher) release(ctx context.Context, c Claim, r Result) error {
	if len(r.Parts) > 0 {
		return d.store.ReleaseRefresh(ctx, c, r)
	}
	e := pendingRelease{Completion{Claim: c, Result: r}, ctx, make(chan error, 1)} // room: for the one answer
	d.mu.Lock()
	d.waiting = append(d.waiting, e)
	first := !d.busy
	d.busy = true
	d.mu.Unlock()
	for first && d.serve() {
	}
	// Whoever serves bounds its calls, and answers all.
	return <-e.done
}

// serve ends all that is waiting in one call. It is false when there was nothing.
func (d *releaseBatcher) serve() bool {
	d.mu.Lock()
	batch := d.waiting
	d.waiting, d.busy = nil, len(batch) > 0
	d.mu.Unlock()
	if len(batch) == 0 {
		return false
	}
	ended := make([]Completion, len(batch))
	for i, e := range batch {
		ended[i] = e.Completion
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(batch[0].ctx), callTimeout)
	lost, err := d.store.ReleaseRefreshes(ctx, ended)
	cancel()
	missing := map[int64]bool{}
	for _, c := range lost {
		missing[c.Epoch] = true
	}
	for _, e := range batch {
		if err == nil && missing[e.Claim.Epoch] {
			e.done <- fmt.Errorf("ending the claim %d: %w", e.Claim.Epoch, store.ErrClaimLost)
			continue
		}
		e.done <- err
	}
	return true
}
