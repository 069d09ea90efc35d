package nodes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/cluster/assignment"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// keyOf names a run worker.
func keyOf(runID, workerID string) assignment.Key {
	return assignment.Key{Query: runID, Work: workerID}
}

// AssignWorkers finds a node for each run worker and gives it to it, for all of them or for
// none: then the error says why. where says which, by run worker; the others are spread evenly over
// the nodes that take work.
func (f *Fleet) AssignWorkers(where map[string]string, workers ...protocol.AssignRun) ([]Node, error) {
	for i, a := range workers {
		// The run workers of a run differ in names and numbers only.
		if i > 0 && a.RunID == workers[0].RunID && a.Plan == workers[0].Plan || where[a.WorkerID] == protocol.OwnNode {
			continue
		}
		if err := f.CheckSize(a); err != nil {
			return nil, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	works := make([]assignment.Work, len(workers))
	for i, a := range workers {
		key := keyOf(a.RunID, a.WorkerID)
		works[i] = assignment.Work{Key: key, Only: cmp.Or(where[a.WorkerID], f.requiresLocal(a.Workload, a.DSN)),
			Weight: a.Connections, OnLoss: assignment.StayInPlace}
		if a.Clock != nil {
			a.ClockAhead = a.Clock.Now().Sub(f.clock.Now())
		}
		f.placed[key] = a
	}
	on := map[assignment.Key]Node{}
	for _, a := range f.coord.Apply(time.Now(), assignment.Submitted{Works: works, Together: true}) {
		switch a := a.(type) {
		case assignment.Assign:
			on[a.Work.Key] = f.handle(a.Node)
		case assignment.NoCapacity:
			for _, key := range a.Keys {
				delete(f.placed, key)
			}
			return nil, errors.New(a.Reason)
		}
		f.do(a)
	}
	f.wake()
	nodes := make([]Node, len(workers))
	for i, a := range workers {
		if nodes[i] = on[keyOf(a.RunID, a.WorkerID)]; nodes[i] == nil {
			return nil, fmt.Errorf("%s has been placed before", a.WorkerID)
		}
	}
	return nodes, nil
}

// Now is the present moment by the clock that nodes compare theirs with.
func (f *Fleet) Now() time.Time { return f.clock.Now() }

// CheckSize refuses an assignment, or as much as is known of it, that is too large to be sent, where nodes of other
// processes may have to carry it.
func (f *Fleet) CheckSize(a protocol.AssignRun) error {
	f.mu.Lock()
	own := f.requiresLocal(a.Workload, a.DSN) == protocol.OwnNode ||
		!slices.ContainsFunc(f.coord.Nodes(), func(n assignment.Node) bool { return n.ID != protocol.OwnNode })
	f.mu.Unlock()
	if own {
		return nil
	}
	return a.Fits()
}

// RequiredNode is the one node that can carry a workload on a target, empty where any can.
func (f *Fleet) RequiredNode(w engine.Workload, dsn secret.Secret) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.requiresLocal(w, dsn)
}

// requiresLocal is the server's own node for what no node of another process reaches: a recorded run,
// and a database of the server. Where the server has none, nodes on its machine may reach the
// database that is on it.
func (f *Fleet) requiresLocal(w engine.Workload, dsn secret.Secret) string {
	recorded := w.Feed != nil && w.Feed.Run != ""
	reach := FromAnyNode
	if f.opts.Network != nil {
		reach = f.opts.Network.Reachability(dsn)
	}
	if !recorded && reach == FromAnyNode {
		return ""
	}
	if !recorded && reach == FromSameMachine &&
		!slices.ContainsFunc(f.coord.Nodes(), func(n assignment.Node) bool { return n.ID == protocol.OwnNode }) {
		return ""
	}
	return protocol.OwnNode
}

// AdoptedWorker is a run worker that a node carries for a server whose run is taken over.
type AdoptedWorker struct {
	protocol.AssignRun
	// Node names it.
	Node string
}

// Adopt takes run workers over that nodes carry already, and tells all nodes how their run
// stands: those that hold something of it say what. It returns the node of each, which need
// not be there yet. What a node turns out not to hold is lost, and told as such.
func (f *Fleet) Adopt(state protocol.RunState, workers ...AdoptedWorker) []Node {
	works := make([]assignment.HeldWork, len(workers))
	nodes := make([]Node, len(workers))
	f.mu.Lock()
	for i, w := range workers {
		key := keyOf(w.RunID, w.WorkerID)
		f.placed[key] = w.AssignRun
		works[i] = assignment.HeldWork{Node: w.Node,
			Work: assignment.Work{Key: key, Weight: w.Connections, OnLoss: assignment.StayInPlace}}
		nodes[i] = f.handle(w.Node)
	}
	f.mu.Unlock()
	f.apply(assignment.Adopted{Works: works})
	f.BroadcastState(state)
	return nodes
}

// BroadcastState tells all nodes how a run stands. The first message of a new epoch makes this
// server the owner of the run, and nodes say what they hold of it.
func (f *Fleet) BroadcastState(state protocol.RunState) {
	for _, n := range f.allNodes() {
		_ = n.Send(state) // to a node that has gone: it has it when it is back
	}
}

// BroadcastAndWait is Announce, and waits until the nodes that are there have said what they hold, a few
// seconds at most.
func (f *Fleet) BroadcastAndWait(ctx context.Context, state protocol.RunState) {
	ways := f.allNodes()
	before := make([]int64, len(ways))
	for i, n := range ways {
		before[i] = n.greetings.Load()
	}
	f.BroadcastState(state)
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	for i, n := range ways {
		for !n.disconnected() && n.greetings.Load() == before[i] {
			select {
			case <-time.After(ackPollInterval):
			case <-ctx.Done():
				return
			}
		}
	}
}

// allNodes are the ways to all nodes that there are now.
func (f *Fleet) allNodes() []*node {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.nodes)
}

// ackPollInterval is how often Ask looks whether the nodes have answered.
const ackPollInterval = 10 * time.Millisecond

// ReleaseRun ends what the fleet knows of a run: what nodes still hold of it they are told to end.
func (f *Fleet) ReleaseRun(runID string) { f.releaseRun(assignment.Released{Query: runID}) }

// HandOffRun forgets a run that another server has taken over: what nodes hold of it is that server's.
func (f *Fleet) HandOffRun(runID string) {
	f.releaseRun(assignment.Released{Query: runID, Remote: true})
}

func (f *Fleet) releaseRun(h assignment.Released) {
	f.apply(h)
	f.mu.Lock()
	defer f.mu.Unlock()
	for key := range f.placed {
		if key.Query == h.Query {
			delete(f.placed, key)
			delete(f.activeQueries, key)
		}
	}
	if q := f.queries[h.Query]; q != nil {
		for key, made := range q.ready {
			for _, p := range made {
				if n, ok := p.Node.(*handle); ok {
					n.acknowledge(p.WorkID)
				}
			}
			delete(q.ready, key)
		}
		for key := range q.works {
			delete(f.activeQueries, key)
		}
		delete(f.queries, h.Query)
	}
}

// apply tells the coordinator what has happened, does what it says, and tells the
// listener of what is lost.
func (f *Fleet) apply(h assignment.Event) {
	tell, _ := f.decide(h, nil)
	tell()
}

// decide is apply without telling the listener, who may ask the fleet something. by is the way
// on which a node has introduced itself; refused says that it is not wanted.
func (f *Fleet) decide(h assignment.Event, by *node) (tell func(), refused bool) {
	f.mu.Lock()
	defer f.wake()
	defer f.mu.Unlock()
	var lost []func()
	actions := f.coord.Apply(time.Now(), h)
	if g, ok := h.(assignment.HelloReceived); ok {
		refused = slices.ContainsFunc(actions, func(a assignment.Action) bool {
			r, ok := a.(assignment.RejectNode)
			return ok && r.Session == g.Session
		})
		// What is to be said now goes to where the node is. Nothing waits for one that was never let in.
		if !refused || f.byID[g.Node] == nil {
			by.identify(g.Node)
		}
	}
	for _, a := range actions {
		switch a := a.(type) {
		case assignment.Lost:
			if w, ok := f.placed[a.Key]; ok {
				from := f.handle(a.Node)
				lost = append(lost, func() { f.listener.Receive(w.RunID, from, lostWorker(w, a)) })
			}
			continue
		}
		f.do(a)
	}
	f.measure(h)
	return func() {
		for _, tell := range lost {
			tell()
		}
	}, refused
}

// lostWorker is what a node would have said of a run worker that is gone with it. It has no time: that of the run is
// not the machine's where another server has begun it.
func lostWorker(a protocol.AssignRun, l assignment.Lost) protocol.WorkerState {
	return protocol.WorkerState{RunID: a.RunID, ResultID: a.ResultID, WorkerID: a.WorkerID, WorkerGroupID: a.WorkerGroupID,
		NodeID: l.Node, Status: engine.WorkerFailed, WantConnections: a.Connections,
		Err: &engine.Error{Code: engine.CodeUnavailable,
			Message: fmt.Sprintf("%s was lost with the node %s: %s.", a.WorkerID, l.Node, l.Reason)}}
}

// do carries out an action. It needs mu, and waits for nobody.
func (f *Fleet) do(a assignment.Action) {
	if f.doQuery(a) {
		return
	}
	switch a := a.(type) {
	case assignment.Ping:
		f.send(a.Node, protocol.Ping{Seq: a.Seq, Sent: time.Now()})
	case assignment.Assign:
		f.activeQueries[a.Work.Key] = time.Now()
		run := f.placed[a.Work.Key]
		run.TraceParent = f.opts.Meter.Assigned(workOn(a.Node, a.Work.Key), a.Preferred, a.Attempt > 1)
		f.send(a.Node, run)
	case assignment.Drain:
		f.send(a.Node, protocol.Drain{})
	case assignment.Resume:
		f.send(a.Node, protocol.Drain{Over: true})
	case assignment.Cancel:
		// In the epoch of the run as it was placed here: of a run that another server has taken
		// over since, nothing is ended.
		if w, ok := f.placed[a.Key]; ok {
			f.send(a.Node, EndOrphan(w.RunID, w.WorkerID, w.Epoch))
		}
	case assignment.RejectNode:
		f.refuse(a)
		for _, n := range f.nodes {
			n.reject(a.Session, a.Reason)
		}
	case assignment.NodeChanged:
		f.opts.Log.Info().Str("node_id", a.Node).Str("state", string(a.To)).Str("why",
			a.Why).Msg("a node's state has changed")
		f.notify(a.Node)
	}
	// Probe: keep dials by itself. Unknown: the listener decides about strangers.
}

// EndOrphan ends a run worker that nobody asks about any more, where no server has a later epoch of its run.
func EndOrphan(runID, workerID string, epoch int64) protocol.RunEvent {
	return protocol.RunEvent{Epoch: epoch, Event: engine.Event{RunID: runID, Type: engine.EventStop,
		SequenceID: math.MaxInt64, Data: engine.EventData{Scope: engine.ScopeWorker, WorkerID: workerID,
			Reason: string(engine.StopWorkerFailure), Detail: "nobody asks about it any more",
			DrainTimeoutSeconds: protocol.CancelTimeout.Seconds()}}}
}

// send gives a node a message; one that has gone has it when it is back.
func (f *Fleet) send(id string, m protocol.ToNode) {
	if n := f.byID[id]; n != nil {
		_ = n.Send(m)
	}
}

func (f *Fleet) wake() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// minTickInterval is the least time between two decisions by time. Each looks at all nodes and all works, and
// each node has a beat of its own: without it a thousand nodes would be looked at a thousand times a second.
const minTickInterval = 20 * time.Millisecond

// runTimer lets the coordinator decide by time.
func (f *Fleet) runTimer(ctx context.Context) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
		pause.Reset(minTickInterval)
		f.mu.Lock()
		due := f.coord.Due()
		f.mu.Unlock()
		var timer <-chan time.Time
		if !due.IsZero() {
			timer = time.After(time.Until(due))
		}
		select {
		case <-timer:
		case <-f.changed:
		case <-ctx.Done():
			return
		}
		// Both may have come at one moment: what is due is decided whichever was seen, and what changed
		// until now is looked at in the next round anyway.
		select {
		case <-f.changed:
		default:
		}
		if !due.IsZero() && !time.Now().Before(due) {
			f.apply(assignment.Tick{})
			f.pruneNodes()
		}
	}
}
