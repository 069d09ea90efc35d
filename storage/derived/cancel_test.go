package derived_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/query"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/derived"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// TestAQueryIsCancelledFromElsewhere: a query of one server is ended through another one by who asked it, and by nobody
// else. The owner does it, for the reader may not.
func TestAQueryIsCancelledFromElsewhere(t *testing.T) {
	one, _, reader := open(t)
	server := pgtest.Start(t)
	other, err := derived.Open(t.Context(), first(server.Results(t)), second(server.Results(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	ended := make(chan error, 1)
	began := time.Now()
	go func() {
		_, err := one.Query(query.WithCaller(context.Background(), "ada", "my-query-1"),
			"SELECT count(*) FROM (SELECT generate_series(1, 1000000000000)) AS n", 1)
		ended <- err
	}()
	if err := other.Cancel(t.Context(), query.SessionOf("bob", "my-query-1")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("somebody else cancels it: %v", err)
	}
	for {
		err := other.Cancel(t.Context(), query.SessionOf("ada", "my-query-1"))
		if err == nil {
			break
		}
		if !errors.Is(err, store.ErrNotFound) || time.Since(began) > time.Minute {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err := <-ended; !errors.Is(err, query.ErrCancelled) || !engine.HasCode(err, engine.CodeConflict) {
		t.Errorf("the query ended with %v", err)
	}
	if _, err := reader.Exec(t.Context(), "SELECT pg_cancel_backend(pg_backend_pid())"); err == nil {
		t.Error("a reader of the embedded Postgres may cancel")
	}
	if err := other.Cancel(t.Context(), query.SessionOf("ada", "my-query-1")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("what is over: %v", err)
	}
}

// TestACancelReachesASessionBetweenTwoStatements: one that has said whose query comes, and has not begun with it.
func TestACancelReachesASessionBetweenTwoStatements(t *testing.T) {
	d, _, reader := open(t)
	session := query.SessionOf("ada", "about-to-begin")
	for _, sql := range []string{"BEGIN", "SET LOCAL application_name = '" + session + "'"} {
		if _, err := reader.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	cancelled := make(chan error, 1)
	go func() { cancelled <- d.Cancel(t.Context(), session) }()
	time.Sleep(200 * time.Millisecond)
	_, err := reader.Exec(t.Context(), "SELECT count(*) FROM (SELECT generate_series(1, 1000000000000)) AS n")
	if err == nil || !strings.Contains(err.Error(), "user request") {
		t.Errorf("the query ended with %v", err)
	}
	if _, err := reader.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Error(err)
	}
	if err := <-cancelled; err != nil {
		t.Error(err)
	}
}

func first(a, _ string) string  { return a }
func second(_, b string) string { return b }
