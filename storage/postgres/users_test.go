package postgres_test

import (
	"crypto/sha256"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres"
)

func makeUser(t *testing.T, s *postgres.Store) (admin, ada, eve store.User) {
	t.Helper()
	admin, err := s.EnsureAdmin(t.Context(), "admin")
	must(t, err)
	ada, err = s.CreateUser(t.Context(), "Ada", store.RoleOperator)
	must(t, err)
	eve, err = s.CreateUser(t.Context(), "eve@example.com", store.RoleViewer)
	must(t, err)
	return admin, ada, eve
}

// Users checks how users come, change and go.
func Users(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	_, ada, eve := makeUser(t, s)
	if ada.UserID == "" || ada.Role != store.RoleOperator || ada.HasPassword || ada.CreatedAt.IsZero() ||
		!ada.DisabledAt.IsZero() || !ada.LastSeenAt.IsZero() {
		t.Errorf("a new user: %+v", ada)
	}
	_, err := s.CreateUser(ctx, "ADA", store.RoleViewer)
	wantError(t, err, store.ErrConflict)
	var e *engine.Error
	if !errors.As(err, &e) || len(e.Fields) != 1 || e.Fields[0].Field != "name" {
		t.Errorf("a name that is taken: %v", err)
	}
	for _, name := range []string{"", "a b", "x\u202ey", "tab\t", strings.Repeat("n", 65), "<b>", "nul\x00", "\xff"} {
		if _, err := s.CreateUser(ctx, name, store.RoleViewer); !engine.HasCode(err, engine.CodeInvalid) {
			t.Errorf("the name %q: %v", name, err)
		}
	}
	if _, err := s.CreateUser(ctx, "root", "root"); !engine.HasCode(err, engine.CodeInvalid) {
		t.Errorf("a role that is none: %v", err)
	}
	viewer, gone := store.RoleViewer, true
	changed, before, err := s.ChangeUser(ctx, ada.UserID, store.UserChange{Role: &viewer})
	must(t, err)
	if changed.Role != store.RoleViewer || !changed.DisabledAt.IsZero() || changed.Name != "Ada" ||
		before.Role != store.RoleOperator || before.UserID != ada.UserID {
		t.Errorf("changed: %+v, before %+v", changed, before)
	}
	changed, before, err = s.ChangeUser(ctx, ada.UserID, store.UserChange{Disabled: &gone})
	must(t, err)
	if changed.Role != store.RoleViewer || changed.DisabledAt.IsZero() || !before.DisabledAt.IsZero() {
		t.Errorf("locked out: %+v, before %+v", changed, before)
	}
	again, _, err := s.ChangeUser(ctx, ada.UserID, store.UserChange{Disabled: &gone})
	must(t, err)
	if !again.DisabledAt.Equal(changed.DisabledAt.Time) {
		t.Error("locked out twice, the later time counts")
	}
	none := store.Role("")
	if _, _, err = s.ChangeUser(ctx, ada.UserID, store.UserChange{Role: &none}); !engine.HasCode(err,
		engine.CodeInvalid) {
		t.Errorf("no role: %v", err)
	}
	_, _, err = s.ChangeUser(ctx, "nobody", store.UserChange{Disabled: &gone})
	wantError(t, err, store.ErrNotFound)
	list, err := s.ListUsers(ctx)
	must(t, err)
	if len(list) != 3 || list[0].Name != "Ada" || list[0].DisabledAt.IsZero() || list[1].Name != "admin" ||
		list[2].UserID != eve.UserID {
		t.Errorf("users %+v", list)
	}
	must(t, s.DeleteUser(ctx, eve.UserID, store.ExpectedUser{}))
	wantError(t, s.DeleteUser(ctx, eve.UserID, store.ExpectedUser{}), store.ErrNotFound)
	if list, err = s.ListUsers(ctx); err != nil || len(list) != 2 {
		t.Errorf("after a deletion: %+v, %v", list, err)
	}
}

// SignIn checks what lets users in: passwords, sessions, invitations.
func SignIn(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	admin, ada, eve := makeUser(t, s)
	hash := func(text string) [32]byte { return sha256.Sum256([]byte(text)) }
	give := func(u store.User, kind, secret string) {
		t.Helper()
		_, err := s.CreateToken(ctx, store.Token{UserID: u.UserID, Kind: kind,
			ExpiresAt: engine.At(time.Now().Add(time.Hour))}, hash(secret))
		must(t, err)
	}
	known := func(kind, secret string) bool {
		t.Helper()
		_, _, err := s.UseToken(ctx, kind, hash(secret))
		if err != nil {
			wantError(t, err, store.ErrNotFound)
		}
		return err == nil
	}
	if u, secret, err := s.UserCredentials(ctx, "ada"); err != nil || secret != "" || u.UserID != ada.UserID {
		t.Errorf("before a password: %+v %q %v", u, secret, err)
	}
	_, _, err := s.UserCredentials(ctx, "nobody\x00")
	wantError(t, err, store.ErrNotFound)
	give(ada, "session", "s1")
	give(ada, "api", "a1")
	give(eve, "session", "s2")
	give(ada, "invite", "i1")
	give(eve, "invite", "i2")
	give(ada, "invite", "i3")
	if known("invite", "i1") {
		t.Error("an older invitation works")
	}
	if !known("invite", "i2") || known("invite", "i2") {
		t.Error("an invitation works other than once")
	}
	must(t, s.SetPassword(ctx, ada.UserID, "$argon2id$one"))
	wantError(t, s.SetPassword(ctx, "nobody", "x"), store.ErrNotFound)
	if known("session", "s1") || known("invite", "i3") || !known("api", "a1") || !known("session", "s2") {
		t.Error("a new password ends the user's sessions and invitations, and nothing else")
	}
	u, secret, err := s.UserCredentials(ctx, "ADA")
	if err != nil || secret != "$argon2id$one" || !u.HasPassword || u.LastSeenAt.IsZero() {
		t.Errorf("with a password: %+v %q %v", u, secret, err)
	}
	gone, back := true, false
	_, _, err = s.ChangeUser(ctx, ada.UserID, store.UserChange{Disabled: &gone})
	must(t, err)
	_, _, err = s.UserCredentials(ctx, "ada")
	wantError(t, err, store.ErrNotFound)
	give(ada, "invite", "i4")
	if known("api", "a1") || known("invite", "i4") {
		t.Error("who is locked out is let in by a token")
	}
	_, _, err = s.ChangeUser(ctx, ada.UserID, store.UserChange{Disabled: &back})
	must(t, err)
	if !known("api", "a1") {
		t.Error("who is let in again is not known by its token")
	}
	must(t, s.DeleteUser(ctx, ada.UserID, store.ExpectedUser{}))
	if known("api", "a1") {
		t.Error("the token of a user who is deleted works")
	}
	_, err = s.CreateToken(ctx, store.Token{UserID: ada.UserID, Kind: "api"}, hash("late"))
	wantError(t, err, store.ErrNotFound)
	give(admin, "signin", "link")
	if !known("signin", "link") {
		t.Error("the sign-in link does not work")
	}
}

// Roles checks that of those who change the role of a user that they all saw alike one does, and the others are told.
func Roles(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	_, ada, _ := makeUser(t, s)
	viewer, admin := store.RoleViewer, store.RoleAdmin
	oneWins(t, func() error {
		_, _, err := s.ChangeUser(
			ctx,
			ada.UserID,
			store.UserChange{Role: &viewer, Expected: store.ExpectedUser{Role: &ada.Role}},
		)
		return err
	})
	locked := true
	_, _, err := s.ChangeUser(
		ctx,
		ada.UserID,
		store.UserChange{Disabled: &locked, Expected: store.ExpectedUser{Role: &admin}},
	)
	wantError(t, err, store.ErrConflict)
	now, before, err := s.ChangeUser(
		ctx,
		ada.UserID,
		store.UserChange{Role: &admin, Expected: store.ExpectedUser{Role: &viewer}},
	)
	must(t, err)
	if before.Role != viewer || now.Role != admin || !now.DisabledAt.IsZero() {
		t.Errorf("%+v, before %+v", now, before)
	}
	// So it is of those who lock a user out, let it in again, or delete it.
	in := false
	for _, from := range []*bool{&in, &locked, &in} {
		to := !*from
		oneWins(t, func() error {
			_, _, err := s.ChangeUser(ctx, ada.UserID, store.UserChange{Disabled: &to,
				Expected: store.ExpectedUser{Role: &admin, Disabled: from}})
			return err
		})
	}
	wantError(
		t,
		s.DeleteUser(ctx, ada.UserID, store.ExpectedUser{Role: &viewer, Disabled: &locked}),
		store.ErrConflict,
	)
	wantError(t, s.DeleteUser(ctx, ada.UserID, store.ExpectedUser{Role: &admin, Disabled: &in}), store.ErrConflict)
	if known := named(t, s, ada.UserID); known.Role != admin || known.DisabledAt.IsZero() {
		t.Errorf("after refusals: %+v", known)
	}
	must(t, s.DeleteUser(ctx, ada.UserID, store.ExpectedUser{Role: &admin, Disabled: &locked}))
}

// named is a user as it is listed.
func named(t *testing.T, s *postgres.Store, id string) store.User {
	t.Helper()
	list, err := s.ListUsers(t.Context())
	must(t, err)
	for _, u := range list {
		if u.UserID == id {
			return u
		}
	}
	t.Fatalf("no user %s", id)
	return store.User{}
}

// LastAdmin checks that one admin stays, whoever takes admins away at once.
func LastAdmin(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	first, err := s.EnsureAdmin(ctx, "admin")
	must(t, err)
	viewer, gone := store.RoleViewer, true
	_, _, err = s.ChangeUser(ctx, first.UserID, store.UserChange{Role: &viewer})
	wantError(t, err, store.ErrConflict)
	_, _, err = s.ChangeUser(ctx, first.UserID, store.UserChange{Disabled: &gone})
	wantError(t, err, store.ErrConflict)
	wantError(t, s.DeleteUser(ctx, first.UserID, store.ExpectedUser{}), store.ErrConflict)
	admins := []store.User{first}
	for _, name := range []string{"b", "c", "d", "e", "f"} {
		u, err := s.CreateUser(ctx, name, store.RoleAdmin)
		must(t, err)
		admins = append(admins, u)
	}
	var wait sync.WaitGroup
	for i, u := range admins {
		wait.Go(func() {
			var err error
			switch i % 3 {
			case 0:
				_, _, err = s.ChangeUser(ctx, u.UserID, store.UserChange{Role: &viewer})
			case 1:
				_, _, err = s.ChangeUser(ctx, u.UserID, store.UserChange{Disabled: &gone})
			default:
				err = s.DeleteUser(ctx, u.UserID, store.ExpectedUser{})
			}
			if err != nil {
				wantError(t, err, store.ErrConflict)
			}
		})
	}
	wait.Wait()
	list, err := s.ListUsers(ctx)
	must(t, err)
	left := 0
	for _, u := range list {
		if u.Role == store.RoleAdmin && u.DisabledAt.IsZero() {
			left++
		}
	}
	if left != 1 {
		t.Errorf("%d admins are left of six who were taken away: %+v", left, list)
	}
	back, err := s.EnsureAdmin(ctx, "admin")
	if err != nil || back.Role != store.RoleAdmin || !back.DisabledAt.IsZero() {
		t.Errorf("the first admin: %+v %v", back, err)
	}
}

// External makes users of a provider, gives them other roles, and keeps the last admin and the names of others.
func External(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	admin, ada, _ := makeUser(t, s)
	u, changed, err := s.ExternalUser(ctx, "https://idp 1", "zoe", store.RoleOperator)
	must(t, err)
	if changed || u.Name != "zoe" || u.Role != store.RoleOperator || !u.External || u.HasPassword {
		t.Errorf("made %+v, %t", u, changed)
	}
	if _, _, err := s.ExternalUser(ctx, "https://idp 1", "two words", store.RoleAdmin); err == nil {
		t.Error("a name that cannot be used is taken")
	}
	again, changed, err := s.ExternalUser(ctx, "https://idp 1", "another", store.RoleAdmin)
	must(t, err)
	if !changed || again.UserID != u.UserID || again.Name != "zoe" || again.Role != store.RoleAdmin {
		t.Errorf("again %+v, %t", again, changed)
	}
	if _, changed, err = s.ExternalUser(ctx, "https://idp 1", "zoe", store.RoleAdmin); err != nil || changed {
		t.Errorf("the same role: %t, %v", changed, err)
	}
	_, _, err = s.ExternalUser(ctx, "https://idp 2", "ADA", store.RoleViewer)
	wantError(t, err, store.ErrConflict)
	must(t, s.DeleteUser(ctx, admin.UserID, store.ExpectedUser{}))
	_, _, err = s.ExternalUser(ctx, "https://idp 1", "zoe", store.RoleViewer)
	wantError(t, err, store.ErrConflict) // the last admin
	list, err := s.ListUsers(ctx)
	must(t, err)
	for _, o := range list {
		if o.External != (o.UserID == u.UserID) || o.UserID == u.UserID && o.Role != store.RoleAdmin ||
			o.UserID == ada.UserID && o.Role != store.RoleOperator {
			t.Errorf("listed %+v", o)
		}
	}
	_, err = s.CreateToken(ctx, store.Token{UserID: u.UserID, Kind: "session"}, sha256.Sum256([]byte("x")))
	must(t, err)
	if _, o, err := s.UseToken(ctx, "session", sha256.Sum256([]byte("x"))); err != nil || !o.External {
		t.Errorf("by a token: %+v, %v", o, err)
	}
}
