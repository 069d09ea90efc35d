// Package fleet is the nodes as the server sees them: which there are, what room they
// have, and the way to each.
//
// It speaks to them through control.ServerEnd, the server's end of a stream, and knows
// no transport. Who decides about runs sees two things of it: a Node, to which messages
// are sent, and a Place for one more run worker. Contact is the fleet's own matter: it
// pings each node every second, and a node that hears nothing for a minute stops its load.
package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine/control"
)

// helloLimit is how long Open waits for the nodes to introduce themselves.
const helloLimit = 3 * time.Second

// Node is one of the nodes, for who sends it messages.
type Node interface {
	// ID is the node's own name, empty before it has introduced itself.
	ID() string
	// Send puts a message into the node's mailbox and does not wait. What becomes of it while
	// the node is slow says control.PolicyToNode; the error is that the stream is over.
	Send(m control.ToNode) error
}

// Part is a finished part of a record, with the node that keeps it until it is acknowledged.
type Part struct {
	control.WorkReady
	Node Node
}

// Acknowledge tells the node that the part is safe, and that it may delete its own. One that
// has gone announces the part again when it is back.
func (p Part) Acknowledge() {
	a := p.Artifact
	_ = p.Node.Send(control.ArtifactAck{RunID: a.RunID, WorkerID: a.WorkerID, Name: a.Name, SHA256: a.SHA256})
}

// Listener takes what the nodes say. Its methods are called in the order of each node,
// and for several nodes at a time.
type Listener interface {
	// Hear takes what a node says about a run.
	Hear(runID string, from Node, m control.FromNode)
	// Aside takes a part that a node keeps and cannot open.
	Aside(p control.AsidePart)
}

// Fleet holds the streams to the nodes. Its methods are safe for concurrent use.
type Fleet struct {
	log   zerolog.Logger
	nodes []*node
}

// New makes a fleet of the server's ends of streams; Close closes them.
func New(log zerolog.Logger, links ...control.ServerEnd) *Fleet {
	f := &Fleet{log: log}
	for _, link := range links {
		f.nodes = append(f.nodes, newNode(link))
	}
	return f
}

// Open begins to speak with the nodes, in goroutines started by run that end with
// lifetime. It returns when all nodes have introduced themselves, or have had the time for it.
func (f *Fleet) Open(ctx, lifetime context.Context, run func(func()), l Listener) error {
	for _, n := range f.nodes {
		run(func() { n.write(lifetime) })
		run(func() { n.ping(lifetime) })
		run(func() { f.listen(lifetime, n, l) })
	}
	limit := time.NewTimer(helloLimit)
	defer limit.Stop()
	for _, n := range f.nodes {
		select {
		case <-n.ready:
		case <-limit.C:
			f.log.Warn().Msg("a node has not introduced itself yet")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Close ends the streams.
func (f *Fleet) Close() error {
	var errs []error
	for _, n := range f.nodes {
		errs = append(errs, n.link.Close())
	}
	return errors.Join(errs...)
}

// listen takes what a node says until its stream ends.
func (f *Fleet) listen(ctx context.Context, n *node, l Listener) {
	for {
		m, err := n.link.Receive(ctx)
		if err != nil {
			n.lost()
			if ctx.Err() == nil {
				f.log.Warn().Err(err).Str("node_id", n.ID()).Msg("the stream to a node has ended")
			}
			return
		}
		switch m := m.(type) {
		case control.Hello:
			n.greet(m)
			for _, p := range m.Aside {
				l.Aside(p)
			}
			for _, p := range m.Parts {
				l.Hear(p.Artifact.RunID, n, p)
			}
			n.introduced()
		case control.Status:
			n.heard(m)
		case control.WorkerState:
			l.Hear(m.RunID, n, m)
		case control.Snapshot:
			l.Hear(m.RunID, n, m)
		case control.Log:
			l.Hear(m.RunID, n, m)
		case control.WorkReady:
			l.Hear(m.Artifact.RunID, n, m)
		case control.RunRejected:
			l.Hear(m.RunID, n, m)
		}
	}
}

// Place is the node for the run worker of that number; nil when no node takes new ones.
func (f *Fleet) Place(number int) Node {
	var open []*node
	for _, n := range f.nodes {
		if _, ok := n.available(); ok {
			open = append(open, n)
		}
	}
	if len(open) == 0 {
		return nil
	}
	return open[number%len(open)]
}

// Capacity is how many connections the nodes hold together.
type Capacity struct {
	// None: no node takes new run workers.
	None bool
	// Unlimited: one of the nodes takes any number of connections.
	Unlimited   bool
	Connections int
}

// Capacity adds up what the nodes that take new run workers hold.
func (f *Fleet) Capacity() Capacity {
	c := Capacity{None: true}
	for _, n := range f.nodes {
		if connections, ok := n.available(); ok {
			c.None = false
			c.Connections += connections
			c.Unlimited = c.Unlimited || connections == 0
		}
	}
	return c
}
