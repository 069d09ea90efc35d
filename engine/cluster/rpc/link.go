// This part is how the fragments of continuous queries are spoken with over gRPC: a call for each, whose
// words go both ways, and calls that end and list them. Who may call, and over which connection, controlrpc says.

package rpc

import (
	"context"
	"fmt"
	"sync"

	"google.golang.org/grpc/status"

	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/rpc/pb"
)

// link is either end of a call by which a fragment runs. It implements protocol.FragmentLink.
type link struct {
	in   chan protocol.FragmentMessage
	out  chan outgoing
	over chan struct{} // nothing more comes
	done chan struct{} // closed by Close
	once sync.Once
	cut  func()
}

// outgoing is a word with what became of it.
type outgoing struct {
	word *pb.FragmentWord
	sent chan error
}

// newLink begins to read and to write, with what the call receives and sends; cut ends it.
func newLink(receive func() (*pb.FragmentWord, error), send func(*pb.FragmentWord) error, cut func()) *link {
	l := &link{in: make(chan protocol.FragmentMessage), out: make(chan outgoing), over: make(chan struct{}),
		done: make(chan struct{}), cut: cut}
	go func() {
		defer close(l.over)
		for {
			w, err := receive()
			if err != nil {
				return
			}
			select {
			case l.in <- protocol.FragmentMessage{Kind: w.GetKind(), Body: w.GetBody()}:
			case <-l.done:
				return
			}
		}
	}()
	go func() {
		for {
			select {
			case s := <-l.out:
				s.sent <- send(s.word) // room: for the one answer
			case <-l.done:
				return
			case <-l.over:
				return
			}
		}
	}()
	return l
}

// Send implements protocol.FragmentLink.
func (l *link) Send(ctx context.Context, w protocol.FragmentMessage) error {
	sent := make(chan error, 1)
	s := outgoing{&pb.FragmentWord{Kind: w.Kind, Body: w.Body}, sent}
	select {
	case l.out <- s:
	case <-l.done:
		return protocol.ErrFragmentLost
	case <-l.over:
		return protocol.ErrFragmentLost
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-sent:
		if err != nil {
			return fmt.Errorf("%w: %s", protocol.ErrFragmentLost, status.Convert(err).Message())
		}
		return nil
	case <-l.done:
		return protocol.ErrFragmentLost
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Receive implements protocol.FragmentLink.
func (l *link) Receive(ctx context.Context) (protocol.FragmentMessage, error) {
	select {
	case w := <-l.in:
		return w, nil
	case <-l.over:
		return protocol.FragmentMessage{}, protocol.ErrFragmentLost
	case <-l.done:
		return protocol.FragmentMessage{}, protocol.ErrFragmentLost
	case <-ctx.Done():
		return protocol.FragmentMessage{}, ctx.Err()
	}
}

// Close implements protocol.FragmentLink.
func (l *link) Close() error {
	l.once.Do(func() { close(l.done); l.cut() })
	return nil
}
