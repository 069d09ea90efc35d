package wiring

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/results/executions"
	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/fragment"
	"github.com/loadstone-db/loadstone/engine/stream/system"
)

// NodeOptions are what the streams of a node are made of.
type NodeOptions struct {
	// ID is the node's name.
	ID      string
	DataDir string
	Reach   *egress.Policy
	// Out takes what is printed there.
	Out io.Writer
	Log zerolog.Logger
}

// Node runs fragments of continuous queries on a node.
type Node struct {
	Host *fragment.Host
	// Executions are told what run workers of the node record.
	Executions executions.Taps
	hub        *system.Hub
	recorded   *executions.Exchange
	folder     *connector.Folder
	once       sync.Once
	o          NodeOptions

	mu sync.Mutex
	// runs are those of which rules read, by id.
	runs map[string]*ofRun
}

// OpenNode waits for fragments. Their files lie in the folder streams of the data directory.
func OpenNode(o NodeOptions) (*Node, error) {
	folder, err := openFolder(o.DataDir)
	if err != nil {
		return nil, err
	}
	n := &Node{hub: &system.Hub{Node: o.ID}, recorded: &executions.Exchange{}, folder: folder, o: o,
		runs: map[string]*ofRun{}}
	n.recorded.Listen("", n.hub.Taps()) // for as long as the process lives
	n.Executions = n.recorded
	n.o.Out = &lines{to: o.Out}
	n.Host = fragment.NewHost(n, o.Log)
	return n, nil
}

// Source implements fragment.Feeds.
func (n *Node) Source(ctx context.Context, s catalog.PhysicalSource, columns []column.Column) (connector.Source, error) {
	if run := s.Config.Text("SOURCE.RUN_ID"); run != "" {
		return n.sourceOf(ctx, run, s, columns)
	}
	return (&Feeds{Folder: n.folder, Hub: n.hub, Reach: n.o.Reach}).Source(ctx, s, columns)
}

// Sink implements fragment.Feeds: files and what is printed. The others are a server's.
func (n *Node) Sink(_ context.Context, _ catalog.Query, s catalog.Sink, columns []column.Column) (connector.Sink, error) {
	if s.Type != connector.File && s.Type != connector.Print {
		return nil, fmt.Errorf("%w: a node has no sinks of the type %s", fragment.ErrUnusable, s.Type)
	}
	sink, err := connector.OpenSink(s.Type, s.Config, columns, n.folder, n.o.Out)
	return sink, unusable(err)
}

// Close ends all fragments; why is what who gives one is told. Repeating it is harmless.
func (n *Node) Close(why string) {
	n.Host.Close(why)
	n.once.Do(func() { _ = n.folder.Close() })
}

// lines writes what several queries print, one write after the other.
type lines struct {
	mu sync.Mutex
	to io.Writer
}

func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(text)
}
