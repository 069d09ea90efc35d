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
	opts           DialOptions
	// joined: a node with a certificate has answered here; noted: that is remembered beyond this process.
	joined, noted atomic.Bool
	// none: it is known that none ever has, for while that cannot be asked.
	none atomic.Bool
}

// NewDualDialer prepares both ways; the address must be of this machine, unless Security allows more.
func NewDualDialer(opts DialOptions) (*DualDialer, error) {
	trusted, err := NewDialer(opts)
	if err != nil {
		return nil, err
	}
	d := &DualDialer{trusted: trusted, opts: opts}
	opts.Trust = nil
	if d.plain, err = NewDialer(opts); err != nil {
		_ = trusted.Close()
		return nil, err
	}
	return d, nil
}

// Dial implements protocol.Dialer.
func (e *DualDialer) Dial(ctx context.Context) (protocol.ServerEnd, error) {
	end, err := e.trusted.Dial(ctx)
	if err == nil {
		e.joined.Store(true)
		if e.opts.Joined != nil && !e.noted.Load() {
			// A store that is away is told with the next stream.
			e.noted.Store(e.opts.Joined.NoteJoined(ctx, e.opts.Address) == nil)
		}
		return end, nil
	}
	if !errors.Is(err, ErrNotTLS) {
		return end, err
	}
	joined, unknown := e.hasJoined(ctx)
	switch {
	case unknown != nil:
		return nil, fmt.Errorf("%w, and it is not known whether the node that was there has a certificate: %w", err, unknown)
	case joined:
		// Whoever takes the port of a node that is down would be given its work, and what that opens.
		return nil, fmt.Errorf("%w, and the node that was there has a certificate; if it is to do without, "+
			"start this server with --nodes-insecure", err)
	}
	return e.plain.Dial(ctx)
}

// hasJoined reports whether a node with a certificate has ever answered here, to this process or one before.
func (e *DualDialer) hasJoined(ctx context.Context) (bool, error) {
	if e.joined.Load() || e.opts.Joined == nil {
		return e.joined.Load(), nil
	}
	joined, err := e.opts.Joined.HasJoined(ctx, e.opts.Address)
	switch {
	case err != nil && e.none.Load():
		return false, nil
	case err == nil:
		e.joined.Store(joined)
		e.noted.Store(joined)
		e.none.Store(!joined)
	}
	return joined, err
}

// Recheck ends the stream to a node that is not believed any more.
func (e *DualDialer) Recheck() { e.trusted.Recheck() }

// Close ends both connections.
func (e *DualDialer) Close() error { return errors.Join(e.trusted.Close(), e.plain.Close()) }
