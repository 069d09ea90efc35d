package orchestrator

import (
	"fmt"
	"sync"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/control"
	"github.com/loadstone-db/loadstone/engine/inspect"
)

// registry knows the runs that this process starts and carries. Its methods are safe
// for concurrent use.
type registry struct {
	mu       sync.Mutex
	carried  map[string]*live
	starting map[string]string // who starts it, by run
	starts   sync.WaitGroup    // calls of Start under way
	closing  bool
}

func newRegistry() *registry {
	return &registry{carried: map[string]*live{}, starting: map[string]string{}}
}

// look returns the run with that id, nil when it is not live here, and whether it is being started.
func (r *registry) look(runID string) (l *live, starting bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, starting = r.starting[runID]
	return r.carried[runID], starting
}

// find is the run with that id, nil when it is not live here.
func (r *registry) find(runID string) *live {
	l, _ := r.look(runID)
	return l
}

// current is a run that is live here as its loop last showed it, with its latest payload.
func (r *registry) current(runID string) (run engine.Run, p *engine.Payload, ok bool) {
	l := r.find(runID)
	if l == nil {
		return engine.Run{}, nil, false
	}
	return l.current(), l.payload.Load(), true
}

// has reports whether the run is live here, or being started.
func (r *registry) has(runID string) bool {
	l, starting := r.look(runID)
	return l != nil || starting
}

// begin reserves the start of a run for the caller, until it calls end. It refuses a
// user who has as many live runs as one may have, most of them; 0 means no bound.
func (r *registry) begin(runID, by string, most int) (end func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing {
		return nil, &engine.Error{Code: engine.CodeUnavailable, Message: "The server is shutting down."}
	}
	if l := r.carried[runID]; l != nil {
		return nil, inspect.NotPrepared(l.current())
	}
	if _, starting := r.starting[runID]; starting {
		return nil, &engine.Error{Code: engine.CodeConflict, Message: "The run is being started."}
	}
	if n := r.of(by); most > 0 && n >= most {
		return nil, &engine.Error{Code: engine.CodeConflict,
			Message: fmt.Sprintf("You have %d live runs, which is the most that one user may have at a time.", n),
			Hint:    "Wait for one of them to end, or stop it."}
	}
	r.starting[runID] = by
	r.starts.Add(1)
	return func() {
		r.mu.Lock()
		delete(r.starting, runID)
		r.mu.Unlock()
		r.starts.Done()
	}, nil
}

// of counts the runs of a user that are live or being started. It needs mu.
func (r *registry) of(by string) (n int) {
	for _, l := range r.carried {
		if l.by == by && !l.current().Status.Terminal() {
			n++
		}
	}
	for _, other := range r.starting {
		if other == by {
			n++
		}
	}
	return n
}

func (r *registry) add(l *live) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.carried[l.runID] = l
}

func (r *registry) remove(runID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.carried, runID)
}

// close lets no further run start, waits for the starts under way, and returns the
// runs that are live.
func (r *registry) close() (runs []*live) {
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

// closed reports whether the process is shutting down.
func (r *registry) closed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closing
}

// connections is how many of them the live runs hold.
func (r *registry) connections() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.carried {
		if !l.current().Status.Terminal() {
			n += int(l.connections.Load())
		}
	}
	return n
}

// owned are the runs that this process owns, leased: those whose lease has not expired.
func (r *registry) owned(leased bool) (runs []control.OwnedRun) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, l := range r.carried {
		if l.keeper.Owns(leased) {
			runs = append(runs, control.OwnedRun{RunID: id, Epoch: l.epoch})
		}
	}
	return runs
}

// others counts the runs beside this one that hold load now.
func (r *registry) others(runID string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, l := range r.carried {
		if id != runID && l.current().Status.Live() {
			n++
		}
	}
	return n
}
