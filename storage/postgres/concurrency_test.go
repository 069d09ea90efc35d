package postgres_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// oneWins does something several times at once: one does it, the others are told that it is no longer as they saw it.
func oneWins(t *testing.T, do func() error) {
	t.Helper()
	var results [6]error
	var wait sync.WaitGroup
	for i := range results {
		wait.Go(func() { results[i] = do() })
	}
	wait.Wait()
	done := 0
	for _, err := range results {
		var told *engine.Error
		switch {
		case err == nil:
			done++
		case !errors.Is(err, store.ErrConflict) || !errors.As(err, &told) || told.Hint == "" || len(told.Fields) != 1 ||
			told.Fields[0].Field != "was":
			t.Errorf("who came second is told %v", err)
		}
	}
	if done != 1 {
		t.Errorf("%d of %d at once did it; want one", done, len(results))
	}
}
