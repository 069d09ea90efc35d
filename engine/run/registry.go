// This part knows which runs a process starts and carries.

package run

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/run/query"
)

// Run is a run with its loop, as it is counted. Its methods are safe for concurrent use.
type Run interface {
	comparable
	// Current is the run as its loop last showed it, and Payload its latest state for pages.
	Current() engine.Run
	Payload() *engine.Payload
	// StartedBy is who started it.
	StartedBy() string
	// Owned is the epoch in which this process owns it, leased: with a lease that has not expired.
	Owned(leased bool) (epoch int64, owned bool)
}

// Registry knows the runs that this process starts and carries. Its methods are safe
// for concurrent use.
type Registry[R Run] struct {
	mu       sync.Mutex
	carried  map[string]R
	starting map[string]start // by run
	starts   sync.WaitGroup   // calls of Start under way
	closing  bool
}

// start is a start that is under way.
type start struct {
	by   string
	over chan struct{} // closed when it has ended
}

// NewActiveRuns is a registry without runs.
func NewActiveRuns[R Run]() *Registry[R] {
	return &Registry[R]{carried: map[string]R{}, starting: map[string]start{}}
}

// Look returns the run with that id, the zero value when it is not live here, and whether it is being started.
func (r *Registry[R]) Look(runID string) (l R, starting bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, starting = r.starting[runID]
	return r.carried[runID], starting
}

// Settled is Look once the run is not being started any more, or the limit has passed: who wants
// something of a run need not know that a server has just found room for it.
func (r *Registry[R]) Settled(ctx context.Context, runID string, limit time.Duration) (l R, starting bool) {
	var none R
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		r.mu.Lock()
		l = r.carried[runID]
		under, found := r.starting[runID]
		r.mu.Unlock()
		if l != none || !found {
			return l, found
		}
		select {
		case <-under.over:
		case <-ctx.Done():
			return l, true
		}
	}
}

// Find is the run with that id, the zero value when it is not live here.
func (r *Registry[R]) Find(runID string) R {
	l, _ := r.Look(runID)
	return l
}

// Current is a run that is live here as its loop last showed it, with its latest payload.
func (r *Registry[R]) Current(runID string) (run engine.Run, p *engine.Payload, ok bool) {
	var none R
	l := r.Find(runID)
	if l == none {
		return engine.Run{}, nil, false
	}
	return l.Current(), l.Payload(), true
}

// Has reports whether the run is live here, or being started.
func (r *Registry[R]) Has(runID string) bool {
	var none R
	l, starting := r.Look(runID)
	return l != none || starting
}

// Begin reserves the start of a run for the caller, until it calls end. It refuses a
// user who has as many live runs as one may have, those that wait among them, most of them; 0 means no bound.
func (r *Registry[R]) Begin(runID, by string, waiting, most int) (end func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing {
		return nil, &engine.Error{Code: engine.CodeUnavailable, Message: "The server is shutting down."}
	}
	if l, ok := r.carried[runID]; ok {
		return nil, query.NotPrepared(l.Current())
	}
	if _, starting := r.starting[runID]; starting {
		return nil, &engine.Error{Code: engine.CodeConflict, Message: "The run is being started."}
	}
	if n := r.of(by) + waiting; most > 0 && n >= most {
		return nil, &engine.Error{Code: engine.CodeConflict,
			Message: fmt.Sprintf("You have %d live runs, which is the most that one user may have at a time.", n),
			Hint:    "Wait for one of them to end, or stop it."}
	}
	under := start{by, make(chan struct{})}
	r.starting[runID] = under
	r.starts.Add(1)
	return func() {
		r.mu.Lock()
		delete(r.starting, runID)
		r.mu.Unlock()
		close(under.over)
		r.starts.Done()
	}, nil
}

// of counts the runs of a user that are live or being started. It needs mu.
func (r *Registry[R]) of(by string) (n int) {
	for _, l := range r.carried {
		if l.StartedBy() == by && !l.Current().Status.Terminal() {
			n++
		}
	}
	for _, other := range r.starting {
		if other.by == by {
			n++
		}
	}
	return n
}

// Add takes a run in that this process carries from now on.
func (r *Registry[R]) Add(runID string, l R) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.carried[runID] = l
}

// Remove ends what Add began.
func (r *Registry[R]) Remove(runID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.carried, runID)
}

// Close lets no further run start, waits for the starts under way, and returns the
// runs that are live.
func (r *Registry[R]) Close() (runs []R) {
	r.mu.Lock()
	r.closing = true
	r.mu.Unlock()
	r.starts.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.carried {
		runs = append(runs, l)
	}
	return runs
}

// Closed reports whether the process is shutting down.
func (r *Registry[R]) Closed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closing
}

// Held are the runs that are live here, or being started.
func (r *Registry[R]) Held() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Concat(slices.Collect(maps.Keys(r.carried)), slices.Collect(maps.Keys(r.starting)))
}

// Owned are the runs that this process owns, leased: those whose lease has not expired.
func (r *Registry[R]) Owned(leased bool) (runs []protocol.OwnedRun) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, l := range r.carried {
		if epoch, ok := l.Owned(leased); ok {
			runs = append(runs, protocol.OwnedRun{RunID: id, Epoch: epoch})
		}
	}
	return runs
}

// Others counts the runs beside this one that hold load now.
func (r *Registry[R]) Others(runID string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, l := range r.carried {
		if id != runID && l.Current().Status.Live() {
			n++
		}
	}
	return n
}
