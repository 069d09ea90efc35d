package fragment

import (
	"context"
	"sync"
)

type pipe struct {
	once     sync.Once
	closed   chan struct{}
	down, up chan Word
}

type pipeEnd struct {
	*pipe
	out, in chan Word
}

// Send implements Link.
func (e *pipeEnd) Send(ctx context.Context, w Word) error {
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
func (e *pipeEnd) Receive(ctx context.Context) (Word, error) {
	select {
	case w := <-e.in:
		return w, nil
	case <-e.closed:
		return Word{}, ErrLost
	case <-ctx.Done():
		return Word{}, ctx.Err()
	}
}

// Close implements Link.
func (e *pipeEnd) Close() error {
	e.once.Do(func() { close(e.closed) })
	return nil
}
