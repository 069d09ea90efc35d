// This part is the nodes as operators see them: what each server knows of them, what
// is wanted of them, and what became of them.
//
// What operators want is kept in the control store. Every server reads it again and again
// and tells its own fleet, so that a desired state holds on all servers, outlives each of them, and
// also meets a node that comes later. What happens to nodes goes to the control store too, in
// the order in which it happened; while the store is away it waits, within bounds.

package nodes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

const (
	// pollInterval is how soon a desired state that was set at another server reaches this one.
	pollInterval = 2 * time.Second
	// maxEvents is how many events are kept, of all nodes together.
	maxEvents     = 10_000
	pruneInterval = 10 * time.Minute
	// maxPending bounds the events that wait for the store.
	maxPending = 5_000
	// retryDelay is the pause before what could not be written is written again.
	retryDelay = 5 * time.Second
	// storeTimeout is how long the store may take for one call.
	storeTimeout = 10 * time.Second
	// localSeparator stands between the name of a server's own node and the server: all servers' own nodes
	// have the same name, and what is wanted of one is wanted of no other.
	localSeparator = "@"
)

// FleetControl is what the roster needs of engine/cluster/nodes. Each method returns at once, and
// repeating one is harmless.
type FleetControl interface {
	Nodes() []NodeInfo
	Drain(id string)
	Resume(id string)
	Remove(id string)
	Admit(id string)
}

// AdminOptions are what a roster is made of.
type AdminOptions struct {
	Store Nodes
	// Server names this server in the events that it sees.
	Server string
	Log    zerolog.Logger
}

// Admin keeps the nodes' history and has what is wanted of them done. Its methods are
// safe for concurrent use.
type Admin struct {
	opts AdminOptions

	// mu guards the events; a fleet that is told something calls Watch meanwhile.
	mu      sync.Mutex
	pending []NodeEvent
	dropped int
	// refused counts events that the store will never take.
	refused int
	wake    chan struct{}

	// syncing guards the fleet and what it was last told for each node.
	syncing sync.Mutex
	fleet   FleetControl
	done    map[string]DesiredState
	// desired counts those that were noted here: what was read before the last one may not know it.
	desired int
}

// NewAdmin returns a roster; nothing is read or written before Keep.
func NewAdmin(opts AdminOptions) *Admin {
	return &Admin{opts: opts, wake: make(chan struct{}, 1), done: map[string]DesiredState{}}
}

// RecordEvent takes an event of the fleet and does not wait.
func (r *Admin) RecordEvent(e NodeEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.Server = r.opts.Server
	if len(r.pending) >= maxPending {
		r.pending = slices.Delete(r.pending, 0, 1)
		r.dropped++
	}
	r.pending = append(r.pending, e)
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run does what is wanted of the fleet's nodes and writes what became of them, until ctx
// ends. What waits then is written within a second.
func (r *Admin) Run(ctx context.Context, f FleetControl) {
	r.syncing.Lock()
	r.fleet = f
	r.syncing.Unlock()
	var writing sync.WaitGroup
	writing.Go(func() { r.write(ctx) })
	defer writing.Wait()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	silent := false
	for {
		err := r.sync(ctx)
		if err != nil && ctx.Err() == nil && !silent {
			r.opts.Log.Warn().Err(err).Msg("what is wanted of the nodes cannot be read; it is read again and again")
		}
		silent = err != nil
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// sync tells the fleet what is wanted, where it does not know it.
func (r *Admin) sync(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	r.syncing.Lock()
	before := r.desired
	r.syncing.Unlock()
	states, err := r.opts.Store.NodeDesiredStates(ctx)
	if err != nil {
		return fmt.Errorf("reading what is wanted of the nodes: %w", err)
	}
	for key, desired := range maps.Clone(states) {
		if id, server, own := strings.Cut(key, localSeparator); own {
			delete(states, key)
			if server == r.opts.Server {
				states[id] = desired
			}
		}
	}
	r.syncing.Lock()
	defer r.syncing.Unlock()
	if r.desired != before {
		return nil // it is read again soon
	}
	for id := range r.done {
		if _, wanted := states[id]; !wanted {
			r.reconcile(id, DesiredNone)
		}
	}
	for id, desired := range states {
		r.reconcile(id, desired)
	}
	return nil
}

// reconcile brings a node from what was wanted to what is. It needs telling.
func (r *Admin) reconcile(id string, desired DesiredState) {
	f, was := r.fleet, r.done[id]
	if was == desired {
		return
	}
	switch was {
	case DesiredDrain:
		f.Resume(id)
	case DesiredRemove:
		f.Admit(id)
	}
	switch desired {
	case DesiredDrain:
		f.Drain(id)
	case DesiredRemove:
		f.Remove(id)
	}
	if desired == DesiredNone {
		delete(r.done, id)
		return
	}
	r.done[id] = desired
}

// historyText are the words of the history for what an operator has asked for.
var historyText = map[DesiredState]string{
	DesiredNone:   "an operator lets it take work again",
	DesiredDrain:  "an operator has asked it to drain",
	DesiredRemove: "an operator has removed it",
}

// Server names this server in the events that it sees.
func (r *Admin) Server() string { return r.opts.Server }

// Nodes are those that this server knows; none before Keep.
func (r *Admin) Nodes() []NodeInfo {
	r.syncing.Lock()
	f := r.fleet
	r.syncing.Unlock()
	if f == nil {
		return nil
	}
	return f.Nodes()
}

// Node is one of Nodes, or an error that says that there is none of that name.
func (r *Admin) Node(id string) (NodeInfo, error) {
	for _, n := range r.Nodes() {
		if n.NodeID == id && id != "" {
			return n, nil
		}
	}
	return NodeInfo{}, &engine.Error{Code: engine.CodeNotFound, Message: fmt.Sprintf("There is no node %q.", id),
		Cause: store.ErrNotFound}
}

// Events are those of the nodes, newest first.
func (r *Admin) Events(ctx context.Context, f NodeEventFilter) ([]NodeEvent, error) {
	return r.opts.Store.NodeEvents(ctx, f)
}

// SetDesiredState notes what is wanted of a node that this server knows and has it done here at once;
// other servers follow. It returns the node as it is then.
func (r *Admin) SetDesiredState(ctx context.Context, id string, desired DesiredState, by string) (NodeInfo, error) {
	n, err := r.Node(id)
	if err != nil {
		return n, err
	}
	// What another server was told a moment ago this one need not have read.
	states, err := r.opts.Store.NodeDesiredStates(ctx)
	if err != nil {
		return n, fmt.Errorf("reading what is wanted of the nodes: %w", err)
	}
	n.DesiredState = states[r.storeKey(id, n.Local)]
	switch {
	case n.DesiredState == desired:
		r.applyDesired(id, desired)
		return r.Node(id)
	case desired == DesiredDrain && n.DesiredState == DesiredRemove:
		return n, &engine.Error{Code: engine.CodeConflict, Message: fmt.Sprintf("The node %s was removed.", id),
			Hint: "resume it first"}
	case desired == DesiredRemove && n.Local:
		return n, &engine.Error{Code: engine.CodeConflict, Message: "The server's own node cannot be removed.",
			Hint: "drain it, or start the server with --local-capacity 0"}
	}
	if err := r.desiredState(ctx, id, n.Local, desired, by); err != nil {
		return n, err
	}
	return r.Node(id)
}

func (r *Admin) desiredState(ctx context.Context, id string, local bool, desired DesiredState, by string) error {
	if err := r.opts.Store.SetNodeDesiredState(ctx, r.storeKey(id, local), desired, by); err != nil {
		return fmt.Errorf("noting what is wanted of the node %s: %w", id, err)
	}
	r.RecordEvent(
		NodeEvent{At: engine.At(time.Now()), NodeID: id, Kind: NodeRequested, Reason: historyText[desired], By: by},
	)
	r.applyDesired(id, desired)
	return nil
}

// applyDesired does here what the store says is wanted.
func (r *Admin) applyDesired(id string, desired DesiredState) {
	r.syncing.Lock()
	defer r.syncing.Unlock()
	r.desired++
	r.reconcile(id, desired)
}

// storeKey is the name of a node in the store.
func (r *Admin) storeKey(id string, local bool) string {
	if local {
		return id + localSeparator + r.opts.Server
	}
	return id
}

// write brings events to the store, in order, until ctx ends.
func (r *Admin) write(ctx context.Context) {
	prune := time.NewTicker(pruneInterval)
	defer prune.Stop()
	var again <-chan time.Time
	for {
		select {
		case <-r.wake:
			if again != nil {
				continue // the store is away; it is tried again in time
			}
		case <-again:
			again = nil
		case <-prune.C:
			if err := r.opts.Store.PruneNodeEvents(ctx, maxEvents); err != nil && ctx.Err() == nil {
				r.opts.Log.Warn().Err(err).Msg("old events of the nodes cannot be deleted")
			}
			continue
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			_ = r.flush(last)
			return
		}
		if err := r.flush(ctx); err != nil && ctx.Err() == nil {
			r.opts.Log.Warn().Err(err).Msg("events of the nodes cannot be written; they wait")
			again = time.After(retryDelay)
		}
	}
}

// flush writes what waits. What the store cannot take now stays, and what it will never take goes, alone.
func (r *Admin) flush(ctx context.Context) error {
	r.mu.Lock()
	events, dropped := r.pending, r.dropped
	r.pending, r.dropped = nil, 0
	r.mu.Unlock()
	if dropped > 0 {
		r.opts.Log.Warn().Int("events", dropped).Msg("events of the nodes were dropped: too many waited for the store")
	}
	if len(events) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if left, err := r.add(ctx, events); err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.pending = append(left, r.pending...)
		if over := len(r.pending) - maxPending; over > 0 {
			r.pending = r.pending[over:]
			r.dropped += over
		}
		return err
	}
	return nil
}

// add writes events, and returns those that are left. Of a batch that the store refuses each half is tried, so that
// one event that breaks a rule of the store takes no other with it, and holds none up.
func (r *Admin) add(ctx context.Context, events []NodeEvent) (left []NodeEvent, err error) {
	err = r.opts.Store.AppendNodeEvents(ctx, events)
	switch {
	case err == nil:
		return nil, nil
	case !engine.HasCode(err, engine.CodeInvalid):
		return events, err
	case len(events) == 1:
		r.mu.Lock()
		r.refused++
		all := r.refused
		r.mu.Unlock()
		r.opts.Log.Error().Err(err).Str("node_id", events[0].NodeID).Str("kind", string(events[0].Kind)).
			Str("reason", events[0].Reason).Int("refused", all).Msg("an event of a node is lost: the control store refuses it")
		return nil, nil
	}
	half := len(events) / 2
	if left, err = r.add(ctx, events[:half]); err != nil {
		return append(slices.Clone(left), events[half:]...), err
	}
	return r.add(ctx, events[half:])
}
