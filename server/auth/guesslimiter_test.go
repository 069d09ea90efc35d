package auth_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/server/auth"
)

type brokenStore struct{ calls int }

func (b *brokenStore) AddGuess(context.Context, string, string, time.Duration) error {
	b.calls++
	return errors.New("the store is away")
}

func (b *brokenStore) GuessesOwed(context.Context, string, string) (time.Duration, error) {
	b.calls++
	return 0, errors.New("the store is away")
}

// TestGuessesWithoutAStore: a server whose store is away counts its own, and does not wait for the store each time.
func TestGuessesWithoutAStore(t *testing.T) {
	ctx, away := t.Context(), &brokenStore{}
	l := auth.NewGuessLimiter("password", 10, time.Minute, away)
	for range 10 {
		if wait := l.Wait(ctx, "ada"); wait != 0 {
			t.Fatalf("waits %s", wait)
		}
		l.RecordFailure(ctx, "ada")
	}
	if wait := l.Wait(ctx, "ada"); wait < 55*time.Second {
		t.Errorf("guess 11 waits %s", wait)
	}
	if away.calls != 1 {
		t.Errorf("the store was asked %d times", away.calls)
	}
}
