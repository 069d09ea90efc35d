package api

import "context"

// Throttled is a handler that waits for a place of the gate.
func Throttled[I, O any](a *API, h func(ctx context.Context, in *I) (*O, error)) func(ctx context.Context, in *I) (*O,
	error) {
	return func(ctx context.Context, in *I) (*O, error) {
		leave, err := a.gate.Acquire(ctx, a.identity(ctx).User.UserID)
		if err != nil {
			return nil, err
		}
		defer leave()
		return h(ctx, in)
	}
}
