package worker

import (
	"os"

	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/worker/diskbudget"
)

// Queries carries out the work of queries on a node.
type Queries interface {
	// Serve begins a session with a server. say gives it a message, and never waits.
	Serve(say func(protocol.FromNode)) QuerySession
	// Open opens what a work came to, by its work id; what is not there is os.ErrNotExist.
	Open(workID string) (*os.File, error)
	// Count is how many works are carried out, or wait until their server has what they came to.
	Count() int
	// FilesGone takes note of files that are not on the disk any more.
	FilesGone(keys []string)
}

// QuerySession is the work that one stream has given.
type QuerySession interface {
	// Receive takes what the server says, and reports whether it is about the work of queries.
	Receive(m protocol.ToNode) bool
	// Close ends all work of the session at once.
	Close()
}

// Disk is the folder of the spool for others than runs, within the same budget. A file's key is its name in the folder.
type Disk struct{ spool *spool }

// Dir is the folder.
func (d Disk) Dir() string { return d.spool.dir }

// Apply tells the budget what happens to a file, and reports whether a write was refused.
func (d Disk) Apply(h diskbudget.Event) (refused bool) { return d.spool.apply(h) }

// noQueries is a session of a node that takes no work of queries.
type noQueries struct{}

func (noQueries) Receive(protocol.ToNode) bool { return false }
func (noQueries) Close()                       {}

// serveQueries begins the work of queries of a session.
func (n *Node) serveQueries(s *session) QuerySession {
	if n.queries == nil {
		return noQueries{}
	}
	return n.queries.Serve(func(m protocol.FromNode) { s.out.Put(m) })
}

// assignWork passes work of a query on, unless the node takes none.
func (n *Node) assignWork(s *session, q QuerySession, m protocol.AssignWork) {
	if !n.Ready() {
		s.out.Put(protocol.WorkRejected{WorkKey: m.WorkKey, Reason: "the node is draining"})
		return
	}
	q.Receive(m)
}

// queryCount is how many works of queries the node has.
func (n *Node) queryCount() int {
	if n.queries == nil {
		return 0
	}
	return n.queries.Count()
}
