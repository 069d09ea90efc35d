package nodes

import (
	"errors"
	"io"
	"time"

	"github.com/loadstone-db/loadstone/engine/cluster/assignment"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// Meter takes measurements of what happens between the server and its nodes. Its methods
// return at once.
type Meter interface {
	// RoundTrip is how long a node took to answer a heartbeat.
	RoundTrip(took time.Duration)
	// Connected is a stream that was opened, anew after it had been broken for so long, or
	// for the first time (0).
	Connected(after time.Duration)
	// Disconnected is a stream that has broken.
	Disconnected()
	// Assigned is a work that was given to a node: to the one that its affinity prefers or
	// to another, and for the first time or again. It returns what the node's spans are part of, empty where
	// none are made.
	Assigned(w Work, preferred, again bool) (traceParent string)
	// Responded is a node's answer, so long after it was given a work.
	Responded(w Work, accepted bool, after time.Duration)
	// Cancelled is the end of a work on a node, so long after the node was told to end it.
	Cancelled(w Work, after time.Duration)
	// FetchStarted is the beginning of a fetch, so long after its artifact was announced.
	FetchStarted(w Work, after time.Duration)
	// Fetched is its end; mismatch: it is not what was announced.
	Fetched(w Work, bytes int64, took time.Duration, failed, mismatch bool)
}

// noop takes no measurement, and watches nothing.
type noop struct{}

func (noop) RoundTrip(time.Duration)             {}
func (noop) RecordEvent(NodeEvent)               {}
func (noop) Connected(time.Duration)             {}
func (noop) Disconnected()                       {}
func (noop) Assigned(Work, bool, bool) string    { return "" }
func (noop) Responded(Work, bool, time.Duration) {}
func (noop) Cancelled(Work, time.Duration)       {}
func (noop) FetchStarted(Work, time.Duration)    {}

func (noop) Fetched(Work, int64, time.Duration, bool, bool) {}

// measure takes what an event says of time. It needs mu.
func (f *Fleet) measure(h assignment.Event) {
	switch h := h.(type) {
	case assignment.PongReceived:
		if n, ok := f.coord.Node(h.Node); ok {
			f.opts.Meter.RoundTrip(n.RTT)
		}
	case assignment.StatusReceived:
		f.notify(h.Node)
	case assignment.StreamLost:
		f.notify(h.Node)
	case assignment.Accepted:
		f.answered(h.Node, h.Key, true)
	case assignment.Rejected:
		f.answered(h.Node, h.Key, false)
	}
}

func (f *Fleet) answered(node string, key assignment.Key, accepted bool) {
	if at, ok := f.activeQueries[key]; ok {
		delete(f.activeQueries, key)
		f.opts.Meter.Responded(workOn(node, key), accepted, time.Since(at))
	}
}

func workOn(node string, key assignment.Key) Work {
	if isQueryWork(key) {
		return Work{QueryID: key.Query, LeafID: key.Leaf, WorkID: key.Work, NodeID: node}
	}
	return Work{RunID: key.Query, WorkerID: key.Work, NodeID: node}
}

// meteredPart is a part that is being read, measured from its opening to its closing.
type meteredPart struct {
	io.ReadCloser
	meter Meter
	about Work
	begin time.Time
	bytes int64
	err   error
}

// Read implements io.Reader.
func (m *meteredPart) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	m.bytes += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		m.err = err
	}
	return n, err
}

// Close implements io.Closer.
func (m *meteredPart) Close() error {
	m.meter.Fetched(m.about, m.bytes, time.Since(m.begin), m.err != nil, errors.Is(m.err, protocol.ErrAnnounced))
	return m.ReadCloser.Close()
}
