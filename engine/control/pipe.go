package control

import (
	"context"
	"errors"
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
	// Send queues m. It waits for room until ctx ends, at most SendLimit, and
	// then returns ErrStalled. Success does not mean receipt.
	Send(ctx context.Context, m ToNode) error
	// Receive waits for the next message, until ctx ends or the stream closes (ErrClosed).
	Receive(ctx context.Context) (FromNode, error)
	// Close ends the session for both ends. Repeating it is harmless.
	Close() error
}

// NodeEnd is the node's end of the stream; the rules of ServerEnd hold.
type NodeEnd interface {
	Send(ctx context.Context, m FromNode) error
	Receive(ctx context.Context) (ToNode, error)
	Close() error
}

// SendLimit bounds every send on the transport in memory.
const SendLimit = 5 * time.Second

// The queue lengths of the transport in memory. A node with 1 000 run workers
// sends about 2 000 messages a second.
const (
	toNodeQueue   = 1024
	fromNodeQueue = 8192
)

// Pipe returns the two ends of a stream in memory. What was sent before Close
// can still be received by the other end.
func Pipe() (ServerEnd, NodeEnd) {
	p := &pipe{closed: make(chan struct{}), down: make(chan ToNode, toNodeQueue), up: make(chan FromNode, fromNodeQueue)}
	return serverEnd{p}, nodeEnd{p}
}

type pipe struct {
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

type nodeEnd struct{ p *pipe }

func (e nodeEnd) Send(ctx context.Context, m FromNode) error { return send(ctx, e.p, e.p.up, m) }
func (e nodeEnd) Receive(ctx context.Context) (ToNode, error) {
	return receive(ctx, e.p, e.p.down)
}
func (e nodeEnd) Close() error { return e.p.close() }

func send[M any](ctx context.Context, p *pipe, queue chan M, m M) error {
	select {
	case <-p.closed:
		return ErrClosed
	default:
	}
	select {
	case queue <- m:
		return nil
	default:
	}
	limit := time.NewTimer(SendLimit)
	defer limit.Stop()
	select {
	case queue <- m:
		return nil
	case <-p.closed:
		return ErrClosed
	case <-ctx.Done():
		return errors.Join(ErrStalled, ctx.Err())
	case <-limit.C:
		return ErrStalled
	}
}

func receive[M any](ctx context.Context, p *pipe, queue chan M) (M, error) {
	var none M
	select {
	case m := <-queue:
		return m, nil
	default:
	}
	select {
	case m := <-queue:
		return m, nil
	case <-ctx.Done():
		return none, ctx.Err()
	case <-p.closed:
		select {
		case m := <-queue:
			return m, nil
		default:
			return none, ErrClosed
		}
	}
}
