package rpc

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// DualDialer dials a node on this machine, which may have joined or may listen without TLS. It
// implements protocol.Dialer.
type DualDialer struct {
	trusted, plain *Dialer
	// joined: a node with a certificate has answered here.
	joined atomic.Bool
}

// NewDualDialer prepares both ways; the address must be of this machine, unless Security allows more.
func NewDualDialer(opts DialOptions) (*DualDialer, error) {
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
	return &DualDialer{trusted: trusted, plain: plain}, nil
}

// Dial implements protocol.Dialer.
func (e *DualDialer) Dial(ctx context.Context) (protocol.ServerEnd, error) {
	end, err := e.trusted.Dial(ctx)
	switch {
	case err == nil:
		e.joined.Store(true)
	case errors.Is(err, ErrNotTLS) && e.joined.Load():
		// Whoever takes the port of a node that is down would be given its work, and what that opens.
		return nil, fmt.Errorf("%w, and the node that was there has a certificate; if it is to do without, "+
			"restart this server", err)
	case errors.Is(err, ErrNotTLS):
		return e.plain.Dial(ctx)
	}
	return end, err
}

// Recheck ends the stream to a node that is not believed any more.
func (e *DualDialer) Recheck() { e.trusted.Recheck() }

// Close ends both connections.
func (e *DualDialer) Close() error { return errors.Join(e.trusted.Close(), e.plain.Close()) }
