package derived_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/query"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/derived"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// TestAQueryIsCancelledFromElsewhere: a query of one server is ended through another one by who asked it, and by nobody
// else; where no role may do that, the refusal is an error, not an answer that there is none.
func TestAQueryIsCancelledFromElsewhere(t *testing.T) {
	one, _, reader := open(t)
	server := pgtest.Start(t)
	other, err := derived.Open(t.Context(), first(server.Results(t)), second(server.Results(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	admin, err := pgx.ParseConfig(server.NewDatabase(t))
	if err != nil {
		t.Fatal(err)
	}
	admin.Database = reader.Config().Database
	as, err := pgx.ConnectConfig(t.Context(), admin)
	if err != nil {
		t.Fatal(err)
	}
	defer as.Close(context.Background())
	ended := make(chan error, 1)
	began := time.Now()
	go func() {
		_, err := one.Query(query.WithCaller(context.Background(), "ada", "my-query-1"),
			"SELECT count(*) FROM (SELECT generate_series(1, 1000000000000)) AS n", 1)
		ended <- err
	}()
	role := pgx.Identifier{reader.Config().User}.Sanitize()
	if err := other.Cancel(t.Context(), query.SessionOf("bob", "my-query-1")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("somebody else cancels it: %v", err)
	}
	refused := false
	for {
		err := other.Cancel(t.Context(), query.SessionOf("ada", "my-query-1"))
		if err == nil {
			break
		}
		if !errors.Is(err, store.ErrNotFound) && !refused {
			refused = true // the embedded Postgres lets no reader do it; others do
			if _, err := as.Exec(t.Context(), "GRANT EXECUTE ON FUNCTION pg_cancel_backend(integer) TO "+role); err != nil {
				t.Fatal(err)
			}
			defer func() {
				_, _ = as.Exec(context.Background(), "REVOKE EXECUTE ON FUNCTION pg_cancel_backend(integer) FROM "+role)
			}()
		} else if !errors.Is(err, store.ErrNotFound) || time.Since(began) > time.Minute {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err := <-ended; !errors.Is(err, query.ErrCancelled) || !engine.HasCode(err, engine.CodeConflict) {
		t.Errorf("the query ended with %v", err)
	}
	if !refused {
		t.Error("a reader of the embedded Postgres may cancel")
	}
	if err := other.Cancel(t.Context(), query.SessionOf("ada", "my-query-1")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("what is over: %v", err)
	}
}

func first(a, _ string) string  { return a }
func second(_, b string) string { return b }
