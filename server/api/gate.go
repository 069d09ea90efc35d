package api

import "context"

// Heavily is a handler that waits for a place of the gate.
func Heavily[I, O any](a *API, h func(ctx context.Context, in *I) (*O, error)) func(ctx context.Context, in *I) (*O,
	error) {
	return func(ctx context.Context, in *I) (*O, error) {
		leave, err := a.gate.Enter(ctx, a.identity(ctx).User.UserID)
		if err != nil {
			return nil, err
		}
		defer leave()
		return h(ctx, in)
	}
}
