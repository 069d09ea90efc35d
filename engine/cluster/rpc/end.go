package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// closeTimeout is how long Close waits until what was sent before has left, and the
// other end has closed too.
const closeTimeout = 2 * time.Second

// stream is either side of the gRPC stream: S is sent, R is received.
type stream[S, R any] interface {
	Send(S) error
	Recv() (R, error)
}

// end is one end of a stream: Out and In are the messages, S and R what travels.
type end[Out, In any, S, R proto.Message] struct {
	// write makes what travels of a message: in one piece, or in several.
	write func(Out) ([]S, error)
	// read is the message that is complete with what has come; errPart: there is more to come of it.
	read func(R) (In, error)
	// cut ends the stream at once; finish says that nothing more will be sent.
	cut    func()
	finish func()

	out     chan S
	in      chan In
	closing chan struct{} // no more is taken to be sent
	written chan struct{} // the writer has ended
	over    chan struct{} // the reader has ended: nothing more comes
	once    sync.Once
	cause   error // of over
	// abandoned: a later stream has taken its place, and what it received does not count.
	abandoned atomic.Bool
	gone      chan struct{} // closed when it is abandoned
}

func newEnd[Out, In any, S, R proto.Message](s stream[S, R], write func(Out) ([]S, error), read func(R) (In, error),
	cut, finish func()) *end[Out, In, S, R] {
	e := &end[Out, In, S, R]{write: write, read: read, cut: cut, finish: finish, out: make(chan S),
		in: make(chan In), closing: make(chan struct{}), written: make(chan struct{}), over: make(chan struct{}),
		gone: make(chan struct{})}
	go e.writing(s)
	go e.reading(s)
	return e
}

// writing sends what it is given until the end closes or the stream breaks. A peer that
// does not read holds it up, and so Send; what gRPC has taken is under way.
func (e *end[Out, In, S, R]) writing(s stream[S, R]) {
	defer close(e.written)
	for {
		var m S
		select {
		case m = <-e.out:
		case <-e.over:
			return
		case <-e.closing:
			e.finish()
			return
		}
		if s.Send(m) != nil {
			return // the reader says why
		}
	}
}

// reading takes what comes until the stream ends. It stops while nobody receives,
// and flow control stops the peer.
func (e *end[Out, In, S, R]) reading(s stream[S, R]) {
	defer close(e.over)
	for {
		w, err := s.Recv()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				e.cause = err
			}
			return
		}
		m, err := e.read(w)
		if errors.Is(err, errUnknown) || errors.Is(err, errPart) {
			continue // what is unknown is of a later version, which does without an answer of this one
		}
		if err != nil {
			e.cause = err
			e.cut()
			return
		}
		select {
		case e.in <- m:
		case <-e.closing: // whoever closed wants no more
		case <-e.gone:
		}
	}
}

// Send implements protocol.ServerEnd and protocol.NodeEnd.
func (e *end[Out, In, S, R]) Send(ctx context.Context, m Out) error {
	pieces, err := e.write(m)
	if err != nil {
		return fmt.Errorf("%w: %w", protocol.ErrUnsendable, err)
	}
	for _, w := range pieces {
		if size := proto.Size(w); size > protocol.MaxMessage {
			return fmt.Errorf("%w: %d bytes", protocol.ErrTooLarge, size)
		}
	}
	for _, w := range pieces {
		if err := e.send(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

func (e *end[Out, In, S, R]) send(ctx context.Context, w S) error {
	select {
	case <-e.closing:
		return protocol.ErrClosed
	case <-e.over:
		return e.ended()
	default:
	}
	limit := time.NewTimer(protocol.SendTimeout)
	defer limit.Stop()
	select {
	case e.out <- w:
		return nil
	case <-e.closing:
		return protocol.ErrClosed
	case <-e.over:
		return e.ended()
	case <-ctx.Done():
		return errors.Join(protocol.ErrStalled, ctx.Err())
	case <-limit.C:
		return protocol.ErrStalled
	}
}

func (e *end[Out, In, S, R]) ended() error {
	if e.cause != nil {
		return fmt.Errorf("%w: %w", protocol.ErrClosed, e.cause)
	}
	return protocol.ErrClosed
}

// Receive implements protocol.ServerEnd and protocol.NodeEnd.
func (e *end[Out, In, S, R]) Receive(ctx context.Context) (In, error) {
	var none In
	select {
	case m := <-e.in:
		// What the reader had in its hand when a later stream took over is no message any more.
		if e.abandoned.Load() {
			return none, protocol.ErrClosed
		}
		return m, nil
	case <-ctx.Done():
		return none, ctx.Err()
	case <-e.over:
		return none, e.ended()
	}
}

// abandon ends the stream and drops what it has received.
func (e *end[Out, In, S, R]) abandon() {
	if e.abandoned.CompareAndSwap(false, true) {
		close(e.gone)
	}
	e.cut()
}

// Close implements protocol.ServerEnd and protocol.NodeEnd: what was sent before
// still goes out, for closeLimit at most; then the stream is cut.
func (e *end[Out, In, S, R]) Close() error {
	e.once.Do(func() { close(e.closing) })
	limit := time.NewTimer(closeTimeout)
	defer limit.Stop()
	select {
	case <-e.written:
		select {
		case <-e.over:
		case <-limit.C:
		}
	case <-limit.C:
	}
	e.cut()
	return nil
}
