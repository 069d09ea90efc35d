package wiring

import (
	"bytes"
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
	"github.com/loadstone-db/loadstone/engine/stream/exec/memory"
	"github.com/loadstone-db/loadstone/engine/stream/fragment"
	"github.com/loadstone-db/loadstone/engine/stream/system"
)

// StreamNodeOptions are what the streams of a node are made of.
type StreamNodeOptions struct {
	// ID is the node's name.
	ID      string
	DataDir string
	Egress  *egress.Policy
	// Memory is what fragments may hold.
	Memory memory.Limits
	// Out takes what is printed there.
	Out io.Writer
	Log zerolog.Logger
}

// StreamNode runs fragments of continuous queries on a node.
type StreamNode struct {
	Host *fragment.Host
	// Executions are told what run workers of the node record.
	Executions executions.Observers
	hub        *system.Hub
	recorded   *executions.Fanout
	folder     *connector.Folder
	out        *sharedOutput
	once       sync.Once
	o          StreamNodeOptions

	mu sync.Mutex
	// runs are those of which rules read, by id.
	runs map[string]*runSource
}

// OpenStreamNode waits for fragments. Their files lie in the folder streams of the data directory.
func OpenStreamNode(o StreamNodeOptions) (*StreamNode, error) {
	folder, err := openFolder(o.DataDir)
	if err != nil {
		return nil, err
	}
	n := &StreamNode{hub: &system.Hub{Node: o.ID}, recorded: &executions.Fanout{}, folder: folder, o: o,
		runs: map[string]*runSource{}}
	n.recorded.Listen("", n.hub.Observers()) // for as long as the process lives
	n.Executions = n.recorded
	n.out = &sharedOutput{to: o.Out, turn: make(chan struct{}, 1)}
	n.Host = fragment.NewHost(n, o.Memory, o.Log)
	return n, nil
}

// Source implements fragment.Connectors.
func (n *StreamNode) Source(
	ctx context.Context,
	s catalog.PhysicalSource,
	columns []column.Column,
) (connector.Source, error) {
	if run := s.Config.String("SOURCE.RUN_ID"); run != "" {
		return n.openRunSource(ctx, run, s, columns)
	}
	return (&Connectors{Folder: n.folder, Hub: n.hub, Egress: n.o.Egress}).Source(ctx, s, columns)
}

// Sink implements fragment.Connectors: files and what is printed. The others are a server's.
func (n *StreamNode) Sink(
	ctx context.Context,
	_ catalog.Query,
	s catalog.Sink,
	columns []column.Column,
) (connector.Sink, error) {
	if s.Type != connector.File && s.Type != connector.Print {
		return nil, fmt.Errorf("%w: a node has no sinks of the type %s", fragment.ErrUnusable, s.Type)
	}
	sink, err := connector.OpenSink(s.Type, s.Config, columns, n.folder, outputUntil{ctx, n.out})
	return sink, unusable(err)
}

// Close ends all fragments; why is what who gives one is told. Repeating it is harmless.
func (n *StreamNode) Close(why string) {
	n.Host.Close(why)
	n.once.Do(func() { _ = n.folder.Close() })
}

// sharedOutput is where several queries print, one write after the other.
type sharedOutput struct {
	turn chan struct{}
	to   io.Writer
}

// outputUntil writes until ctx ends. The reader of the node's output may have stopped reading, and the query has to end
// all the same.
type outputUntil struct {
	ctx context.Context
	*sharedOutput
}

// Write implements io.Writer.
func (o outputUntil) Write(text []byte) (int, error) {
	select {
	case o.turn <- struct{}{}:
	case <-o.ctx.Done():
		return 0, o.ctx.Err()
	}
	written := make(chan error, 1)
	kept := bytes.Clone(text) // the caller's again when this has returned
	go func() {
		_, err := o.to.Write(kept)
		<-o.turn
		written <- err // room: the channel holds this one answer, also after the caller gave up
	}()
	select {
	case err := <-written:
		return len(text), err
	case <-o.ctx.Done():
		return 0, o.ctx.Err()
	}
}
