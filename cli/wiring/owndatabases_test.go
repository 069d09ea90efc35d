package wiring

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/keyring"
	storagepostgres "github.com/loadstone-db/loadstone/storage/postgres"
	"github.com/loadstone-db/loadstone/storage/postgres/postgrestest"
)

// TestTheResultsDatabaseIsKnownToEveryServer: to one that cannot open it, because its reader is not let in, and to one
// of the same store that was never given its address, which began before or begins after.
func TestTheResultsDatabaseIsKnownToEveryServer(t *testing.T) {
	server := pgtest.Start(t)
	control, owner := postgrestest.NewControl(t), server.NewDatabase(t)
	keys, err := keyring.Open(filepath.Join(t.TempDir(), keyring.FileName))
	if err != nil {
		t.Fatal(err)
	}
	start := func() *Services {
		s := &Services{options: Options{Serves: true}}
		if s.Store, err = storagepostgres.Open(t.Context(), control, keys); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close(context.WithoutCancel(t.Context())) })
		s.onClose(func(context.Context) error { s.Store.Close(); return nil })
		if err := s.openOwn(t.Context()); err != nil {
			t.Fatal(err)
		}
		return s
	}
	config, err := pgx.ParseConfig(owner)
	if err != nil {
		t.Fatal(err)
	}
	results := config.Database
	knows := func(s *Services) bool {
		return slices.ContainsFunc(s.own.all(), func(own engine.OwnDatabase) bool {
			return own.What == resultsDatabase && own.Name == results && own.SystemID != "" && own.OID != 0
		})
	}
	before, with := start(), start()
	if knows(before) || knows(with) {
		t.Fatal("it is known before any server was given it")
	}
	opening := &refreshers{store: with.Store,
		identify: func(ctx context.Context) error { return with.keepResults(ctx, owner) },
		urls: func(context.Context) (string, string, error) {
			return owner, "postgres://nobody_is_called_this@127.0.0.1:1/" + results, nil
		}}
	if _, err := opening.database(t.Context()); err == nil {
		t.Fatal("it was opened without a reader")
	}
	if !knows(with) {
		t.Errorf("a server that cannot open it does not know it: %+v", with.own.all())
	}
	if n := len(with.own.all()); n != 2 {
		t.Errorf("it knows %d databases: %+v", n, with.own.all())
	}
	if after := start(); !knows(after) {
		t.Errorf("a server without its address does not know it: %+v", after.own.all())
	}
	if err := before.own.learn(t.Context(), before.Store.ResultsIdentity); err != nil || !knows(before) {
		t.Errorf("one that began before does not learn it: %+v, %v", before.own.all(), err)
	}
}
