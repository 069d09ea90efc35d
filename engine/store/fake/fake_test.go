package fake_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/store/fake"
	"github.com/loadstone-db/loadstone/engine/store/storetest"
	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/catalogtest"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/engine/target/snowflake"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Store { return fake.New(postgres.NewDriver(), snowflake.NewDriver()) })
}

// TestSinksHoldTheirConnections: with a catalog in memory beside the store.
func TestSinksHoldTheirConnections(t *testing.T) {
	storetest.RunSinks(t, func(*testing.T) (store.Connections, catalog.Store) {
		s := fake.New(postgres.NewDriver())
		k := &catalogtest.Store{Connections: s}
		s.SetSinkCatalog(k)
		return s, k
	})
}

// TestAReplayIsFoundAmongMany: what replays a run keeps it, however many runs are going on.
func TestAReplayIsFoundAmongMany(t *testing.T) {
	ctx, s := t.Context(), fake.New()
	create := func(r engine.Run) {
		if err := s.CreateRun(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	create(engine.Run{RunID: "old", ResultID: "old"})
	none := engine.PhaseNone
	if _, err := s.Transition(ctx, store.Transition{RunID: "old", To: engine.StatusCancelled, Phase: &none}); err != nil {
		t.Fatal(err)
	}
	create(engine.Run{RunID: "again", ResultID: "again", Scenario: engine.Scenario{Name: "again",
		Workload: engine.Workload{Feed: &engine.Feed{Run: "old"}}}})
	for i := range 501 { // a list has at most 500
		create(engine.Run{RunID: fmt.Sprint("r", i), ResultID: fmt.Sprint("r", i)})
	}
	if err := s.Expire(ctx, store.Expiry{RunID: "old", Whole: true}); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a run that is replayed: %v", err)
	}
}
