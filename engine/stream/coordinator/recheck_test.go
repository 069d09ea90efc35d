package coordinator_test

import (
	"context"
	"testing"

	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/catalogtest"
)

// TestAQueryIsSuspendedOfWhoWasJudged: a query that is created while users are read is not judged by them; what another
// user has taken over since it was judged goes on.
func TestAQueryIsSuspendedOfWhoWasJudged(t *testing.T) {
	t.Parallel()
	k := &catalogtest.Store{}
	c := begin(t, k, &pipes{}, "one")
	as := func(user, sql string) {
		t.Helper()
		if _, err := c.Execute(t.Context(), sql, catalog.Author{UserID: user, Name: user}, nil); err != nil {
			t.Fatal(err)
		}
	}
	recheck := func(reading, judging func()) {
		t.Helper()
		if err := c.Recheck(t.Context(), func(context.Context) (func(catalog.Query, catalog.Sink) (string, error), error) {
			reading()
			return func(q catalog.Query, _ catalog.Sink) (string, error) {
				judging()
				return q.CreatedBy + " is no user any more", nil
			}, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	as("ada", "CREATE SINK s TYPE PRINT; CREATE QUERY adas AS SELECT runId FROM run_events INTO s")
	recheck(func() { as("bob", "CREATE QUERY bobs AS SELECT runId FROM run_events INTO s") }, func() {})
	adas := eventually(t, k, "adas", catalog.Suspended)
	if q := eventually(t, k, "bobs", catalog.Running); q.Desired != catalog.Running {
		t.Errorf("what was created meanwhile: %+v", q)
	}
	as("ada", "DROP QUERY bobs; RESUME QUERY adas")
	eventually(t, k, "bobs", "")
	eventually(t, k, "adas", catalog.Running)
	recheck(func() {}, func() {
		if err := k.ChangeCatalog(t.Context(), catalog.Scope{All: true}, func(to *catalog.Catalog) error {
			to.Suspend(adas.ID, "ada", "for a moment")
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		eventually(t, k, "adas", catalog.Suspended)
		as("eve", "RESUME QUERY adas")
	})
	if q := eventually(t, k, "adas", catalog.Running); q.Desired != catalog.Running || q.CreatedByID != "eve" {
		t.Errorf("what eve has taken over: %+v", q)
	}
}
