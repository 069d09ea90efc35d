package api

import "context"

// Throttled is a handler that waits for a place of the gate. What takes long, and may ask a target, ends when its
// caller has no right to ask any more.
func Throttled[I, O any](a *API, h func(ctx context.Context, in *I) (*O, error)) func(ctx context.Context, in *I) (*O,
	error) {
	return func(ctx context.Context, in *I) (*O, error) {
		ctx, done := a.whileAllowed(ctx)
		defer done()
		leave, err := a.gate.Acquire(ctx, a.identity(ctx).User.UserID)
		if err != nil {
			return nil, err
		}
		defer leave()
		return h(ctx, in)
	}
}
