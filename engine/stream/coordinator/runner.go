package coordinator

import (
	"context"
	"fmt"

	"github.com/loadstone-db/loadstone/engine/stream/fragment"
)

// Runner leads to workers of other processes, whose fragments it starts and ends. Any of its calls may fail, or succeed
// without its caller hearing of it: all of them may be repeated.
type Runner interface {
	// Start gives a worker its fragment, and returns the way to it; what becomes of it is said there. An earlier fragment
	// of the query on that worker ends first.
	Start(ctx context.Context, host string, s fragment.Spec) (fragment.Link, error)
	// Stop ends the fragment of a query with that key, and earlier ones. Without an error they are known to be gone.
	Stop(ctx context.Context, host string, k fragment.Key) error
	// Status are the fragments that run on a worker.
	Status(ctx context.Context, host string) ([]fragment.Key, error)
}

// noRunner leads nowhere.
type noRunner struct{}

func (noRunner) Start(_ context.Context, host string, _ fragment.Spec) (fragment.Link, error) {
	return nil, fmt.Errorf("there is no way to the worker %s", host)
}

// Stop has nothing to end: nothing could be started.
func (noRunner) Stop(context.Context, string, fragment.Key) error { return nil }

func (noRunner) Status(context.Context, string) ([]fragment.Key, error) { return nil, nil }
