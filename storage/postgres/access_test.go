package postgres_test

import (
	"errors"
	"reflect"
	"sync"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres"
)

// Access keeps whose connections and templates are through every way that they are read and changed.
func Access(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	ada := store.Access{OwnerID: "1", Owner: "ada", Restricted: true,
		Users: []store.AccessUser{{UserID: "2", Name: "bob"}}}
	eve := store.Access{OwnerID: "3", Owner: "eve"}
	same := func(what string, got, want store.Access) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	c, err := s.SaveConnection(ctx, store.Connection{Name: "c", Driver: "postgres", DSN: "postgres://h/d",
		Production: true, Access: ada})
	if err != nil {
		t.Fatal(err)
	}
	same("made", c.Access, ada)
	if c, err = s.ConnectionByName(ctx, "c"); err != nil || !c.Production {
		t.Fatalf("read: %+v, %v", c, err)
	}
	same("read", c.Access, ada)
	c.Access, c.Production = eve, false
	if c, err = s.SaveConnection(ctx, c); err != nil || c.Production {
		t.Fatalf("changed: %+v, %v", c, err)
	}
	staleConnection(t, s, c)
	list, err := s.ListConnections(ctx)
	if err != nil || len(list) != 1 {
		t.Fatalf("list: %+v, %v", list, err)
	}
	same("listed", list[0].Access, eve)

	tpl, err := s.CreateTemplate(ctx, store.Template{Name: "t", Config: engine.Scenario{Name: "t"}, Access: ada})
	if err != nil {
		t.Fatal(err)
	}
	same("made template", tpl.Access, ada)
	tpl.Access = eve
	if tpl, err = s.UpdateTemplate(ctx, tpl); err != nil {
		t.Fatal(err)
	}
	same("changed template", tpl.Access, eve)
	if tpl, err = s.TemplateByName(ctx, "t"); err != nil {
		t.Fatal(err)
	}
	same("read template", tpl.Access, eve)
	templates, err := s.ListTemplates(ctx)
	if err != nil || len(templates) != 1 {
		t.Fatalf("templates: %+v, %v", templates, err)
	}
	same("listed template", templates[0].Access, eve)
}

// staleConnection changes and deletes a connection that somebody else has changed since it was read: nothing of that is
// undone.
func staleConnection(t *testing.T, s *postgres.Store, read store.Connection) {
	t.Helper()
	ctx := t.Context()
	marked := read
	marked.Production = true
	marked, err := s.SaveConnection(ctx, marked)
	if err != nil || marked.Version != read.Version+1 || read.Version < 1 {
		t.Fatalf("marked: %+v after version %d, %v", marked, read.Version, err)
	}
	read.Description = "of who read it before"
	if _, err := s.SaveConnection(ctx, read); !errors.Is(err, store.ErrConflict) {
		t.Errorf("an older version is saved: %v", err)
	}
	if err := s.DeleteConnection(ctx, read.ConnectionID, read.Version); !errors.Is(err, store.ErrConflict) {
		t.Errorf("an older version is deleted: %v", err)
	}
	if err := s.DeleteConnection(ctx, "none", read.Version); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("one that is not there is deleted: %v", err)
	}
	if now, err := s.Connection(ctx, read.ConnectionID); err != nil || !now.Production || now.Version != marked.Version {
		t.Errorf("it is %+v now, %v", now, err)
	}
	marked.Version, marked.Production = 0, false
	if _, err := s.SaveConnection(ctx, marked); err != nil {
		t.Errorf("without a version: %v", err)
	}
	racedConnection(t, s)
}

// racedConnection changes and deletes one version at once, several times: one of the two happens, and the other is told
// so. A change that is saved is there afterwards.
func racedConnection(t *testing.T, s *postgres.Store) {
	t.Helper()
	ctx := t.Context()
	for range 8 {
		c, err := s.SaveConnection(ctx, store.Connection{Name: "raced", Driver: "postgres", DSN: "postgres://h/d"})
		if err != nil {
			t.Fatal(err)
		}
		changed := c
		changed.Production = true
		var saving, deleting error
		var both sync.WaitGroup
		both.Go(func() { changed, saving = s.SaveConnection(ctx, changed) })
		both.Go(func() { deleting = s.DeleteConnection(ctx, c.ConnectionID, c.Version) })
		both.Wait()
		now, err := s.Connection(ctx, c.ConnectionID)
		switch {
		case saving == nil && errors.Is(deleting, store.ErrConflict) && err == nil && now.Production:
			if err := s.DeleteConnection(ctx, c.ConnectionID, changed.Version); err != nil {
				t.Fatalf("deleting the current version: %v", err)
			}
		case deleting == nil && errors.Is(saving, store.ErrNotFound) && errors.Is(err, store.ErrNotFound):
		default:
			t.Fatalf("saving: %v, deleting: %v; it is %+v, %v", saving, deleting, now, err)
		}
	}
}
