// This part is the nouns of nodes as they are shown: how a server sees each of them,
// what operators want of them, and what became of them.

package nodes

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// NodeState says how far a node can be relied upon.
type NodeState string

// The states of a node, as they are shown.
const (
	// NodeConnecting: nobody has introduced itself at the address since the server started.
	NodeConnecting NodeState = "CONNECTING"
	NodeActive     NodeState = "ACTIVE"
	// NodeDraining: it ends what it has, and takes nothing new.
	NodeDraining NodeState = "DRAINING"
	// NodeProbing: its stream stands and it does not answer; it is asked again and again.
	NodeProbing NodeState = "PROBING"
	// NodeUnreachable: there is no stream to it; it is dialled again and again.
	NodeUnreachable NodeState = "UNREACHABLE"
	// NodeRemoved: an operator has taken it out.
	NodeRemoved NodeState = "REMOVED"
)

// NodeInfo is a node as one server sees it.
type NodeInfo struct {
	NodeID  string        `json:"node_id" doc:"The node's own name; empty while nobody has introduced itself at the address."`
	Address string        `json:"address" doc:"Where the server dials it; empty for the node of the server's own process."`
	Local   bool          `json:"local" doc:"The node of the server's own process."`
	State   NodeState     `json:"state"`
	Since   engine.Time   `json:"since" doc:"When the state began; null where it never was another."`
	Reason  string        `json:"reason" doc:"Why the node is in its state, in words."`
	Health  engine.Health `json:"health" doc:"By the last contact: HEALTHY under 30 s, STALE from 30 s, DEAD over 60 s."`
	// DesiredState is what an operator wants, also while the node is away.
	DesiredState  DesiredState `json:"wish" doc:"What an operator has asked for; empty when nothing."`
	AcceptingWork bool         `json:"accepting_work" doc:"New run workers can be placed on it."`
	OutReason     string       `json:"not_accepting_reason" doc:"Why no run worker can be placed on it; empty while they can."`
	Version       string       `json:"version"`
	Capacity      int          `json:"capacity" doc:"Most connections of all runs together; 0 is no limit."`
	Used          int          `json:"used_connections"`
	RTTMs         *float64     `json:"rtt_ms" doc:"The last round trip of a heartbeat; null when none was measured."`
	TimeoutMs     float64      `json:"heartbeat_timeout_ms" doc:"How long the next answer may take, by the last round trip."`
	Misses        int          `json:"missed_heartbeats" doc:"In a row; three make the node unreachable."`
	// ClockOffsetMs is how far the node's clock is ahead of the server's.
	ClockOffsetMs *float64          `json:"clock_offset_ms" doc:"How far its clock is ahead of the server's; null when that is not known."`
	ClockErrorMs  *float64          `json:"clock_error_ms" doc:"How far the offset may be wrong, either way; null when that is not known."`
	Resources     *engine.Resources `json:"resources" doc:"CPU and memory of its process and its machine; null before its first status."`
	LastContact   engine.Time       `json:"last_contact" doc:"When it last answered; null when it never has."`
	Workers       []NodeRunWorker   `json:"run_workers" nullable:"false"`
	// TakenOut: an operator has taken its address out, and no other leads to it.
	TakenOut bool `json:"-"`
}

// NodeRunWorker is a run worker on a node.
type NodeRunWorker struct {
	RunID       string `json:"run_id"`
	RunName     string `json:"run_name"`
	WorkerID    string `json:"worker_id"`
	Connections int    `json:"connections"`
}

// How long a node is healthy without contact, and from when it counts as dead.
const (
	staleAfter = 30 * time.Second
	deadAfter  = 60 * time.Second
)

// NodeHealth judges a node by the age of its last contact.
func NodeHealth(age time.Duration) engine.Health {
	switch {
	case age > deadAfter:
		return engine.HealthDead
	case age >= staleAfter:
		return engine.HealthStale
	}
	return engine.HealthHealthy
}

// DesiredState is what an operator wants of a node.
type DesiredState string

// What an operator can ask for.
const (
	DesiredNone   DesiredState = ""
	DesiredDrain  DesiredState = "DRAIN"
	DesiredRemove DesiredState = "REMOVE"
)

// NodeEventKind says what an event of a node is.
type NodeEventKind string

// The kinds of events.
const (
	// NodeChangedState: a server sees it in another state.
	NodeChangedState NodeEventKind = "STATE"
	// NodeRequested: an operator has asked for something.
	NodeRequested NodeEventKind = "OPERATOR"
	// NodeRefused: somebody with its name was sent away.
	NodeRefused NodeEventKind = "REFUSED"
)

// NodeEvent is a line of the nodes' history.
type NodeEvent struct {
	Seq    int64         `json:"seq"`
	At     engine.Time   `json:"at"`
	NodeID string        `json:"node_id"`
	Server string        `json:"server" doc:"Which server saw it: several may, each over its own stream."`
	Kind   NodeEventKind `json:"kind"`
	// From and To are states of kind STATE; From is empty for a node that is seen for the first time.
	From   NodeState `json:"from,omitempty"`
	To     NodeState `json:"to,omitempty"`
	Reason string    `json:"reason"`
	By     string    `json:"by" doc:"The user who asked; empty without one."`
}
