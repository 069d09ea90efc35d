package postgres_test

import (
	"errors"
	"testing"

	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/store/storetest"
	"github.com/loadstone-db/loadstone/engine/stream/catalog"
)

func TestSinksHoldTheirConnections(t *testing.T) {
	t.Parallel()
	storetest.RunSinks(t, func(t *testing.T) (store.Connections, catalog.Store) {
		s, _ := open(t)
		return s, s.Streams()
	})
}

// TestAConnectionGoesWhileItsSinkIsMade: it is deleted by another transaction, when that of the sink has begun.
func TestAConnectionGoesWhileItsSinkIsMade(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	c, err := s.SaveConnection(t.Context(), store.Connection{Name: "gone", Driver: "postgres", DSN: "host=/shop"})
	if err != nil {
		t.Fatal(err)
	}
	storetest.WantConnectionGone(t, "gone", "late", storetest.CreateSink(t.Context(), s.Streams(), "late", c, func() {
		// The change may be made again.
		if err := s.DeleteConnection(t.Context(), c.ConnectionID, 0); err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Error(err)
		}
	}))
}
