package nodes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/clock"
	"github.com/loadstone-db/loadstone/engine/cluster/assignment"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// forgetAfter is how long a node is shown that no way leads to any more.
const forgetAfter = 10 * time.Minute

// Nodes is what the server sees of each node now: those that it dials, and those that an
// operator has spoken of. They are in the order of their names, then of their addresses.
func (f *Fleet) Nodes() []NodeInfo {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	workers := map[string][]NodeRunWorker{}
	for _, w := range f.coord.Placements() {
		if isQueryWork(w.Key) {
			continue
		}
		a := f.placed[w.Key]
		workers[w.Node] = append(workers[w.Node], NodeRunWorker{RunID: a.RunID, RunName: a.RunName,
			WorkerID: a.WorkerID, Connections: a.Connections})
	}
	var all []NodeInfo
	known := map[string]bool{}
	for _, n := range f.nodes {
		if c, ok := f.coord.Node(n.ID()); ok && f.byID[c.ID] == n {
			known[c.ID] = true
			delete(f.takenOut, c.ID)
			all = append(all, n.view(c, workers[c.ID], now))
			continue
		}
		all = append(all, n.unidentified())
	}
	for _, c := range f.coord.Nodes() {
		if v := view(c, workers[c.ID], now); !known[c.ID] && (v.DesiredState != "" || len(v.Workers) > 0 ||
			now.Sub(f.shown[c.ID].since) < forgetAfter) {
			v.Address = c.Link
			v.Reason += "; the server has no way to it any more"
			v.TakenOut = f.takenOut[c.ID]
			all = append(all, v)
		}
	}
	for i := range all {
		all[i].Since = engine.At(f.shown[all[i].NodeID].since)
	}
	slices.SortStableFunc(all, func(a, b NodeInfo) int {
		if by := strings.Compare(a.NodeID, b.NodeID); by != 0 {
			return by
		}
		return strings.Compare(a.Address, b.Address)
	})
	return all
}

// Timing is what is known of the way to a node; zero while it is away.
func (f *Fleet) Timing(id string) (w clock.NodeTiming) {
	f.mu.Lock()
	c, ok := f.coord.Node(id)
	n := f.byID[id]
	f.mu.Unlock()
	if !ok || n == nil {
		return w
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if w.RTT = c.RTT; n.status != nil {
		w.ClockError = n.status.ClockError
	}
	return w
}

// tidyInterval is how often nodes are looked at that may be forgotten.
const tidyInterval = time.Minute

// pruneNodes forgets nodes that nobody dials any more and that are not shown any more.
func (f *Fleet) pruneNodes() {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if now.Sub(f.tidied) < tidyInterval {
		return
	}
	f.tidied = now
	dialled := map[string]bool{}
	for _, n := range f.nodes {
		dialled[n.ID()] = true
	}
	for _, c := range f.coord.Nodes() {
		if dialled[c.ID] || now.Sub(f.shown[c.ID].since) < forgetAfter {
			continue
		}
		for _, a := range f.coord.Apply(now, assignment.DialStopped{Node: c.ID}) {
			f.do(a)
		}
		if _, kept := f.coord.Node(c.ID); !kept {
			delete(f.byID, c.ID)
			delete(f.handles, c.ID)
			delete(f.shown, c.ID)
			delete(f.refused, c.ID)
			delete(f.takenOut, c.ID)
		}
	}
}

// Drain asks a node to end what it has and to take nothing new, also one that comes later.
func (f *Fleet) Drain(id string) { f.setDesired(id, assignment.DrainRequested{Node: id}) }

// Resume takes Drain back.
func (f *Fleet) Resume(id string) { f.setDesired(id, assignment.ResumeRequested{Node: id}) }

// Remove takes a node out: its stream is closed and its run workers are lost when they
// must have stopped by themselves.
func (f *Fleet) Remove(id string) { f.setDesired(id, assignment.Removed{Node: id}) }

// Admit takes Remove back.
func (f *Fleet) Admit(id string) {
	f.mu.Lock()
	delete(f.refused, id)
	f.mu.Unlock()
	f.setDesired(id, assignment.Added{Node: id})
}

func (f *Fleet) setDesired(id string, h assignment.Event) {
	f.apply(h)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notify(id)
}

// shownState is the state in which a node is shown, and since when.
type shownState struct {
	state NodeState
	since time.Time
}

// notify tells Watch of a node's state when it is another than before. It needs mu.
func (f *Fleet) notify(id string) {
	c, ok := f.coord.Node(id)
	if !ok {
		return
	}
	state := stateOf(c)
	from := f.shown[id].state
	if from == state || from == "" && c.Since.IsZero() {
		return
	}
	now := time.Now()
	f.shown[id] = shownState{state, now}
	f.opts.Watcher.RecordEvent(NodeEvent{At: engine.At(now), NodeID: id, Kind: NodeChangedState, From: from,
		To: state, Reason: reasonOf(c)})
}

// refuse says that somebody was sent away, once for each reason. It needs mu.
func (f *Fleet) refuse(a assignment.RejectNode) {
	if f.refused[a.Node] == a.Reason {
		return
	}
	f.refused[a.Node] = a.Reason
	f.opts.Log.Error().Str("node_id", a.Node).Str("address", a.Link).Msg("a node is refused: " + a.Reason)
	f.opts.Watcher.RecordEvent(NodeEvent{At: engine.At(time.Now()), NodeID: a.Node, Kind: NodeRefused,
		Reason: fmt.Sprintf("%s was sent away: %s", a.Link, a.Reason)})
}

// stateOf is the state as it is shown: draining is one, and so is being asked in vain.
func stateOf(c assignment.Node) NodeState {
	switch {
	case c.State == assignment.NodeRemoved:
		return NodeRemoved
	case c.State == assignment.NodeActive && (c.Draining || c.DrainRequested):
		return NodeDraining
	case c.State == assignment.NodeActive:
		return NodeActive
	case c.Connected:
		return NodeProbing
	case c.State == "":
		return NodeConnecting
	}
	return NodeUnreachable
}

// reasonOf says why a node is in its state.
func reasonOf(c assignment.Node) string {
	switch {
	case c.State == assignment.NodeActive && c.DrainRequested:
		return "an operator has asked it to drain"
	case c.State == assignment.NodeActive && c.Draining:
		return "its process is ending, or another server has asked it to drain"
	case c.State == assignment.NodeActive && !c.Accepting && c.Refusal != "":
		return c.Refusal
	}
	return c.Why
}

// outReason says why a node gets no new run workers, "" when it does.
func outReason(c assignment.Node) string {
	switch {
	case c.InRotation:
		return ""
	case c.State != assignment.NodeActive, c.DrainRequested, c.Draining:
		return reasonOf(c)
	}
	return cmp.Or(c.Refusal, "it says that it takes no work now")
}

func view(c assignment.Node, workers []NodeRunWorker, now time.Time) NodeInfo {
	v := NodeInfo{NodeID: c.ID, State: stateOf(c), Reason: reasonOf(c),
		Health: engine.HealthDead, AcceptingWork: c.InRotation, OutReason: outReason(c), Capacity: c.Capacity, Used: c.Used,
		TimeoutMs: engine.Milliseconds(c.Timeout), Misses: c.Misses, LastContact: engine.At(c.LastPong),
		Workers: workers}
	switch {
	case c.State == assignment.NodeRemoved:
		v.DesiredState = DesiredRemove
	case c.DrainRequested:
		v.DesiredState = DesiredDrain
	}
	if !c.LastPong.IsZero() {
		v.Health = NodeHealth(now.Sub(c.LastPong))
	}
	if c.RTT > 0 {
		ms := engine.Milliseconds(c.RTT)
		v.RTTMs = &ms
	}
	if v.Workers == nil {
		v.Workers = []NodeRunWorker{}
	}
	return v
}

// view adds what is known of the way to the node.
func (n *node) view(c assignment.Node, workers []NodeRunWorker, now time.Time) NodeInfo {
	v := view(c, workers, now)
	n.mu.Lock()
	defer n.mu.Unlock()
	v.Address, v.Version = n.address(), n.version
	v.Local = v.Address == ""
	if n.status != nil {
		r := n.status.Resources
		v.Resources = &r
		if n.status.ClockError > 0 {
			ahead, wrong := engine.Milliseconds(-n.status.ClockOffset), engine.Milliseconds(n.status.ClockError)
			v.ClockOffsetMs, v.ClockErrorMs = &ahead, &wrong
		}
	}
	if v.State == NodeUnreachable && n.failure != "" && n.failure != v.Reason {
		v.Reason, v.OutReason = v.Reason+"; "+n.failure, v.OutReason+"; "+n.failure
	}
	return v
}

// unidentified is a way on which no node has introduced itself, or one that was sent away.
func (n *node) unidentified() NodeInfo {
	n.mu.Lock()
	defer n.mu.Unlock()
	v := NodeInfo{Address: n.address(), State: NodeConnecting, Health: engine.HealthDead,
		Reason: "no node has introduced itself at the address yet", Workers: []NodeRunWorker{}}
	v.Local = v.Address == ""
	switch {
	case n.id != "":
		v.Reason = fmt.Sprintf("the node there calls itself %s, as one that is connected does", n.id)
	case n.failure != "":
		v.Reason = n.failure
	}
	v.OutReason = v.Reason
	return v
}

// address is where the node is dialled, "" in the server's own process.
func (n *node) address() string {
	if d, ok := n.dialer.(protocol.Addressed); ok {
		return d.Address()
	}
	return ""
}

// link names the way to the node: its address, or the way itself.
func (n *node) link() string {
	if a := n.address(); a != "" {
		return a
	}
	return fmt.Sprintf("link %p", n)
}

// connected notes that its stream stands.
func (n *node) connected() {
	n.mu.Lock()
	var after time.Duration
	if !n.lost.IsZero() {
		after = time.Since(n.lost)
	}
	n.lost, n.failure = time.Time{}, ""
	n.mu.Unlock()
	n.fleet.opts.Meter.Connected(after)
}

// failed notes why there is no stream.
func (n *node) failed(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.lost.IsZero() && n.id != "" {
		n.lost = time.Now()
	}
	if err != nil {
		n.failure = err.Error()
	}
}
