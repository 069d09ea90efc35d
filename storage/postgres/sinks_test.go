package postgres_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/catalog"
	"github.com/loadstone-db/loadstone/engine/statement"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/stream/outlet/relation"
	"github.com/loadstone-db/loadstone/storage/postgres"
)

// makesSink creates a sink that writes to a connection, which was judged before; meanwhile may happen between the
// judgement and the end of the transaction.
func makesSink(t *testing.T, s *postgres.Store, name string, to store.Connection, meanwhile func()) error {
	t.Helper()
	text := "CREATE SINK " + name + " TYPE POSTGRES SET('" + to.Name + "' AS SINK.CONNECTION, 't' AS SINK.TABLE)"
	parsed, err := statement.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	by := catalog.Author{Name: "ada",
		Connections: []catalog.Judged{{Named: to.Name, There: true, ID: to.ConnectionID, Name: to.Name, Driver: to.Driver}},
		Tables: []catalog.Looked{{ConnectionID: to.ConnectionID, Name: "t",
			Table: relation.Table{Schema: "public", Name: "t"}}}}
	return s.Streams().ChangeCatalog(t.Context(), catalog.NeedsOf(parsed), func(c *catalog.Catalog) error {
		c.As(by, time.Now())
		c.Within(catalog.Server, 5)
		meanwhile()
		return c.CreateSink(text, parsed[0].Statement.(*statement.CreateSink))
	})
}

// TestASinkHoldsItsConnection: a connection to which a sink writes is not deleted, under whatever name, and the sinks
// are named; a sink is not made for a connection that went after it was judged. Of the two at once one succeeds.
func TestASinkHoldsItsConnection(t *testing.T) {
	s, _ := open(t)
	ctx := t.Context()
	saved := func(name string) store.Connection {
		t.Helper()
		c, err := s.SaveConnection(ctx, store.Connection{Name: name, Driver: "postgres", DSN: "host=/shop"})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	shop := saved("shop")
	for _, name := range []string{"b", "a"} {
		if err := makesSink(t, s, name, shop, func() {}); err != nil {
			t.Fatal(err)
		}
	}
	shop.Name = "shop of old"
	shop, err := s.SaveConnection(ctx, shop)
	if err != nil {
		t.Fatal(err)
	}
	err = s.DeleteConnection(ctx, shop.ConnectionID, shop.Version)
	if !errors.Is(err, store.ErrInUse) ||
		!strings.Contains(err.Error(), `The connection "shop of old" cannot be deleted: the sinks a and b write to it.`) {
		t.Errorf("it was deleted: %v", err)
	}
	// Another connection is nobody's, and went after it was judged.
	gone := saved("gone")
	err = makesSink(t, s, "late", gone, func() {
		if err := s.DeleteConnection(ctx, gone.ConnectionID, 0); err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Error(err)
		}
	})
	var refused *statement.Error
	if !errors.As(err, &refused) || refused.Kind != statement.InvalidConfig ||
		!strings.Contains(refused.Message, "the connection gone of the sink late is not there any more") {
		t.Errorf("a sink of a connection that is gone: %v", err)
	}
	both, neither := 0, 0
	for i := range 30 {
		c := saved("raced")
		var making, deleting error
		var group sync.WaitGroup
		group.Go(func() { making = makesSink(t, s, "raced", c, func() {}) })
		group.Go(func() {
			time.Sleep(time.Duration(i) * 100 * time.Microsecond)
			deleting = s.DeleteConnection(ctx, c.ConnectionID, 0)
		})
		group.Wait()
		switch {
		case making == nil && deleting == nil:
			both++
		case making != nil && deleting != nil:
			neither++
			t.Errorf("%v, %v", making, deleting)
		}
		if making == nil {
			if err := drops(t, s, "raced"); err != nil {
				t.Fatal(err)
			}
			if err := s.DeleteConnection(ctx, c.ConnectionID, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	if both > 0 {
		t.Errorf("of 30 times %d connections went whose sink was made", both)
	}
	for _, name := range []string{"a", "b"} {
		if err := drops(t, s, name); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.DeleteConnection(ctx, shop.ConnectionID, shop.Version); err != nil {
		t.Errorf("without its sinks it stays: %v", err)
	}
}

// drops drops a sink.
func drops(t *testing.T, s *postgres.Store, name string) error {
	t.Helper()
	text := "DROP SINK " + name
	parsed, err := statement.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s.Streams().ChangeCatalog(t.Context(), catalog.NeedsOf(parsed), func(c *catalog.Catalog) error {
		_, err := c.Drop(text, parsed[0].Statement.(*statement.Drop))
		return err
	})
}
