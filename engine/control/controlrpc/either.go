package controlrpc

import (
	"context"
	"errors"

	"github.com/loadstone-db/loadstone/engine/control"
)

// Either dials a node on this machine, which may have joined or may listen without TLS. It
// implements control.Dialer.
type Either struct{ trusted, plain *Dialer }

// NewEither prepares both ways; the address must be of this machine, unless Security allows more.
func NewEither(opts DialOptions) (*Either, error) {
	trusted, err := NewDialer(opts)
	if err != nil {
		return nil, err
	}
	opts.Trust = nil
	plain, err := NewDialer(opts)
	if err != nil {
		_ = trusted.Close()
		return nil, err
	}
	return &Either{trusted, plain}, nil
}

// Dial implements control.Dialer.
func (e *Either) Dial(ctx context.Context) (control.ServerEnd, error) {
	end, err := e.trusted.Dial(ctx)
	if !errors.Is(err, ErrNotTLS) {
		return end, err
	}
	return e.plain.Dial(ctx)
}

// Recheck ends the stream to a node that is not believed any more.
func (e *Either) Recheck() { e.trusted.Recheck() }

// Close ends both connections.
func (e *Either) Close() error { return errors.Join(e.trusted.Close(), e.plain.Close()) }
