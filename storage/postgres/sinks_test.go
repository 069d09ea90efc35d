package postgres_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/connector/postgres"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
	storagepostgres "github.com/loadstone-db/loadstone/storage/postgres"
)

func TestSinksHoldTheirConnections(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		test func(*testing.T, *storagepostgres.Store, catalog.Store)
	}{{"Held", deletionBlocked}, {"Gone", connectionGone}, {"AtOnce", concurrentDelete}} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := open(t)
			c.test(t, s, s.Streams())
		})
	}
}

// TestAConnectionGoesWhileItsSinkIsMade: it is deleted by another transaction, when that of the sink has begun.
func TestAConnectionGoesWhileItsSinkIsMade(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	c, err := s.SaveConnection(t.Context(), store.Connection{Name: "gone", Driver: "postgres", DSN: "host=/shop"})
	if err != nil {
		t.Fatal(err)
	}
	wantConnectionGone(t, "gone", "late", createSink(t.Context(), s.Streams(), "late", c, func() {
		// The change may be made again.
		if err := s.DeleteConnection(t.Context(), c.ConnectionID, 0); err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Error(err)
		}
	}))
}

// createSink creates a sink that writes to a connection, which was judged before; meanwhile may happen before the
// change is kept.
func createSink(ctx context.Context, k catalog.Store, name string, to store.Connection, meanwhile func()) error {
	text := "CREATE SINK " + name + " TYPE POSTGRES SET('" + to.Name + "' AS SINK.CONNECTION, 't' AS SINK.TABLE)"
	parsed, err := sql.Parse(text)
	if err != nil {
		return err
	}
	by := catalog.Author{
		Name: "ada",
		Connections: []catalog.ConnectionGrant{
			{Ref: to.Name, Exists: true, ID: to.ConnectionID, Name: to.Name, Driver: to.Driver},
		},
		Tables: []catalog.TableSchema{{ConnectionID: to.ConnectionID, Name: "t",
			Table: postgres.Table{Schema: "public", Name: "t"}}},
	}
	return k.ChangeCatalog(ctx, catalog.ScopeOf(parsed), func(c *catalog.Catalog) error {
		c.SetAuthor(by, time.Now())
		c.SetDefaultHost(catalog.Server, 5)
		meanwhile()
		return c.CreateSink(text, parsed[0].Statement.(*sql.CreateSink))
	})
}

// wantConnectionGone checks that a sink was refused since its connection is not there any more.
func wantConnectionGone(t *testing.T, name, sink string, err error) {
	t.Helper()
	var refused *sql.Error
	if !errors.As(err, &refused) || refused.Kind != sql.InvalidConfig ||
		!strings.Contains(refused.Message, "the connection "+name+" of the sink "+sink+" is not there any more") {
		t.Errorf("a sink of a connection that is gone: %v", err)
	}
}

func drop(t *testing.T, k catalog.Store, name string) {
	t.Helper()
	text := "DROP SINK " + name
	parsed, err := sql.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.ChangeCatalog(t.Context(), catalog.ScopeOf(parsed), func(c *catalog.Catalog) error {
		_, err := c.Drop(text, parsed[0].Statement.(*sql.Drop))
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func saved(t *testing.T, s *storagepostgres.Store, name string) store.Connection {
	t.Helper()
	c, err := s.SaveConnection(t.Context(), store.Connection{Name: name, Driver: "postgres", DSN: "host=/shop"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func nothing() {}

// deletionBlocked: a connection to which a sink writes is not deleted, under whatever name, and the sinks are named; it
// can be changed, and deleted when they are dropped. Sinks of other connections hold theirs alone.
func deletionBlocked(t *testing.T, s *storagepostgres.Store, k catalog.Store) {
	ctx := t.Context()
	shop, other := saved(t, s, "shop"), saved(t, s, "other")
	for name, to := range map[string]store.Connection{"b": shop, "a": shop, "c": other} {
		if err := createSink(ctx, k, name, to, nothing); err != nil {
			t.Fatal(err)
		}
	}
	shop.Name = "shop of old"
	shop, err := s.SaveConnection(ctx, shop)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(c store.Connection, writes string) {
		t.Helper()
		err := s.DeleteConnection(ctx, c.ConnectionID, c.Version)
		if want := `The connection "` + c.Name + `" cannot be deleted: ` + writes + " to it."; !errors.Is(
			err,
			store.ErrInUse,
		) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	refused(shop, "the sinks a and b write")
	refused(other, "the sink c writes")
	drop(t, k, "a")
	refused(shop, "the sink b writes")
	drop(t, k, "b")
	if err := s.DeleteConnection(ctx, shop.ConnectionID, shop.Version); err != nil {
		t.Errorf("without its sinks it stays: %v", err)
	}
	for _, name := range strings.Fields("d e f g h i j k l m") {
		if err := createSink(ctx, k, name, other, nothing); err != nil {
			t.Fatal(err)
		}
	}
	refused(other, "11 sinks write")
}

// connectionGone: a sink is not made for a connection that was deleted after it was judged, and nothing of it is kept.
func connectionGone(t *testing.T, s *storagepostgres.Store, k catalog.Store) {
	ctx := t.Context()
	c := saved(t, s, "gone")
	if err := s.DeleteConnection(ctx, c.ConnectionID, 0); err != nil {
		t.Fatal(err)
	}
	wantConnectionGone(t, "gone", "late", createSink(ctx, k, "late", c, nothing))
	all, err := k.CatalogContents(ctx)
	if err != nil || len(all.Sinks) != 0 {
		t.Errorf("%+v, %v", all.Sinks, err)
	}
}

// concurrentDelete: of the making of a sink and the deletion of its connection one succeeds.
func concurrentDelete(t *testing.T, s *storagepostgres.Store, k catalog.Store) {
	ctx := t.Context()
	both := 0
	for i := range 30 {
		c := saved(t, s, "raced")
		var making, deleting error
		var group sync.WaitGroup
		group.Go(func() { making = createSink(ctx, k, "raced", c, nothing) })
		group.Go(func() {
			time.Sleep(time.Duration(i) * 100 * time.Microsecond)
			deleting = s.DeleteConnection(ctx, c.ConnectionID, 0)
		})
		group.Wait()
		switch {
		case making == nil && deleting == nil:
			both++
		case making != nil && deleting != nil:
			t.Errorf("neither: %v, %v", making, deleting)
		}
		if making == nil {
			drop(t, k, "raced")
			if err := s.DeleteConnection(ctx, c.ConnectionID, 0); err != nil && both == 0 {
				t.Fatal(err)
			}
		}
	}
	if both > 0 {
		t.Errorf("of 30 times %d connections went whose sink was made", both)
	}
}
