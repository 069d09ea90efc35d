package assignment

// Action is what is to be done; the set is closed.
type Action interface{ action() }

// What nodes are told. An action for a session that is over by the time it is
// carried out is left out.
type (
	// Ping asks for PongReceived with the same Seq.
	Ping struct {
		Node, Session string
		Seq           int64
	}
	// Probe asks for a sign of life of an unreachable node: a ping where its stream still
	// stands, a new stream otherwise.
	Probe struct{ Node string }
	// Assign gives a work to a node; Accepted or Rejected answers. Attempt counts from 1.
	Assign struct {
		Node, Session string
		Work          Work
		Attempt       int
		// Preferred: of all nodes that take work, this is the one that the affinity names.
		Preferred bool
	}
	// Cancel ends a work on a node, which may not hold it any more.
	Cancel struct {
		Node, Session string
		Key           Key
	}
	// AckArtifact says that the node may delete an artifact.
	AckArtifact struct {
		Node, Session string
		Key           Key
		Checksum      string
	}
	// Drain tells a node to take no more work.
	Drain struct{ Node, Session string }
	// Resume tells a node to take work again.
	Resume struct{ Node, Session string }
	// RejectNode ends a stream whose node is not wanted.
	RejectNode struct{ Node, Session, Link, Reason string }
)

// What the owners of work are told.
type (
	// Fetch asks for an artifact from the node; Fetched or FetchFailed answers.
	Fetch struct {
		Node     string
		Key      Key
		Checksum string
	}
	// Done says that a work is over and well; Checksum is empty without an artifact.
	Done struct {
		Node     string
		Key      Key
		Checksum string
	}
	// Lost says that a work stayed with a node that is gone.
	Lost struct {
		Node   string
		Key    Key
		Reason string
	}
	// Unknown says that a node holds a work that nobody here has given it.
	Unknown struct {
		Node, Session string
		Key           Key
	}
	// Abandoned says that a work has failed for good.
	Abandoned struct {
		Key    Key
		Reason string
	}
	// NoCapacity answers Submitted together, when there is no room; nothing has changed.
	NoCapacity struct {
		Keys   []Key
		Reason string
	}
)

// NodeChanged tells everybody of a node's new state.
type NodeChanged struct {
	Node     string
	From, To NodeState
	Why      string
}

func (Ping) action()        {}
func (Probe) action()       {}
func (Assign) action()      {}
func (Cancel) action()      {}
func (AckArtifact) action() {}
func (Drain) action()       {}
func (Resume) action()      {}
func (RejectNode) action()  {}
func (Fetch) action()       {}
func (Done) action()        {}
func (Lost) action()        {}
func (Unknown) action()     {}
func (Abandoned) action()   {}
func (NoCapacity) action()  {}
func (NodeChanged) action() {}
