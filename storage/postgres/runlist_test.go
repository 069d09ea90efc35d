package postgres_test

import (
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/store/fake"
)

// TestRunsOfAConnection are those that name it, in both stores: not those of a longer name, nor of a connection that is
// spelled out.
func TestRunsOfAConnection(t *testing.T) {
	t.Parallel()
	onPostgres, _ := open(t)
	for name, s := range map[string]store.Runs{"Postgres": onPostgres, "memory": fake.New()} {
		for id, ref := range map[string]engine.ConnectionRef{"a": {Name: "shop"}, "b": {Name: "shop 2"},
			"c": {Driver: "postgres", DSN: "host=shop"}, "d": {Name: "shop"}} {
			if err := s.CreateRun(t.Context(), engine.Run{RunID: name + id,
				Scenario: engine.Scenario{Target: engine.Target{Connection: ref}}}); err != nil {
				t.Fatal(err)
			}
		}
		for connection, want := range map[string]int64{"shop": 2, "shop 2": 1, "sho": 0, "'": 0, "": 4} {
			list, err := s.ListRuns(t.Context(), store.RunFilter{Connection: connection})
			if err != nil || list.Total != want || int64(len(list.Runs)) != want {
				t.Errorf("%s, %q: %d runs, %v, want %d", name, connection, list.Total, err, want)
			}
		}
	}
}
