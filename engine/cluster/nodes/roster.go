// This part is the nodes as operators see them: what each server knows of them, what
// is wanted of them, and what became of them.
//
// What operators want is kept in the control store. Every server reads it again and again
// and tells its own fleet, so that a wish holds on all servers, outlives each of them, and
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
	// readEvery is how soon a wish that another server was told reaches this one.
	readEvery = 2 * time.Second
	// keepEvents is how many events are kept, of all nodes together.
	keepEvents = 10_000
	pruneEvery = 10 * time.Minute
	// mostPending bounds the events that wait for the store.
	mostPending = 5_000
	// retryAfter is the pause before what could not be written is written again.
	retryAfter = 5 * time.Second
	// storeLimit is how long the store may take for one call.
	storeLimit = 10 * time.Second
	// at stands between the name of a server's own node and the server: all servers' own nodes
	// have the same name, and what is wanted of one is wanted of no other.
	at = "@"
)

// OperatorFleet is what the roster needs of engine/cluster/nodes. Each method returns at once, and
// repeating one is harmless.
type OperatorFleet interface {
	Nodes() []InfoNode
	Drain(id string)
	Resume(id string)
	Remove(id string)
	Admit(id string)
}

// OperatorOptions are what a roster is made of.
type OperatorOptions struct {
	Store Nodes
	// Server names this server in the events that it sees.
	Server string
	Log    zerolog.Logger
}

// Roster keeps the nodes' history and has what is wanted of them done. Its methods are
// safe for concurrent use.
type Roster struct {
	opts OperatorOptions

	// mu guards the events; a fleet that is told something calls Watch meanwhile.
	mu      sync.Mutex
	pending []NodeEvent
	dropped int
	// refused counts events that the store will never take.
	refused int
	wake    chan struct{}

	// telling guards the fleet and what it was last told for each node.
	telling sync.Mutex
	fleet   OperatorFleet
	done    map[string]NodeWish
	// wishes counts those that were noted here: what was read before the last one may not know it.
	wishes int
}

// NewOperator returns a roster; nothing is read or written before Keep.
func NewOperator(opts OperatorOptions) *Roster {
	return &Roster{opts: opts, wake: make(chan struct{}, 1), done: map[string]NodeWish{}}
}

// Watch takes an event of the fleet and does not wait.
func (r *Roster) Watch(e NodeEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.Server = r.opts.Server
	if len(r.pending) >= mostPending {
		r.pending = slices.Delete(r.pending, 0, 1)
		r.dropped++
	}
	r.pending = append(r.pending, e)
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Keep does what is wanted of the fleet's nodes and writes what became of them, until ctx
// ends. What waits then is written within a second.
func (r *Roster) Keep(ctx context.Context, f OperatorFleet) {
	r.telling.Lock()
	r.fleet = f
	r.telling.Unlock()
	var writing sync.WaitGroup
	writing.Go(func() { r.write(ctx) })
	defer writing.Wait()
	ticker := time.NewTicker(readEvery)
	defer ticker.Stop()
	silent := false
	for {
		err := r.follow(ctx)
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

// follow tells the fleet what is wanted, where it does not know it.
func (r *Roster) follow(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	r.telling.Lock()
	before := r.wishes
	r.telling.Unlock()
	wishes, err := r.opts.Store.NodeWishes(ctx)
	if err != nil {
		return fmt.Errorf("reading what is wanted of the nodes: %w", err)
	}
	for key, wish := range maps.Clone(wishes) {
		if id, server, own := strings.Cut(key, at); own {
			delete(wishes, key)
			if server == r.opts.Server {
				wishes[id] = wish
			}
		}
	}
	r.telling.Lock()
	defer r.telling.Unlock()
	if r.wishes != before {
		return nil // it is read again soon
	}
	for id := range r.done {
		if _, wanted := wishes[id]; !wanted {
			r.tell(id, WishNone)
		}
	}
	for id, wish := range wishes {
		r.tell(id, wish)
	}
	return nil
}

// tell brings a node from what was wanted to what is. It needs telling.
func (r *Roster) tell(id string, wish NodeWish) {
	f, was := r.fleet, r.done[id]
	if was == wish {
		return
	}
	switch was {
	case WishDrain:
		f.Resume(id)
	case WishRemove:
		f.Admit(id)
	}
	switch wish {
	case WishDrain:
		f.Drain(id)
	case WishRemove:
		f.Remove(id)
	}
	if wish == WishNone {
		delete(r.done, id)
		return
	}
	r.done[id] = wish
}

// said are the words of the history for what an operator has asked for.
var said = map[NodeWish]string{
	WishNone:   "an operator lets it take work again",
	WishDrain:  "an operator has asked it to drain",
	WishRemove: "an operator has removed it",
}

// Server names this server in the events that it sees.
func (r *Roster) Server() string { return r.opts.Server }

// Nodes are those that this server knows; none before Keep.
func (r *Roster) Nodes() []InfoNode {
	r.telling.Lock()
	f := r.fleet
	r.telling.Unlock()
	if f == nil {
		return nil
	}
	return f.Nodes()
}

// Node is one of Nodes, or an error that says that there is none of that name.
func (r *Roster) Node(id string) (InfoNode, error) {
	for _, n := range r.Nodes() {
		if n.NodeID == id && id != "" {
			return n, nil
		}
	}
	return InfoNode{}, &engine.Error{Code: engine.CodeNotFound, Message: fmt.Sprintf("There is no node %q.", id),
		Cause: store.ErrNotFound}
}

// Events are those of the nodes, newest first.
func (r *Roster) Events(ctx context.Context, f NodeEventFilter) ([]NodeEvent, error) {
	return r.opts.Store.NodeEvents(ctx, f)
}

// Wish notes what is wanted of a node that this server knows and has it done here at once;
// other servers follow. It returns the node as it is then.
func (r *Roster) Wish(ctx context.Context, id string, wish NodeWish, by string) (InfoNode, error) {
	n, err := r.Node(id)
	if err != nil {
		return n, err
	}
	// What another server was told a moment ago this one need not have read.
	wishes, err := r.opts.Store.NodeWishes(ctx)
	if err != nil {
		return n, fmt.Errorf("reading what is wanted of the nodes: %w", err)
	}
	n.Wish = wishes[r.key(id, n.Local)]
	switch {
	case n.Wish == wish:
		r.noted(id, wish)
		return r.Node(id)
	case wish == WishDrain && n.Wish == WishRemove:
		return n, &engine.Error{Code: engine.CodeConflict, Message: fmt.Sprintf("The node %s was removed.", id),
			Hint: "resume it first"}
	case wish == WishRemove && n.Local:
		return n, &engine.Error{Code: engine.CodeConflict, Message: "The server's own node cannot be removed.",
			Hint: "drain it, or start the server with --local-capacity 0"}
	}
	if err := r.wish(ctx, id, n.Local, wish, by); err != nil {
		return n, err
	}
	return r.Node(id)
}

func (r *Roster) wish(ctx context.Context, id string, local bool, wish NodeWish, by string) error {
	if err := r.opts.Store.SetNodeWish(ctx, r.key(id, local), wish, by); err != nil {
		return fmt.Errorf("noting what is wanted of the node %s: %w", id, err)
	}
	r.Watch(NodeEvent{At: engine.At(time.Now()), NodeID: id, Kind: NodeWished, Reason: said[wish], By: by})
	r.noted(id, wish)
	return nil
}

// noted does here what the store says is wanted.
func (r *Roster) noted(id string, wish NodeWish) {
	r.telling.Lock()
	defer r.telling.Unlock()
	r.wishes++
	r.tell(id, wish)
}

// key is the name of a node in the store.
func (r *Roster) key(id string, local bool) string {
	if local {
		return id + at + r.opts.Server
	}
	return id
}

// write brings events to the store, in order, until ctx ends.
func (r *Roster) write(ctx context.Context) {
	prune := time.NewTicker(pruneEvery)
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
			if err := r.opts.Store.PruneNodeEvents(ctx, keepEvents); err != nil && ctx.Err() == nil {
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
			again = time.After(retryAfter)
		}
	}
}

// flush writes what waits. What the store cannot take now stays, and what it will never take goes, alone.
func (r *Roster) flush(ctx context.Context) error {
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
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	if left, err := r.add(ctx, events); err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.pending = append(left, r.pending...)
		if over := len(r.pending) - mostPending; over > 0 {
			r.pending = r.pending[over:]
			r.dropped += over
		}
		return err
	}
	return nil
}

// add writes events, and returns those that are left. Of a batch that the store refuses each half is tried, so that
// one event that breaks a rule of the store takes no other with it, and holds none up.
func (r *Roster) add(ctx context.Context, events []NodeEvent) (left []NodeEvent, err error) {
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
