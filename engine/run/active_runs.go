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
	LiveState() *engine.LiveState
	// StartedBy is who started it.
	StartedBy() string
	// OwnedEpoch is the epoch in which this process owns it, leased: with a lease that has not expired.
	OwnedEpoch(leased bool) (epoch int64, owned bool)
}

// ActiveRuns knows the runs that this process starts and carries. Its methods are safe
// for concurrent use.
type ActiveRuns[R Run] struct {
	mu       sync.Mutex
	active   map[string]R
	starting map[string]start // by run
	starts   sync.WaitGroup   // calls of Start under way
	closing  bool
}

// start is a start that is under way.
type start struct {
	startedBy string
	done      chan struct{} // closed when it has ended
}

// NewActiveRuns is a registry without runs.
func NewActiveRuns[R Run]() *ActiveRuns[R] {
	return &ActiveRuns[R]{active: map[string]R{}, starting: map[string]start{}}
}

// Lookup returns the run with that id, the zero value when it is not live here, and whether it is being started.
func (r *ActiveRuns[R]) Lookup(runID string) (l R, starting bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, starting = r.starting[runID]
	return r.active[runID], starting
}

// AwaitStarted is Look once the run is not being started any more, or the limit has passed: who wants
// something of a run need not know that a server has just found room for it.
func (r *ActiveRuns[R]) AwaitStarted(ctx context.Context, runID string, limit time.Duration) (l R, starting bool) {
	var none R
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		r.mu.Lock()
		l = r.active[runID]
		under, found := r.starting[runID]
		r.mu.Unlock()
		if l != none || !found {
			return l, found
		}
		select {
		case <-under.done:
		case <-ctx.Done():
			return l, true
		}
	}
}

// Get is the run with that id, the zero value when it is not live here.
func (r *ActiveRuns[R]) Get(runID string) R {
	l, _ := r.Lookup(runID)
	return l
}

// Current is a run that is live here as its loop last showed it, with its latest payload.
func (r *ActiveRuns[R]) Current(runID string) (run engine.Run, p *engine.LiveState, ok bool) {
	var none R
	l := r.Get(runID)
	if l == none {
		return engine.Run{}, nil, false
	}
	return l.Current(), l.LiveState(), true
}

// Has reports whether the run is live here, or being started.
func (r *ActiveRuns[R]) Has(runID string) bool {
	var none R
	l, starting := r.Lookup(runID)
	return l != none || starting
}

// BeginStart reserves the start of a run for the caller, until it calls end. It refuses a
// user who has as many live runs as one may have, those that wait among them, most of them; 0 means no bound.
func (r *ActiveRuns[R]) BeginStart(runID, by string, waiting, most int) (end func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing {
		return nil, &engine.Error{Code: engine.CodeUnavailable, Message: "The server is shutting down."}
	}
	if l, ok := r.active[runID]; ok {
		return nil, query.NotPreparedError(l.Current())
	}
	if _, starting := r.starting[runID]; starting {
		return nil, &engine.Error{Code: engine.CodeConflict, Message: "The run is being started."}
	}
	if n := r.countByUser(by) + waiting; most > 0 && n >= most {
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
		close(under.done)
		r.starts.Done()
	}, nil
}

// countByUser counts the runs of a user that are live or being started. It needs mu.
func (r *ActiveRuns[R]) countByUser(by string) (n int) {
	for _, l := range r.active {
		if l.StartedBy() == by && !l.Current().Status.Terminal() {
			n++
		}
	}
	for _, other := range r.starting {
		if other.startedBy == by {
			n++
		}
	}
	return n
}

// Add takes a run in that this process carries from now on.
func (r *ActiveRuns[R]) Add(runID string, l R) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active[runID] = l
}

// Remove ends what Add began.
func (r *ActiveRuns[R]) Remove(runID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.active, runID)
}

// Close lets no further run start, waits for the starts under way, and returns the
// runs that are live.
func (r *ActiveRuns[R]) Close() (runs []R) {
	r.mu.Lock()
	r.closing = true
	r.mu.Unlock()
	r.starts.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.active {
		runs = append(runs, l)
	}
	return runs
}

// Closed reports whether the process is shutting down.
func (r *ActiveRuns[R]) Closed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closing
}

// ActiveRunIDs are the runs that are live here, or being started.
func (r *ActiveRuns[R]) ActiveRunIDs() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Concat(slices.Collect(maps.Keys(r.active)), slices.Collect(maps.Keys(r.starting)))
}

// OwnedRuns are the runs that this process owns, leased: those whose lease has not expired.
func (r *ActiveRuns[R]) OwnedRuns(leased bool) (runs []protocol.OwnedRun) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, l := range r.active {
		if epoch, ok := l.OwnedEpoch(leased); ok {
			runs = append(runs, protocol.OwnedRun{RunID: id, Epoch: epoch})
		}
	}
	return runs
}

// CountOthers counts the runs beside this one that hold load now.
func (r *ActiveRuns[R]) CountOthers(runID string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, l := range r.active {
		if id != runID && l.Current().Status.Live() {
			n++
		}
	}
	return n
}
