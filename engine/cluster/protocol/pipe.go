package protocol

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// The errors of a link.
var (
	// ErrClosed: one of the ends was closed; the session is over.
	ErrClosed = errors.New("control stream closed")
	// ErrStalled: the other end did not take a message within the deadline.
	ErrStalled = errors.New("control stream stalled: the other end does not read")
)

// ServerEnd is the server's end of the stream to one node. Send and Receive may
// be called at the same time; Receive by one goroutine.
type ServerEnd interface {
	// Send hands m over to the stream, which has no queue of its own: what waits, waits
	// in the sender's Mailbox. It returns ErrStalled when the other end has not taken
	// m before ctx ends, at most within SendTimeout. Success does not mean receipt.
	Send(ctx context.Context, m ToNode) error
	// Receive waits for the next message, until ctx ends or the stream closes (ErrClosed).
	Receive(ctx context.Context) (FromNode, error)
	// OpenPart begins to read a part that the node has announced, from the first byte.
	// Only the node that the stream leads to is asked, and only for what it holds: nothing
	// that it says names a file of this machine, or another host. Reading fails when ctx
	// ends or the node falls silent. What is read is for the caller to check.
	OpenPart(ctx context.Context, p WorkReady) (io.ReadCloser, error)
	// Close ends the session for both ends. Repeating it is harmless.
	Close() error
}

// NodeEnd is the node's end of the stream; the rules of ServerEnd hold.
type NodeEnd interface {
	Send(ctx context.Context, m FromNode) error
	Receive(ctx context.Context) (ToNode, error)
	Close() error
}

// SendTimeout bounds every send on the transport in memory.
const SendTimeout = 5 * time.Second

// isStalled tells a stream that may go on from one that is over.
func isStalled(err error) bool { return errors.Is(err, ErrStalled) }

// Pipe returns the two ends of a stream in memory, to a node that holds parts or, without
// any, announces none. Send returns when the other end has taken the message.
func Pipe(parts Parts) (ServerEnd, NodeEnd) {
	p := &pipe{closed: make(chan struct{}), down: make(chan ToNode), up: make(chan FromNode), parts: parts}
	return serverEnd{p}, nodeEnd{p}
}

type pipe struct {
	parts  Parts
	closed chan struct{}
	once   sync.Once
	down   chan ToNode
	up     chan FromNode
}

func (p *pipe) close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

type serverEnd struct{ p *pipe }

func (e serverEnd) Send(ctx context.Context, m ToNode) error { return send(ctx, e.p, e.p.down, m) }
func (e serverEnd) Receive(ctx context.Context) (FromNode, error) {
	return receive(ctx, e.p, e.p.up)
}
func (e serverEnd) Close() error { return e.p.close() }

// OpenPart implements ServerEnd: the node opens its file.
func (e serverEnd) OpenPart(ctx context.Context, p WorkReady) (io.ReadCloser, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case <-e.p.closed:
		return nil, ErrClosed
	default:
	}
	f, err := e.p.parts.Open(p.WorkID)
	if err != nil {
		return nil, fmt.Errorf("opening the part %s: %w", p.WorkID, err)
	}
	return f, nil
}

type nodeEnd struct{ p *pipe }

func (e nodeEnd) Send(ctx context.Context, m FromNode) error { return send(ctx, e.p, e.p.up, m) }
func (e nodeEnd) Receive(ctx context.Context) (ToNode, error) {
	return receive(ctx, e.p, e.p.down)
}
func (e nodeEnd) Close() error { return e.p.close() }

func send[M any](ctx context.Context, p *pipe, stream chan M, m M) error {
	if bulk(m) > MaxMessage {
		return ErrTooLarge
	}
	select {
	case <-p.closed:
		return ErrClosed
	default:
	}
	limit := time.NewTimer(SendTimeout)
	defer limit.Stop()
	select {
	case stream <- m:
		return nil
	case <-p.closed:
		return ErrClosed
	case <-ctx.Done():
		return errors.Join(ErrStalled, ctx.Err())
	case <-limit.C:
		return ErrStalled
	}
}

func receive[M any](ctx context.Context, p *pipe, stream chan M) (M, error) {
	var none M
	select {
	case m := <-stream:
		return m, nil
	case <-ctx.Done():
		return none, ctx.Err()
	case <-p.closed:
		return none, ErrClosed
	}
}
