package assignment

import "time"

// Happening is what happens to nodes and work; the set is closed.
type Happening interface{ happening() }

// What nodes say, and what becomes of their streams. Session names one stream:
// each has another, also of the same process.
type (
	// Greeted says that a node has introduced itself on a new stream.
	Greeted struct {
		Node, Session string
		// Link is where the stream leads to: two links with one node are two processes
		// with one identity, of which the second is refused.
		Link string
		// Process changes when the node has restarted and holds nothing of what it had.
		Process string
		// Capacity bounds the weight of its work; 0 means no bound.
		Capacity            int
		Accepting, Draining bool
		// Answers: it takes the work of queries.
		Answers bool
		Held    []Key
		// Unfit says why the node cannot be used although it is there, "" when it can.
		Unfit string
		// RTT is a round trip that was measured before; 0 where none was. Without it the first answers of a
		// node behind a long way would all be late.
		RTT time.Duration
	}
	// Reported is a node's status.
	Reported struct {
		Node, Session       string
		Accepting, Draining bool
	}
	// Answered is the answer to the Ping of that number.
	Answered struct {
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
	Adopted struct{ Works []Held }
	// CancelAsked ends a work, or everything of its Query when Leaf and Work are empty.
	CancelAsked struct{ Key Key }
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
	// Late says that its owner will not wait any longer for the node that has a work: another one is to do it, too,
	// where there is one, and the first that completes it wins.
	Late struct{ Key Key }
	// Forgotten says that nobody will ask about a query any more; Elsewhere, that nobody here will, and
	// that another server has its work: that is left as it is.
	Forgotten struct {
		Query     string
		Elsewhere bool
	}
)

// Held is a work that a node, which need not be there now, is said to hold.
type Held struct {
	Node string
	Work Work
}

// What operators say, and the clock.
type (
	// DrainAsked takes a node out of rotation, also one that has not been heard of yet; it
	// ends what it has.
	DrainAsked struct{ Node string }
	// ResumeAsked undoes DrainAsked.
	ResumeAsked struct{ Node string }
	// Removed takes a node out for good; Added lets it come back.
	Removed struct{ Node string }
	// Added undoes Removed.
	Added struct{ Node string }
	// Undialled says that no way leads to a node any more; what comes from it later is as of
	// one that has not been heard of. One that carries work, or that an operator wants
	// something of, is kept.
	Undialled struct{ Node string }
	// Ticked says that time has passed.
	Ticked struct{}
)

func (Greeted) happening()     {}
func (Reported) happening()    {}
func (Answered) happening()    {}
func (StreamLost) happening()  {}
func (Accepted) happening()    {}
func (Rejected) happening()    {}
func (Ready) happening()       {}
func (Failed) happening()      {}
func (Ended) happening()       {}
func (Submitted) happening()   {}
func (Adopted) happening()     {}
func (CancelAsked) happening() {}
func (Fetched) happening()     {}
func (FetchFailed) happening() {}
func (Late) happening()        {}
func (Forgotten) happening()   {}
func (DrainAsked) happening()  {}
func (ResumeAsked) happening() {}
func (Removed) happening()     {}
func (Added) happening()       {}
func (Undialled) happening()   {}
func (Ticked) happening()      {}
