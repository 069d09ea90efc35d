package auth

import (
	"context"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres"
	"github.com/loadstone-db/loadstone/storage/postgres/postgrestest"
)

func TestPasswords(t *testing.T) {
	t.Parallel()
	const right = "correct horse battery"
	hash := hashPassword(secret.New(right))
	if !strings.HasPrefix(hash, "$argon2id$v=19$m=19456,t=2,p=1$") || hash == hashPassword(secret.New(right)) {
		t.Errorf("hash %s", hash)
	}
	if !matchesPassword(hash, secret.New(right)) {
		t.Error("the password is not the password")
	}
	for _, wrong := range []string{"", "Correct horse battery", right + " ", strings.Repeat("x", 1<<20)} {
		if matchesPassword(hash, secret.New(wrong)) {
			t.Errorf("%.30q is the password", wrong)
		}
	}
	// From the tests of the reference implementation, with another cost.
	const theirs = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	if !matchesPassword(theirs, secret.New("password")) || matchesPassword(theirs, secret.New("passwort")) {
		t.Error("what the reference implementation has written is not read")
	}
	for _, broken := range []string{"$argon2id$v=19$m=19456,t=2,p=1$$",
		"$argon2id$v=19$m=4294967295,t=2,p=1$c29tZXNhbHQ$" +
			strings.Repeat("A", 43), "$2a$10$abc", "$argon2id$v=19$m=0,t=0,p=0$c29tZXNhbHQ$AAAA", "$$$$$"} {
		if matchesPassword(broken, secret.New(right)) {
			t.Errorf("%s is a hash", broken)
		}
	}
	if matchesPassword("", secret.New("")) || matchesPassword("", secret.New(right)) ||
		matchesPassword(dummyHash, secret.New(right)) {
		t.Error("who has no password is let in")
	}
}

func TestCheckPassword(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{"correct horse battery": true, "eleven char": false, "aaaaaaaaaaaaaa": false,
		"ada@example.com": false, "ada@example.com and a horse": true, strings.Repeat("ü", 12): false,
		"zwölf Zeichen": true, strings.Repeat("word ", 50): false, "bad \xff utf-8 text": false} {
		err := checkPassword("password", "ada@example.com", secret.New(text))
		if (err == nil) != ok || err != nil && !engine.HasCode(err, engine.CodeInvalid) {
			t.Errorf("%.30q: %v", text, err)
		}
	}
}

// concurrentChange changes a user between two looks at its password.
type concurrentChange struct {
	Users
	looks  int
	change func()
}

func (m *concurrentChange) UserCredentials(ctx context.Context, name string) (store.User, string, error) {
	u, hash, err := m.Users.UserCredentials(ctx, name)
	if m.looks++; m.looks == 1 {
		m.change()
	}
	return u, hash, err
}

// TestASignInBesideAnotherPassword: while a password is compared the user gets another, or is locked out. No session
// is begun by the old one.
func TestASignInBesideAnotherPassword(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(s *postgres.Store, id string) error{
		"another password": func(s *postgres.Store, id string) error {
			return s.SetPassword(t.Context(), id, hashPassword(secret.New("another horse battery")))
		},
		"locked out": func(s *postgres.Store, id string) error {
			gone := true
			_, _, err := s.ChangeUser(t.Context(), id, store.UserChange{Disabled: &gone})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			db, _ := postgrestest.Open(t)
			u, err := db.CreateUser(t.Context(), "ada", store.RoleViewer)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = db.EnsureAdmin(t.Context(), "admin"); err != nil {
				t.Fatal(err)
			}
			if err = db.SetPassword(t.Context(), u.UserID, hashPassword(secret.New("correct horse battery"))); err != nil {
				t.Fatal(err)
			}
			s := New(&concurrentChange{Users: db, change: func() { err = change(db, u.UserID) }}, zerolog.Nop())
			_, _, refused := s.SignInWithPassword(t.Context(), "ada", secret.New("correct horse battery"), "")
			if err != nil || !engine.HasCode(refused, engine.CodeUnauthorized) {
				t.Errorf("signed in: %v, %v", refused, err)
			}
			left, err := db.ListTokens(t.Context(), u.UserID, KindSession)
			if err != nil || len(left) != 0 {
				t.Errorf("sessions %+v %v", left, err)
			}
		})
	}
}
