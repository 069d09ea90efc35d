package protocol

import (
	"context"
	"errors"
)

// FragmentKey names a fragment of a continuous query on its node: in the epoch of who owns the query, at the n-th
// attempt within it.
type FragmentKey struct {
	QueryID int64 `json:"query_id"`
	Epoch   int64 `json:"epoch"`
	Attempt int64 `json:"attempt"`
}

// Before reports whether a key is an earlier one of the same query.
func (k FragmentKey) Before(o FragmentKey) bool {
	return k.QueryID == o.QueryID && (k.Epoch < o.Epoch || k.Epoch == o.Epoch && k.Attempt < o.Attempt)
}

// FragmentMessage is a word between a fragment and its owner; the package fragment says what they mean.
type FragmentMessage struct {
	Kind int64
	Body []byte
}

// FragmentLink is the way to a fragment, or to its owner. Send and Receive may be called at the same time, each by one
// goroutine or more.
type FragmentLink interface {
	// Send waits while the other end is busy, until ctx ends. ErrFragmentLost: the link has ended.
	Send(ctx context.Context, w FragmentMessage) error
	// Receive waits for the next word. ErrFragmentLost: there is none any more.
	Receive(ctx context.Context) (FragmentMessage, error)
	// Close ends the link at once, for both ends. Repeating it is harmless.
	Close() error
}

// ErrFragmentLost says that a link has ended.
var ErrFragmentLost = errors.New("the way to the fragment has ended")

// FragmentList are the fragments of a node, or what has changed since an earlier list.
type FragmentList struct {
	// Process and Sequence name the list: a node that has restarted has another process.
	Process  string
	Sequence int64
	// All: Running are all that run; otherwise those that came, and Gone are those that went.
	All           bool
	Running, Gone []FragmentKey
}

// FragmentHost is a node, as to fragments of continuous queries.
type FragmentHost interface {
	// Run runs a fragment until it has ended, or ctx or the link has.
	Run(ctx context.Context, k FragmentKey, spec []byte, link FragmentLink)
	// Stop ends the fragment of a query with that key, and earlier ones, and returns when they have gone.
	Stop(ctx context.Context, k FragmentKey) error
	// List returns what has changed since a list, or all.
	List(process string, since int64) FragmentList
}

// FragmentRunner is a ServerEnd whose node runs fragments.
type FragmentRunner interface {
	ServerEnd
	// RunFragment gives the node a fragment. What becomes of it is said on the link, which outlives ctx.
	RunFragment(ctx context.Context, k FragmentKey, spec []byte) (FragmentLink, error)
	// StopFragment is FragmentHost.Stop, ListFragments is List.
	StopFragment(ctx context.Context, k FragmentKey) error
	ListFragments(ctx context.Context, process string, since int64) (FragmentList, error)
}
