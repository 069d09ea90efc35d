package nodes

import (
	"context"
	"time"

	"github.com/loadstone-db/loadstone/engine/cluster/assignment"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// QueryWork is a piece of the work of a query.
type QueryWork struct {
	protocol.AssignWork
	// Affinity is what the node should have at hand: the same affinity goes to the same node while that is possible.
	Affinity string
}

// QueryListener takes what becomes of the work of its query. Its methods are called in order, while the fleet waits:
// they return at once, and ask the fleet for nothing.
type QueryListener interface {
	// Assigned: a node was given a work, for the attempt-th time; preferred: the one that its affinity names.
	Assigned(k protocol.WorkKey, nodeID string, attempt int, preferred bool)
	// Ready: what a work came to lies on a node, where Open finds it. Fetched or FetchFailed answers.
	Ready(k protocol.WorkKey, p Part)
	// WorkFailed: a work has failed for good.
	WorkFailed(k protocol.WorkKey, failure protocol.WorkFailed)
}

// activeQuery is a query whose work nodes have.
type activeQuery struct {
	listener QueryListener
	works    map[assignment.Key]protocol.AssignWork
	// ready are announcements, by checksum; failed the last failure of a work.
	ready  map[assignment.Key]map[string]Part
	failed map[assignment.Key]protocol.WorkFailed
}

func coordKey(k protocol.WorkKey) assignment.Key {
	return assignment.Key{Query: k.QueryID, Leaf: k.LeafID, Work: k.WorkID}
}

func workKey(k assignment.Key) protocol.WorkKey {
	return protocol.WorkKey{QueryID: k.Query, LeafID: k.Leaf, WorkID: k.Work}
}

// Query has the work of a query done by nodes; what they have of it when the caller is done, Forget ends.
func (f *Fleet) Query(queryID string, asker QueryListener, works ...QueryWork) {
	q := &activeQuery{listener: asker, works: make(map[assignment.Key]protocol.AssignWork, len(works)),
		ready: map[assignment.Key]map[string]Part{}, failed: map[assignment.Key]protocol.WorkFailed{}}
	submitted := make([]assignment.Work, len(works))
	for i, w := range works {
		key := coordKey(w.WorkKey)
		q.works[key] = w.AssignWork
		submitted[i] = assignment.Work{Key: key, Affinity: w.Affinity, Query: true, OnLoss: assignment.Reassign}
	}
	f.mu.Lock()
	f.queries[queryID] = q
	f.mu.Unlock()
	f.apply(assignment.Submitted{Works: submitted})
}

// QueryNodes is how many nodes take the work of queries now.
func (f *Fleet) QueryNodes() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, node := range f.coord.Nodes() {
		if node.InRotation && node.AcceptsQueries {
			n++
		}
	}
	return n
}

// HasStrandedWork reports whether some work of a query waits while no node takes any.
func (f *Fleet) HasStrandedWork(queryID string) bool {
	f.mu.Lock()
	waits := f.coord.HasWaiting(queryID)
	f.mu.Unlock()
	return waits && f.QueryNodes() == 0
}

// Fetched says that the answer of a work was taken in. It reports whether that is the one that counts: of several
// completions the first.
func (f *Fleet) Fetched(k protocol.WorkKey, checksum string) (counts bool) {
	f.mu.Lock()
	defer f.wake()
	defer f.mu.Unlock()
	for _, a := range f.coord.Apply(time.Now(), assignment.Fetched{Key: coordKey(k), Checksum: checksum}) {
		if d, ok := a.(assignment.Done); ok && d.Key == coordKey(k) {
			counts = true
		}
		f.do(a)
	}
	return counts
}

// FetchFailed says that it could not be; gone: the node does not have it any more, or has something else.
func (f *Fleet) FetchFailed(k protocol.WorkKey, checksum, reason string, gone bool) {
	f.apply(assignment.FetchFailed{Key: coordKey(k), Checksum: checksum, Reason: reason, Gone: gone})
}

// Hedge has a work done by another node, too, where there is one.
func (f *Fleet) Hedge(k protocol.WorkKey) { f.apply(assignment.HedgeRequested{Key: coordKey(k)}) }

// doQuery carries out what is about the work of a query, and reports whether the action is. It needs mu.
func (f *Fleet) doQuery(a assignment.Action) bool {
	switch a := a.(type) {
	case assignment.Assign:
		q := f.queries[a.Work.Key.Query]
		if !a.Work.Query {
			return false
		}
		if q == nil {
			return true
		}
		w := q.works[a.Work.Key]
		w.Attempt = a.Attempt
		f.activeQueries[a.Work.Key] = time.Now()
		w.TraceParent = f.opts.Meter.Assigned(workOn(a.Node, a.Work.Key), a.Preferred, a.Attempt > 1)
		f.send(a.Node, w)
		q.listener.Assigned(w.WorkKey, a.Node, a.Attempt, a.Preferred)
	case assignment.Cancel:
		if !isQueryWork(a.Key) {
			return false
		}
		f.cancel(a.Node, a.Key)
	case assignment.Unknown:
		if isQueryWork(a.Key) {
			f.cancel(a.Node, a.Key)
		}
	case assignment.AckArtifact:
		n := f.handle(a.Node)
		made := workKey(a.Key).Artifact()
		n.acknowledge(protocol.PartWorkID(made))
		f.send(a.Node, protocol.ArtifactAck{RunID: made.RunID, WorkerID: made.WorkerID, Name: made.Name, SHA256: a.Checksum})
	case assignment.Fetch:
		if q := f.queries[a.Key.Query]; q != nil {
			q.listener.Ready(workKey(a.Key), q.ready[a.Key][a.Node+" "+a.Checksum])
		}
	case assignment.Abandoned:
		if q := f.queries[a.Key.Query]; q != nil {
			failure := q.failed[a.Key]
			if failure.WorkKey = workKey(a.Key); failure.Reason == "" {
				failure.Reason = a.Reason
			}
			q.listener.WorkFailed(failure.WorkKey, failure)
		}
	default:
		return false
	}
	return true
}

// isQueryWork tells works of queries from run workers.
func isQueryWork(k assignment.Key) bool { return k.Leaf != "" }

// cancel ends a work on a node. It needs mu.
func (f *Fleet) cancel(node string, k assignment.Key) {
	w := workOn(node, k)
	// Cancelled twice it has gone on since the first time.
	if _, known := f.cancelled[w]; !known && len(f.cancelled) < maxCancelled {
		f.cancelled[w] = time.Now()
	}
	f.send(node, protocol.CancelWork{WorkKey: workKey(k)})
}

// maxCancelled bounds how many cancellations are measured at a time.
const maxCancelled = 4096

// handleQueryMessage takes in what a node says of the work of a query.
func (n *node) handleQueryMessage(ctx context.Context, session string, end protocol.ServerEnd, m protocol.FromNode) {
	f, id := n.fleet, n.ID()
	switch m := m.(type) {
	case protocol.WorkAccepted:
		f.apply(assignment.Accepted{Node: id, Session: session, Key: coordKey(m.WorkKey)})
	case protocol.WorkRejected:
		f.apply(assignment.Rejected{Node: id, Session: session, Key: coordKey(m.WorkKey), Reason: m.Reason})
	case protocol.WorkFailed:
		if m.Cancelled {
			n.measureCancelled(coordKey(m.WorkKey))
			return
		}
		f.mu.Lock()
		if q := f.queries[m.QueryID]; q != nil {
			q.failed[coordKey(m.WorkKey)] = m
		}
		f.mu.Unlock()
		f.apply(assignment.Failed{Node: id, Session: session, Key: coordKey(m.WorkKey), Reason: m.Reason, Final: m.Final})
	case protocol.WorkReady:
		k, _ := protocol.ArtifactWork(m.Artifact)
		key, sum := coordKey(k), m.Artifact.SHA256
		f.mu.Lock()
		if q := f.queries[k.QueryID]; q != nil {
			n.from.noteAnnounced(m.WorkID) // what is of a query that is over nobody acknowledges
			if q.ready[key] == nil {
				q.ready[key] = map[string]Part{}
			}
			q.ready[key][id+" "+sum] = Part{WorkReady: m, Node: n.from}
		}
		f.mu.Unlock()
		f.apply(assignment.Ready{Node: id, Session: session, Key: key, Checksum: sum})
	case protocol.SegmentRequest:
		n.requestSegment(ctx, end, m)
	}
}

// measureCancelled measures how long a cancelled work went on.
func (n *node) measureCancelled(k assignment.Key) {
	f := n.fleet
	w := workOn(n.ID(), k)
	f.mu.Lock()
	at, known := f.cancelled[w]
	delete(f.cancelled, w)
	f.mu.Unlock()
	if known {
		f.opts.Meter.Cancelled(w, time.Since(at))
	}
}

// forgetCancelled forgets cancellations that a node which is gone does not answer. It needs mu.
func (f *Fleet) forgetCancelled(node string) {
	for w := range f.cancelled {
		if w.NodeID == node {
			delete(f.cancelled, w)
		}
	}
}
