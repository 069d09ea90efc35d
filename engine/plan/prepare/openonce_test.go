package prepare

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
)

// flaky fails the first time.
type flaky struct{ asked int }

func (f *flaky) OpenDSN(context.Context, engine.ConnectionRef) (string, secret.Secret, error) {
	f.asked++
	if f.asked == 1 {
		return "", secret.Secret{}, errors.New("the store is away")
	}
	return "postgres", secret.New("postgres://db"), nil
}

func TestOpenOnceAsksAgainAfterAFailure(t *testing.T) {
	from := &flaky{}
	once := OpenOnce(from)
	if _, _, err := once.OpenDSN(t.Context(), engine.ConnectionRef{Name: "a"}); err == nil {
		t.Fatal("no error")
	}
	var all sync.WaitGroup
	for range 8 { // of a matrix, side by side
		all.Go(func() {
			if _, dsn, err := once.OpenDSN(t.Context(), engine.ConnectionRef{Name: "a"}); err != nil || dsn.Reveal() == "" {
				t.Errorf("again: %v", err)
			}
		})
	}
	all.Wait()
	if from.asked != 2 {
		t.Errorf("asked %d times", from.asked)
	}
}
