package protocol

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"
)

// ErrTooLarge says that a message is over MaxMessage and was not sent; the stream goes on.
var ErrTooLarge = errors.New("control message too large")

// ErrUnsendable says that a message cannot be written as it is, and was not sent; the stream goes on.
var ErrUnsendable = errors.New("control message cannot be sent")

// ErrSameNode says that this server has a stream to the node already, by another address.
var ErrSameNode = errors.New("the node is there by another address")

// ErrOtherStore says that the node works for the servers of another control store.
var ErrOtherStore = errors.New("the node works for servers of another control store")

// MaxMessage bounds a message, in bytes.
const MaxMessage = 32 << 20

// Dialer opens streams to one node. A stream ends the one before it: what that has
// not delivered is dropped.
type Dialer interface {
	// Dial opens a stream; ctx bounds the opening only.
	Dial(ctx context.Context) (ServerEnd, error)
}

// Addressed is a Dialer that says where it leads to.
type Addressed interface {
	Dialer
	// Address is the node's host:port.
	Address() string
}

// Refuser is a ServerEnd that can say to its node why it is sent away.
type Refuser interface {
	Refuse(ctx context.Context, reason string) error
}

// Listener takes the streams that servers open: each server has one at a time.
type Listener interface {
	// Serve says where the node's parts are, before the first Accept.
	Serve(parts Parts)
	// Accept waits for the next stream, until ctx ends or the listener closes (ErrClosed).
	Accept(ctx context.Context) (NodeEnd, error)
}

// StoreListener is a Listener whose node works for the servers of one control store at a time. It asks
// held whether the node still holds something of them that those of another store would end or
// take away; Ask comes before the first Accept.
type StoreListener interface {
	Listener
	SetHeld(held func() bool)
}

// TimedStream is a ServerEnd that knows how long its opening was on its way there and back.
type TimedStream interface{ RoundTrip() time.Duration }

// PluginReceiver is a ServerEnd whose node is another process: plugins travel beside the
// stream, by calls that the server makes.
type PluginReceiver interface {
	ServerEnd
	// PutPlugin gives the node a module that it wanted.
	PutPlugin(ctx context.Context, sha256 string, wasm []byte) error
}

// Parts opens a part that a node holds, by its work id, for who fetches it. What the
// node does not hold is os.ErrNotExist. A nil Parts holds none.
type Parts func(workID string) (*os.File, error)

// Open is the call, of a nil Parts too.
func (p Parts) Open(workID string) (*os.File, error) {
	if p == nil {
		return nil, os.ErrNotExist
	}
	return p(workID)
}

// Peer is a NodeEnd that knows which server's process it leads to. Without it all
// streams of a listener are taken to be the same server's.
type Peer interface{ Server() string }

// Memory connects a server and a node in one process. It is both the Dialer and
// the Listener.
type Memory struct {
	accept chan NodeEnd

	mu    sync.Mutex
	last  ServerEnd
	parts Parts
}

// NewMemory returns a connection without streams.
func NewMemory() *Memory { return &Memory{accept: make(chan NodeEnd)} }

// Serve implements Listener.
func (m *Memory) Serve(parts Parts) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.parts = parts
}

// open opens a part of the node.
func (m *Memory) open(workID string) (*os.File, error) {
	m.mu.Lock()
	parts := m.parts
	m.mu.Unlock()
	return parts.Open(workID)
}

// Dial waits until the node accepts.
func (m *Memory) Dial(ctx context.Context) (ServerEnd, error) {
	server, node := Pipe(m.open)
	m.mu.Lock()
	if m.last != nil {
		_ = m.last.Close()
	}
	m.last = server
	m.mu.Unlock()
	select {
	case m.accept <- node:
		return server, nil
	case <-ctx.Done():
		_ = server.Close()
		return nil, ctx.Err()
	}
}

// Accept waits for Dial.
func (m *Memory) Accept(ctx context.Context) (NodeEnd, error) {
	select {
	case node := <-m.accept:
		return node, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// bulk is how large a message is, as far as that is not bounded by its kind: in
// memory a message is passed on as it is, and its size is found out without writing it.
func bulk(m any) int {
	switch m := m.(type) {
	case AssignRun:
		size := len(m.DSN.Reveal()) + len(m.Workload.Params)
		if m.Workload.Feed != nil {
			size += len(m.Workload.Feed.CSV)
		}
		return size
	case Log:
		return len(m.Message) + len(m.Details)
	}
	return 0
}
