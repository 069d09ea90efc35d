package auth

import (
	"context"
	"sync/atomic"
	"time"
)

// GuessStore counts wrong guesses for all servers of a control store.
type GuessStore interface {
	// AddGuess notes a wrong guess of a caller, which is regained after refill.
	AddGuess(ctx context.Context, kind, caller string, refill time.Duration) error
	// GuessesOwed is how long the caller needs to regain all wrong guesses; 0 where there were none.
	GuessesOwed(ctx context.Context, kind, caller string) (time.Duration, error)
}

// GuessLimiter is a Limiter of wrong guesses of one kind. Servers of one store count them together: whoever guesses at
// several of them has no more guesses than at one. While the store does not answer, each server counts its own.
type GuessLimiter struct {
	*Limiter
	kind  string
	store GuessStore
	// retryAt is when the store is asked again, in Unix nanoseconds: who signs in during an outage waits once.
	retryAt atomic.Int64
}

// Asking the store for guesses takes at most guessTimeout, and is left out for guessRetryDelay when it failed.
const (
	guessTimeout    = 500 * time.Millisecond
	guessRetryDelay = 10 * time.Second
)

// NewGuessLimiter returns a limiter of a kind: kinds are counted apart. A nil store counts in this process alone.
func NewGuessLimiter(kind string, burst int, refill time.Duration, store GuessStore) *GuessLimiter {
	return &GuessLimiter{Limiter: NewLimiter(burst, refill), kind: kind, store: store}
}

// Wait returns how long the caller has to wait before the next guess; 0 means none.
func (g *GuessLimiter) Wait(ctx context.Context, caller string) time.Duration {
	here := g.Limiter.Wait(caller)
	var owed time.Duration
	g.ask(ctx, func(ctx context.Context) (err error) {
		owed, err = g.store.GuessesOwed(ctx, g.kind, caller)
		return err
	})
	return max(here, owed-time.Duration(g.Burst-1)*g.Refill, 0)
}

// RecordFailure counts a wrong guess.
func (g *GuessLimiter) RecordFailure(ctx context.Context, caller string) {
	g.Limiter.RecordFailure(caller)
	g.ask(ctx, func(ctx context.Context) error { return g.store.AddGuess(ctx, g.kind, caller, g.Refill) })
}

// ask calls the store, unless it failed a moment ago. A client that hangs up after a wrong guess has guessed.
func (g *GuessLimiter) ask(ctx context.Context, call func(ctx context.Context) error) {
	if g.store == nil || time.Now().UnixNano() < g.retryAt.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), guessTimeout)
	defer cancel()
	if call(ctx) != nil {
		g.retryAt.Store(time.Now().Add(guessRetryDelay).UnixNano())
	}
}
