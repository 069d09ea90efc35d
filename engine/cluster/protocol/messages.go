package protocol

import (
	"math"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/clock"
	"github.com/loadstone-db/loadstone/engine/base/secret"
)

// FirstReportDelay is how long after its assignment a run worker reports first; it does so each second after that.
// Those of a run are assigned at once: they would all report in the same tenth of each second, and what the server has
// to do in it would wait for a thousand reports.
func FirstReportDelay(group int) time.Duration {
	const golden = 0.6180339887498949 // its multiples lie as far from each other as they can
	_, part := math.Modf(float64(group) * golden)
	return HeartbeatInterval - time.Duration(part*float64(HeartbeatInterval))
}

// The timings of the stream.
const (
	// HeartbeatInterval is the cadence of Status, Snapshot and Ping.
	HeartbeatInterval = time.Second
	// StateInterval is the cadence of RunState.
	StateInterval = 5 * time.Second
	// ContactTimeout is how long a run worker bears load without contact: since its node has
	// sent the last Status that the run's owner acknowledged.
	ContactTimeout = 60 * time.Second
	// ReassignAfter is how long after the last word of a run worker others may have its load: it has
	// stopped by itself by then. More than ContactTimeout by what a heartbeat on its way takes, what
	// is in flight at the deadline, and a margin.
	ReassignAfter = ContactTimeout + 10*time.Second
	// StartTimeout is how long a placed run worker may take until it is ready, and
	// how long a ready one waits for START.
	StartTimeout = 120 * time.Second
	// DrainTimeout is how long operations in flight may take to end after STOP.
	DrainTimeout = 120 * time.Second
	// CancelTimeout is the same when a user has stopped the run: nobody waits for the
	// figures of what is in flight, and somebody waits for the end.
	CancelTimeout = 5 * time.Second
)

// OwnNode is the name of the node in a server's own process, which ends with it.
const OwnNode = "local"

// DrainTimeoutFor returns how long operations in flight may take after a STOP for a
// reason, in a workload that does not say it.
func DrainTimeoutFor(reason engine.StopReason) time.Duration {
	if reason == engine.StopUserRequested {
		return CancelTimeout
	}
	return DrainTimeout
}

// DrainTimeoutOf returns the same for a workload, which may have a limit of its own. It
// is more than 0: 0 s cancel what is in flight at once.
func DrainTimeoutOf(w engine.Workload, reason engine.StopReason) time.Duration {
	if s := w.Stop; s != nil && s.DrainSeconds != nil {
		return max(time.Duration(*s.DrainSeconds*float64(time.Second)), time.Millisecond)
	}
	return DrainTimeoutFor(reason)
}

// ToNode is a message from the server to a node.
type ToNode interface{ toNode() }

// FromNode is a message from a node to the server.
type FromNode interface{ fromNode() }

// AssignRun places one run worker on the node. The node answers RunAccepted or
// RunRejected, then reports WorkerState as the worker connects.
type AssignRun struct {
	RunID string
	// ResultID names the run worker's row in test_results.
	ResultID      string
	WorkerID      string
	WorkerGroupID int
	// Epoch is the owner epoch of the run; a message with an older one is ignored.
	Epoch    int64
	RunName  string
	Plan     *engine.Plan
	Workload engine.Workload
	// DSN never leaves the node.
	DSN secret.Secret
	// KeySlot is unique among all run workers the run ever has, replacements included.
	KeySlot     int
	Connections int
	// Workers is how many run workers share the run's rate and stages; the share
	// of each follows from its WorkerGroupID. 0 means that it is alone.
	Workers int
	// Clock is the run's time line. It reaches a node in the server's process
	// only; nil means that the node begins one of its own.
	Clock *clock.Clock
	// ClockAhead is by how much that line is ahead of the clock that StatusAck tells.
	ClockAhead time.Duration
	// TraceParent is what the node's spans are part of, as trace.Tracer.Context says; empty where none are made.
	TraceParent string
	// Own are databases of the server's own, in which no connection may land.
	Own []engine.OwnDatabase
}

// RunEvent carries one persisted control event.
type RunEvent struct {
	Epoch int64
	Event engine.Event
	// AtMost: a run worker takes no more than it has, whatever the event says; see RunState.
	AtMost bool
}

// RunState is the absolute state of a run. A worker that finds itself behind
// follows it as if the missing events had arrived.
type RunState struct {
	RunID  string
	Epoch  int64
	Status engine.Status
	Phase  engine.Phase
	// Started is true once START has been decided.
	Started      bool
	LastSequence int64
	Targets      map[string]engine.WorkerTarget
	// Step is the step of a search that the run is in; the zero Step is none.
	Step         Step
	StopReason   engine.StopReason
	DrainTimeout time.Duration
	// StartAt is when the load begins, by the clock of who owns the run; the zero time is at once.
	StartAt time.Time
	// EndAt is when the load ends by plan, by the same clock; zero while that is not known. A run worker without contact
	// ends it by itself then, see EndOfLoad; in the warm-up the end may still move, and ends nothing.
	EndAt time.Time
	// AtMost: the targets are the most, and a run worker that has less keeps what it has. A server that has taken a run
	// over knows what is stored, and its predecessor may have told more: some to bear less, and others what these
	// left. Who went back to what is stored while another has not would make more of the whole. So nobody takes more
	// until all have answered the new owner: each bears no more then than is stored, and that is no more than the whole.
	AtMost bool
}

// EndOfLoad is until when a run worker may issue operations that had contact with the owner of its run last then: for
// limit, and beyond the planned end of the run only as long as it has contact, because the STOP is about to come.
func EndOfLoad(contact time.Time, limit time.Duration, planned time.Time) time.Time {
	until := contact.Add(limit)
	if planned.IsZero() {
		return until
	}
	for _, at := range []time.Time{planned.Add(endSlack), contact.Add(EndGrace + endSlack)} {
		planned = later(planned, at)
	}
	if until.Before(planned) {
		return until
	}
	return planned
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// EndGrace is for how long a run worker waits for the STOP after it had contact last; it is longer than the heartbeats
// of a node in contact are apart. endSlack is what ending the load in order takes at most.
const (
	EndGrace = 2 * time.Second
	endSlack = time.Second
)

// ForWorkers is the state for a node: with the targets of these run workers only, so that what all nodes
// are sent together grows with the run workers and not with their square.
func (s RunState) ForWorkers(workers ...[]string) RunState {
	all := s.Targets
	s.Targets = map[string]engine.WorkerTarget{}
	for _, ids := range workers {
		for _, id := range ids {
			if t, ok := all[id]; ok {
				s.Targets[id] = t
			}
		}
	}
	return s
}

// Step is one step of a search as a run worker sees it: Settle passes, then
// Length is measured, in ticks that lie within the step.
type Step struct {
	Number         int
	Settle, Length time.Duration
}

// ArtifactAck says that the server has stored a part; the node may delete its own copy.
type ArtifactAck struct {
	RunID    string
	WorkerID string
	Name     string
	SHA256   string
}

// WorkerAck says that the server has taken in the end of a run worker; until then the
// node reports it again in each Hello.
type WorkerAck struct {
	RunID    string
	WorkerID string
	ResultID string
}

// Drain tells the node to take no new work and to end what it has; Over, that it may take
// work again. A node whose process is ending takes none whatever it is told.
type Drain struct{ Over bool }

// StatusAck says that the server has taken in a Status. It is the contact of the run
// workers of the runs that it names, counted from when the node sent that Status; what
// else a node hears is none.
type StatusAck struct {
	Sequence int64
	// Runs are those that the server owns now, each in its epoch.
	Runs []OwnedRun
	// Received is when the Status came, Sent when this left, by the server's clock.
	Received, Sent time.Time
}

// OwnedRun is a run with the epoch in which somebody owns it.
type OwnedRun struct {
	RunID string
	Epoch int64
}

// Ping asks for a Pong with the same Seq.
type Ping struct {
	Seq  int64
	Sent time.Time
}

// Hello introduces a node at the start of every session, with what it still holds.
type Hello struct {
	NodeID  string
	Version string
	// Protocol is the number of the messages that the node speaks; see engine/cluster/version.
	Protocol int
	// Session identifies the node's process; it changes when the node restarts.
	Session string
	// Capacity is the most connections the node takes; 0 means no limit of its own.
	Capacity int
	// Workers are the run workers that are alive on the node.
	Workers []WorkerState
	// Parts are finished parts that no server has acknowledged, also those of a
	// process that was killed.
	Parts []WorkReady
	// Quarantined are parts of an earlier process that cannot be opened now, and are kept.
	Quarantined []QuarantinedPart
	// Queries: the node takes the work of queries.
	Queries bool
}

// QuarantinedPart is a part that cannot be opened now.
type QuarantinedPart struct{ RunID, WorkerID, Name, Reason string }

// Status is the node's heartbeat; StatusAck answers each.
type Status struct {
	// Sequence rises with each Status of the node's process, over all streams.
	Sequence      int64
	NodeID        string
	Alive         bool
	AcceptingWork bool
	Draining      bool
	// Refusal says why the node accepts no work although it does not drain, empty where it does.
	Refusal   string
	Resources engine.Resources
	At        time.Time
	// ClockOffset is what the node adds to its clock to have the server's, and ClockError how
	// wrong that may be; an error of 0 says that it was not measured yet.
	ClockOffset, ClockError time.Duration
}

// RunAccepted answers AssignRun.
type RunAccepted struct {
	RunID    string
	WorkerID string
	NodeID   string
}

// RunRejected answers AssignRun when the node will not take the worker.
type RunRejected struct {
	RunID    string
	WorkerID string
	NodeID   string
	Err      *engine.Error
}

// WorkerState reports a run worker's state: on each change, and each second as
// its heartbeat.
type WorkerState struct {
	RunID         string
	ResultID      string
	WorkerID      string
	WorkerGroupID int
	NodeID        string
	Status        engine.WorkerStatus
	Phase         engine.Phase
	// LastSequence is the last event that it has followed of the owner in Epoch, which is the last one whose RunState it
	// has followed. An Epoch of 0 is that of an older node, which does not say it.
	LastSequence, Epoch int64
	// OpenConnections counts up to WantConnections while the worker connects.
	OpenConnections int
	WantConnections int
	// Err is set when Status is FAILED.
	Err *engine.Error
	// Totals are final, and set only when the worker has ended and knows them.
	Totals *engine.Totals
	// Parts is the number of parts announced by WorkReady before this message.
	Parts int
	// RecordEnded: the record may not fit on the node. The load ends while there is room for what is in flight.
	RecordEnded bool
	// LogsDropped is how many lines of the run's log the node has dropped so far, of all its workers.
	LogsDropped int64
	// IOEngine names what drove the connections, IOReason says why it was that; set with Totals.
	IOEngine, IOReason string
	At                 time.Time
	// ClockError is how wrong the times of the worker's record may be, as times of the server;
	// 0 in the server's own process.
	ClockError time.Duration
	// BeganAt is when its load began, by the server's clock; zero before it has. BeganLate is by how
	// much that was after the instant that START named, or after the worker was ready; 0 where
	// START named none.
	BeganAt   time.Time
	BeganLate time.Duration
	// MeasuresSince is when its load entered the measurement, on the run's time line; zero before it has.
	MeasuresSince time.Time
	// LineAhead is by how much that line is ahead of the clock of the server that owns the run, LineError how
	// wrong that may be; 0 and 0 while the node has not compared the clocks.
	LineAhead, LineError time.Duration
}

// LoadStart is how its load began, nil before it has.
func (m WorkerState) LoadStart() *engine.LoadStart {
	if m.BeganAt.IsZero() {
		return nil
	}
	b := &engine.LoadStart{NodeID: m.NodeID, StartedAt: engine.At(m.BeganAt), LateMs: engine.Milliseconds(m.BeganLate)}
	if m.ClockError > 0 || m.NodeID == OwnNode {
		wrong := engine.Milliseconds(m.ClockError)
		b.ClockErrorMs = &wrong
	}
	return b
}

// Snapshot carries one second of a run worker. The receiver owns it.
type Snapshot struct{ engine.WorkerSnapshot }

// Log carries a line for the run's log; the server assigns its Seq.
type Log struct{ engine.LogEntry }

// WorkReady announces a finished part, or what a work of a query came to.
type WorkReady struct {
	// WorkID is unique for each part and stays the same when it is announced again: PartWorkID the artifact.
	WorkID   string
	NodeID   string
	Artifact engine.Artifact
	// ArtifactURL is the path under which the node gives the part, PartsPath and its work id,
	// and never an address: it is fetched from the node that the stream leads to.
	ArtifactURL string
	// Salvaged is true for a part that a killed process left behind.
	Salvaged bool
	// Pressing: the node needs its room, and the server is to fetch it at once, also beside load.
	Pressing bool
	// Totals are what the run worker of a salvaged part had counted; nil when it was killed before it had ended.
	Totals *engine.Totals
}

// PluginRequest asks for a plugin that a run worker needs and the node does not have.
// The server answers by a call beside the stream.
type PluginRequest struct{ SHA256 string }

// Pong answers Ping.
type Pong struct {
	Seq  int64
	Sent time.Time
}

func (AssignRun) toNode()   {}
func (RunEvent) toNode()    {}
func (RunState) toNode()    {}
func (ArtifactAck) toNode() {}
func (WorkerAck) toNode()   {}
func (Drain) toNode()       {}
func (Ping) toNode()        {}
func (StatusAck) toNode()   {}

func (Hello) fromNode()         {}
func (Status) fromNode()        {}
func (RunAccepted) fromNode()   {}
func (RunRejected) fromNode()   {}
func (WorkerState) fromNode()   {}
func (Snapshot) fromNode()      {}
func (Log) fromNode()           {}
func (WorkReady) fromNode()     {}
func (PluginRequest) fromNode() {}
func (Pong) fromNode()          {}

// RunIDOf is the run that a node's message is about; empty: it is about the node.
func RunIDOf(m FromNode) string {
	switch m := m.(type) {
	case RunAccepted:
		return m.RunID
	case RunRejected:
		return m.RunID
	case WorkerState:
		return m.RunID
	case Snapshot:
		return m.RunID
	case Log:
		return m.RunID
	case WorkReady:
		if m.Artifact.Kind != KindLeaf {
			return m.Artifact.RunID
		}
	}
	// Hello, Status, PluginRequest, Pong, and what is about queries
	return ""
}
