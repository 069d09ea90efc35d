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
	"github.com/loadstone-db/loadstone/engine/cluster/assignment"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// keyOf names a run worker.
func keyOf(runID, workerID string) assignment.Key {
	return assignment.Key{Query: runID, Work: workerID}
}

// Place finds a node for each run worker and gives it to it, for all of them or for
// none: then the error says why. where says which, by run worker; the others are spread evenly over
// the nodes that take work.
func (f *Fleet) Place(where map[string]string, workers ...protocol.AssignRun) ([]Node, error) {
	for i, a := range workers {
		// The run workers of a run differ in names and numbers only.
		if i > 0 && a.RunID == workers[0].RunID && a.Plan == workers[0].Plan || where[a.WorkerID] == protocol.OwnNode {
			continue
		}
		if err := f.Sendable(a); err != nil {
			return nil, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	works := make([]assignment.Work, len(workers))
	for i, a := range workers {
		key := keyOf(a.RunID, a.WorkerID)
		works[i] = assignment.Work{Key: key, Only: cmp.Or(where[a.WorkerID], f.only(a.Workload, a.DSN)),
			Weight: a.Connections, OnLoss: assignment.StayPut}
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
		case assignment.NotPlaced:
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

// Sendable refuses an assignment, or as much as is known of it, that is too large to be sent, where nodes of other
// processes may have to carry it.
func (f *Fleet) Sendable(a protocol.AssignRun) error {
	f.mu.Lock()
	own := f.only(a.Workload, a.DSN) == protocol.OwnNode ||
		!slices.ContainsFunc(f.coord.Nodes(), func(n assignment.Node) bool { return n.ID != protocol.OwnNode })
	f.mu.Unlock()
	if own {
		return nil
	}
	return a.Fits()
}

// Only is the one node that can carry a workload on a target, empty where any can.
func (f *Fleet) Only(w engine.Workload, dsn string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.only(w, dsn)
}

// only is the server's own node for what no node of another process reaches: a recorded run,
// and a database of the server. Where the server has none, nodes on its machine may reach the
// database that is on it.
func (f *Fleet) only(w engine.Workload, dsn string) string {
	recorded := w.Feed != nil && w.Feed.Run != ""
	reach := ByAll
	if f.opts.Reach != nil {
		reach = f.opts.Reach(dsn)
	}
	if !recorded && reach == ByAll {
		return ""
	}
	if !recorded && reach == ByMachine &&
		!slices.ContainsFunc(f.coord.Nodes(), func(n assignment.Node) bool { return n.ID == protocol.OwnNode }) {
		return ""
	}
	return protocol.OwnNode
}

// Carried is a run worker that a node carries for a server whose run is taken over.
type Carried struct {
	protocol.AssignRun
	// Node names it.
	Node string
}

// Adopt takes run workers over that nodes carry already, and tells all nodes how their run
// stands: those that hold something of it say what. It returns the node of each, which need
// not be there yet. What a node turns out not to hold is lost, and told as such.
func (f *Fleet) Adopt(state protocol.RunState, workers ...Carried) []Node {
	works := make([]assignment.Held, len(workers))
	nodes := make([]Node, len(workers))
	f.mu.Lock()
	for i, w := range workers {
		key := keyOf(w.RunID, w.WorkerID)
		f.placed[key] = w.AssignRun
		works[i] = assignment.Held{Node: w.Node,
			Work: assignment.Work{Key: key, Weight: w.Connections, OnLoss: assignment.StayPut}}
		nodes[i] = f.handle(w.Node)
	}
	f.mu.Unlock()
	f.apply(assignment.Adopted{Works: works})
	f.Announce(state)
	return nodes
}

// Announce tells all nodes how a run stands. The first message of a new epoch makes this
// server the owner of the run, and nodes say what they hold of it.
func (f *Fleet) Announce(state protocol.RunState) {
	for _, n := range f.known() {
		_ = n.Send(state) // to a node that has gone: it has it when it is back
	}
}

// Ask is Announce, and waits until the nodes that are there have said what they hold, a few
// seconds at most.
func (f *Fleet) Ask(ctx context.Context, state protocol.RunState) {
	ways := f.known()
	before := make([]int64, len(ways))
	for i, n := range ways {
		before[i] = n.greetings.Load()
	}
	f.Announce(state)
	ctx, cancel := context.WithTimeout(ctx, helloLimit)
	defer cancel()
	for i, n := range ways {
		for !n.away() && n.greetings.Load() == before[i] {
			select {
			case <-time.After(askEvery):
			case <-ctx.Done():
				return
			}
		}
	}
}

// known are the ways to all nodes that there are now.
func (f *Fleet) known() []*node {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.nodes)
}

// askEvery is how often Ask looks whether the nodes have answered.
const askEvery = 10 * time.Millisecond

// Forget ends what the fleet knows of a run: what nodes still hold of it they are told to end.
func (f *Fleet) Forget(runID string) { f.forgotten(assignment.Forgotten{Query: runID}) }

// Disown forgets a run that another server has taken over: what nodes hold of it is that server's.
func (f *Fleet) Disown(runID string) {
	f.forgotten(assignment.Forgotten{Query: runID, Elsewhere: true})
}

func (f *Fleet) forgotten(h assignment.Forgotten) {
	f.apply(h)
	f.mu.Lock()
	defer f.mu.Unlock()
	for key := range f.placed {
		if key.Query == h.Query {
			delete(f.placed, key)
			delete(f.asked, key)
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
			delete(f.asked, key)
		}
		delete(f.queries, h.Query)
	}
}

// apply tells the coordinator what has happened, does what it says, and tells the
// listener of what is lost.
func (f *Fleet) apply(h assignment.Happening) {
	tell, _ := f.decide(h, nil)
	tell()
}

// decide is apply without telling the listener, who may ask the fleet something. by is the way
// on which a node has introduced itself; refused says that it is not wanted.
func (f *Fleet) decide(h assignment.Happening, by *node) (tell func(), refused bool) {
	f.mu.Lock()
	defer f.wake()
	defer f.mu.Unlock()
	var lost []func()
	actions := f.coord.Apply(time.Now(), h)
	if g, ok := h.(assignment.Greeted); ok {
		refused = slices.ContainsFunc(actions, func(a assignment.Action) bool {
			r, ok := a.(assignment.RefuseNode)
			return ok && r.Session == g.Session
		})
		// What is to be said now goes to where the node is. Nothing waits for one that was never let in.
		if !refused || f.byID[g.Node] == nil {
			by.arrive(g.Node)
		}
	}
	for _, a := range actions {
		switch a := a.(type) {
		case assignment.Lost:
			if w, ok := f.placed[a.Key]; ok {
				from := f.handle(a.Node)
				lost = append(lost, func() { f.listener.Hear(w.RunID, from, lostWorker(w, a)) })
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
		f.tell(a.Node, protocol.Ping{Seq: a.Seq, Sent: time.Now()})
	case assignment.Assign:
		f.asked[a.Work.Key] = time.Now()
		run := f.placed[a.Work.Key]
		run.TraceParent = f.opts.Meter.Assigned(workOn(a.Node, a.Work.Key), a.Preferred, a.Attempt > 1)
		f.tell(a.Node, run)
	case assignment.Drain:
		f.tell(a.Node, protocol.Drain{})
	case assignment.Resume:
		f.tell(a.Node, protocol.Drain{Over: true})
	case assignment.Cancel:
		// In the epoch of the run as it was placed here: of a run that another server has taken
		// over since, nothing is ended.
		if w, ok := f.placed[a.Key]; ok {
			f.tell(a.Node, EndOf(w.RunID, w.WorkerID, w.Epoch))
		}
	case assignment.RefuseNode:
		f.refuse(a)
		for _, n := range f.nodes {
			n.refuse(a.Session, a.Reason)
		}
	case assignment.NodeChanged:
		f.opts.Log.Info().Str("node_id", a.Node).Str("state", string(a.To)).Str("why",
			a.Why).Msg("a node's state has changed")
		f.note(a.Node)
	}
	// Probe: keep dials by itself. Unknown: the listener decides about strangers.
}

// EndOf ends a run worker that nobody asks about any more, where no server has a later epoch of its run.
func EndOf(runID, workerID string, epoch int64) protocol.RunEvent {
	return protocol.RunEvent{Epoch: epoch, Event: engine.Event{RunID: runID, Type: engine.EventStop,
		SequenceID: math.MaxInt64, Data: engine.EventData{Scope: engine.ScopeWorker, WorkerID: workerID,
			Reason: string(engine.StopWorkerFailure), Detail: "nobody asks about it any more",
			DrainTimeoutSeconds: protocol.CancelLimit.Seconds()}}}
}

// tell gives a node a message; one that has gone has it when it is back.
func (f *Fleet) tell(id string, m protocol.ToNode) {
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

// tickEvery is the least time between two decisions by time. Each looks at all nodes and all works, and
// each node has a beat of its own: without it a thousand nodes would be looked at a thousand times a second.
const tickEvery = 20 * time.Millisecond

// keepTime lets the coordinator decide by time.
func (f *Fleet) keepTime(ctx context.Context) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
		pause.Reset(tickEvery)
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
			f.apply(assignment.Ticked{})
			f.tidy()
		}
	}
}
