package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres"
)

func users(t *testing.T, s *postgres.Store) (ada, bob store.User) {
	t.Helper()
	if _, err := s.EnsureAdmin(t.Context(), "admin"); err != nil {
		t.Fatal(err)
	}
	for name, u := range map[string]*store.User{"ada": &ada, "bob": &bob} {
		var err error
		if *u, err = s.CreateUser(t.Context(), name, store.RoleOperator); err != nil {
			t.Fatal(err)
		}
	}
	return ada, bob
}

func of(u store.User, name, query string) store.RunView {
	return store.RunView{Name: name, Query: query, OwnerID: u.UserID, Owner: u.Name, UpdatedBy: u.Name}
}

func wantViewError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// Views makes, changes, shares and deletes views; each sees its own and what is shared.
func Views(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	ada, bob := users(t, s)
	const odd = `P95 "näch…" /?#%; <b>`
	mine, err := s.AddRunView(ctx, of(ada, odd, "status=FAILED&sort=-p95_ms&columns=qps,p95_ms&tag=a%3A1&tag=b%3A2"))
	if err != nil || mine.ViewID == "" || mine.Version != 1 || mine.Shared || mine.Owner != "ada" ||
		mine.OwnerID != ada.UserID || mine.CreatedAt.IsZero() || mine.UpdatedBy != "ada" {
		t.Fatalf("%+v, %v", mine, err)
	}
	_, err = s.AddRunView(ctx, of(ada, odd, ""))
	wantViewError(t, "a name twice", err, store.ErrConflict)
	var e *engine.Error
	if !errors.As(err, &e) || len(e.Fields) != 1 || e.Fields[0].Field != "name" {
		t.Errorf("a name twice: %v", err)
	}
	theirs, err := s.AddRunView(ctx, of(bob, odd, "search=x"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := s.AddRunView(ctx, of(bob, "Zulu", ""))
	if err != nil {
		t.Fatal(err)
	}
	list := func(u store.User) (names string) {
		t.Helper()
		views, err := s.RunViews(ctx, u.UserID)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range views {
			names += v.Owner + ":" + v.Name + " "
		}
		return names
	}
	if got := list(ada); got != "ada:"+odd+" " {
		t.Errorf("ada sees %q", got)
	}
	theirs.Shared, theirs.UpdatedBy = true, "root"
	shared, err := s.ChangeRunView(ctx, theirs)
	if err != nil || !shared.Shared || shared.Version != 2 || shared.UpdatedBy != "root" || shared.OwnerID != bob.UserID ||
		!shared.CreatedAt.Equal(theirs.CreatedAt.Time) || shared.Query != "search=x" {
		t.Fatalf("shared: %+v, %v", shared, err)
	}
	if got := list(ada); got != "ada:"+odd+" bob:"+odd+" " {
		t.Errorf("ada sees %q", got)
	}
	if got := list(bob); got != "bob:"+odd+" bob:Zulu " {
		t.Errorf("bob sees %q", got)
	}
	if one, err := s.RunView(ctx, theirs.ViewID); err != nil || one != shared {
		t.Errorf("one: %+v, %v", one, err)
	}
	// Two tabs: the second is told who was faster.
	_, err = s.ChangeRunView(ctx, theirs)
	wantViewError(t, "an old version", err, store.ErrConflict)
	if err == nil || !strings.Contains(err.Error(), "root") {
		t.Errorf("who was faster: %v", err)
	}
	other.Name = odd
	_, err = s.ChangeRunView(ctx, other)
	wantViewError(t, "renamed to one that is there", err, store.ErrConflict)
	other.Name, other.Query = "Yankee", "trend=qps"
	if other, err = s.ChangeRunView(ctx, other); err != nil || other.Name != "Yankee" || other.Query != "trend=qps" {
		t.Errorf("renamed: %+v, %v", other, err)
	}
	_, err = s.ChangeRunView(ctx, store.RunView{ViewID: "none", Name: "x", Version: 1})
	wantViewError(t, "changing none", err, store.ErrNotFound)
	_, err = s.AddRunView(ctx, store.RunView{Name: "x", OwnerID: "nobody"})
	wantViewError(t, "of nobody", err, store.ErrNotFound)
	for _, bad := range []store.RunView{{}, {Name: " x"}, {Name: "a\x00"}, {Name: "\u202ex"}, {Name: "\xff"},
		{Name: strings.Repeat("é", 81)}, {Name: "x", Query: "cursor=1"}, {Name: "x", Query: "status=%zz"},
		{Name: "x", Query: "search=" + strings.Repeat("a", 4000)}, {Name: "x", Query: "search=\x00"}} {
		bad.OwnerID = ada.UserID
		if _, err := s.AddRunView(ctx, bad); !engine.HasCode(err, engine.CodeInvalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if err := s.DeleteRunView(ctx, mine.ViewID); err != nil {
		t.Error(err)
	}
	wantViewError(t, "deleting it again", s.DeleteRunView(ctx, mine.ViewID), store.ErrNotFound)
	_, err = s.RunView(ctx, mine.ViewID)
	wantViewError(t, "reading it then", err, store.ErrNotFound)
}

// ViewsOfDeletedUser deletes a user: what it has shared stays for the others, and is nobody's.
func ViewsOfDeletedUser(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	ada, bob := users(t, s)
	add := func(name string, shared bool) store.RunView {
		t.Helper()
		v := of(bob, name, "search=x")
		v.Shared = shared
		v, err := s.AddRunView(ctx, v)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	shared, other := add("shared", true), add("own", false)
	if err := s.DeleteUser(ctx, bob.UserID, store.ExpectedUser{}); err != nil {
		t.Fatal(err)
	}
	if list, err := s.RunViews(ctx, ada.UserID); err != nil || len(list) != 1 || list[0].ViewID != shared.ViewID {
		t.Errorf("ada sees %+v, %v", list, err)
	}
	_, err := s.RunView(ctx, other.ViewID)
	wantViewError(t, "what bob had not shared", err, store.ErrNotFound)
	left, err := s.RunView(ctx, shared.ViewID)
	if err != nil || left.OwnerID != "" || left.Owner != "bob" || !left.Shared {
		t.Errorf("left: %+v, %v", left, err)
	}
	left.Shared = false
	_, err = s.ChangeRunView(ctx, left)
	wantViewError(t, "kept for nobody", err, store.ErrConflict)
	left.Shared, left.Query = true, "search=y"
	if left, err = s.ChangeRunView(ctx, left); err != nil || left.Query != "search=y" {
		t.Errorf("changed by somebody else: %+v, %v", left, err)
	}
}

// ViewsBound has many tabs make views of one user at once: no more are kept than may be.
func ViewsBound(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	ada, bob := users(t, s)
	var made, refused atomic.Int64
	var each sync.WaitGroup
	for tab := range 8 {
		each.Go(func() {
			for i := range store.MaxRunViews/8 + 2 {
				_, err := s.AddRunView(ctx, of(ada, fmt.Sprint(tab, " ", i), ""))
				switch {
				case err == nil:
					made.Add(1)
				case errors.Is(err, store.ErrConflict):
					refused.Add(1)
				default:
					t.Error(err)
				}
			}
		})
	}
	each.Wait()
	if made.Load() != store.MaxRunViews || refused.Load() != 16 {
		t.Errorf("%d were made, %d refused", made.Load(), refused.Load())
	}
	// Each says the same name: one has it.
	made.Store(0)
	for range 8 {
		each.Go(func() {
			if _, err := s.AddRunView(ctx, of(bob, "the same", "")); err == nil {
				made.Add(1)
			} else if !errors.Is(err, store.ErrConflict) {
				t.Error(err)
			}
		})
	}
	each.Wait()
	if made.Load() != 1 {
		t.Errorf("%d views have one name", made.Load())
	}
}
