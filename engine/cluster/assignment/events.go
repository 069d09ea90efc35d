package assignment

import "time"

// Event is what happens to nodes and work; the set is closed.
type Event interface{ event() }

// What nodes say, and what becomes of their streams. Session names one stream:
// each has another, also of the same process.
type (
	// HelloReceived says that a node has introduced itself on a new stream.
	HelloReceived struct {
		Node, Session string
		// Link is where the stream leads to: two links with one node are two processes
		// with one identity, of which the second is refused.
		Link string
		// Process changes when the node has restarted and holds nothing of what it had.
		Process string
		// Capacity bounds the weight of its work; 0 means no bound.
		Capacity            int
		Accepting, Draining bool
		// AcceptsQueries: it takes the work of queries.
		AcceptsQueries bool
		Works          []Key
		// Unfit says why the node cannot be used although it is there, "" when it can.
		Unfit string
		// RTT is a round trip that was measured before; 0 where none was. Without it the first answers of a
		// node behind a long way would all be late.
		RTT time.Duration
	}
	// StatusReceived is a node's status.
	StatusReceived struct {
		Node, Session       string
		Accepting, Draining bool
		// Refusal says why it does not accept work although it does not drain.
		Refusal string
	}
	// PongReceived is the answer to the Ping of that number.
	PongReceived struct {
		Node, Session string
		Seq           int64
	}
	// StreamLost says that a stream has broken.
	StreamLost struct{ Node, Session string }
	// Accepted says that the node has begun a work, or will.
	Accepted struct {
		Node, Session string
		Key           Key
	}
	// Rejected says that the node does not take it.
	Rejected struct {
		Node, Session string
		Key           Key
		Reason        string
	}
	// Ready says that a work is complete, and that its artifact lies on the node.
	Ready struct {
		Node, Session string
		Key           Key
		Checksum      string
	}
	// Failed says that a work failed on the node; Final: it would fail anywhere.
	Failed struct {
		Node, Session string
		Key           Key
		Reason        string
		Final         bool
	}
	// Ended says that a work without an artifact is over.
	Ended struct {
		Node, Session string
		Key           Key
	}
)

// What the owners of work say: runs, queries, refreshes.
type (
	// Submitted gives work. Together: all of it is assigned now, evenly over the nodes, or none of it.
	Submitted struct {
		Works    []Work
		Together bool
	}
	// Adopted gives works that nodes have been given by somebody else before.
	Adopted struct{ Works []HeldWork }
	// CancelRequested ends a work, or everything of its Query when Leaf and Work are empty.
	CancelRequested struct{ Key Key }
	// Fetched says that the artifact of a Fetch is stored for good.
	Fetched struct {
		Key      Key
		Checksum string
	}
	// FetchFailed says that it could not be fetched, or is not what was announced.
	// Gone: the node does not have it any more, or has something else, so that fetching it again is of no use.
	FetchFailed struct {
		Key      Key
		Checksum string
		Reason   string
		Gone     bool
	}
	// HedgeRequested says that its owner will not wait any longer for the node that has a work: another one is to do it,
	// too, where there is one, and the first that completes it wins.
	HedgeRequested struct{ Key Key }
	// Released says that nobody will ask about a query any more; Elsewhere, that nobody here will, and
	// that another server has its work: that is left as it is.
	Released struct {
		Query  string
		Remote bool
	}
)

// HeldWork is a work that a node, which need not be there now, is said to hold.
type HeldWork struct {
	Node string
	Work Work
}

// What operators say, and the clock.
type (
	// DrainRequested takes a node out of rotation, also one that has not been heard of yet; it
	// ends what it has.
	DrainRequested struct{ Node string }
	// ResumeRequested undoes DrainRequested.
	ResumeRequested struct{ Node string }
	// Removed takes a node out for good; Added lets it come back.
	Removed struct{ Node string }
	// Added undoes Removed.
	Added struct{ Node string }
	// DialStopped says that no way leads to a node any more; what comes from it later is as of
	// one that has not been heard of. One that carries work, or that an operator wants
	// something of, is kept.
	DialStopped struct{ Node string }
	// Tick says that time has passed.
	Tick struct{}
)

func (HelloReceived) event()   {}
func (StatusReceived) event()  {}
func (PongReceived) event()    {}
func (StreamLost) event()      {}
func (Accepted) event()        {}
func (Rejected) event()        {}
func (Ready) event()           {}
func (Failed) event()          {}
func (Ended) event()           {}
func (Submitted) event()       {}
func (Adopted) event()         {}
func (CancelRequested) event() {}
func (Fetched) event()         {}
func (FetchFailed) event()     {}
func (HedgeRequested) event()  {}
func (Released) event()        {}
func (DrainRequested) event()  {}
func (ResumeRequested) event() {}
func (Removed) event()         {}
func (Added) event()           {}
func (DialStopped) event()     {}
func (Tick) event()            {}
