package fragment

import (
	"context"
	"sync"
)

type pipe struct {
	once     sync.Once
	closed   chan struct{}
	down, up chan Message
}

type pipeEnd struct {
	*pipe
	out, in chan Message
}

// Send implements Link.
func (e *pipeEnd) Send(ctx context.Context, w Message) error {
	select {
	case <-e.closed:
		return ErrLost
	default:
	}
	select {
	case e.out <- w:
		return nil
	case <-e.closed:
		return ErrLost
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Receive implements Link.
func (e *pipeEnd) Receive(ctx context.Context) (Message, error) {
	select {
	case w := <-e.in:
		return w, nil
	case <-e.closed:
		return Message{}, ErrLost
	case <-ctx.Done():
		return Message{}, ctx.Err()
	}
}

// Close implements Link.
func (e *pipeEnd) Close() error {
	e.once.Do(func() { close(e.closed) })
	return nil
}
