package auth

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// users answers for one token, as slowly as a test wants.
type users struct {
	store.Users
	asked   int
	deleted bool
	during  func()
	down    error
}

func (u *users) UseToken(_ context.Context, kind string, _ [32]byte) (store.Token, store.User, error) {
	u.asked++
	if u.deleted {
		return store.Token{}, store.User{}, store.ErrNotFound
	}
	if u.down != nil {
		return store.Token{}, store.User{}, u.down
	}
	if u.during != nil {
		u.during()
	}
	return store.Token{TokenID: "t", Kind: kind}, store.User{UserID: "u", Role: store.RoleOperator}, nil
}

func (u *users) DeleteToken(context.Context, string, string) error {
	u.deleted = true
	return nil
}

func TestCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &users{}
		s := New(u, zerolog.Nop())
		secret, _ := NewSecret(PrefixAPI)
		use := func() error {
			_, err := s.Bearer(t.Context(), secret)
			return err
		}
		for range 3 {
			if err := use(); err != nil {
				t.Fatal(err)
			}
		}
		if u.asked != 1 {
			t.Errorf("asked %d times", u.asked)
		}
		time.Sleep(CacheFor + time.Second)
		u.deleted = true // by another server
		if err := use(); !engine.HasCode(err, engine.CodeUnauthorized) {
			t.Errorf("after the cache: %v", err)
		}
	})
}

// TestRevocationDuringACheck lets the store's yes arrive after the revocation:
// it must not be remembered.
func TestRevocationDuringACheck(t *testing.T) {
	u := &users{}
	s := New(u, zerolog.Nop())
	secret, _ := NewSecret(PrefixAPI)
	u.during = func() { _ = s.Revoke(t.Context(), "u", "t") }
	if _, err := s.Bearer(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Bearer(t.Context(), secret); !engine.HasCode(err, engine.CodeUnauthorized) {
		t.Errorf("a revoked token still works: %v", err)
	}
}

func TestGarbageDoesNotReachTheStore(t *testing.T) {
	u := &users{}
	s := New(u, zerolog.Nop())
	for _, secret := range []string{"", "lst_", "lst_x", "lss_" + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		"lst_" + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="} {
		if _, err := s.Bearer(t.Context(), secret); !engine.HasCode(err, engine.CodeUnauthorized) {
			t.Errorf("%q: %v", secret, err)
		}
	}
	if u.asked != 0 {
		t.Errorf("asked %d times", u.asked)
	}
}

func TestLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(3, time.Second)
		for range 3 {
			if l.Wait("a") != 0 {
				t.Fatal("limited too early")
			}
			l.Failed("a")
		}
		if l.Wait("a") != time.Second || l.Wait("b") != 0 {
			t.Errorf("a waits %v, b %v", l.Wait("a"), l.Wait("b"))
		}
		time.Sleep(2 * time.Second)
		if l.Wait("a") != 0 {
			t.Errorf("a waits %v", l.Wait("a"))
		}
		l.Failed("a")
		for i := range 3 * maxCallers {
			l.Failed(string(rune(i + 1000)))
		}
		if len(l.spent) > maxCallers+1 {
			t.Errorf("%d callers are remembered", len(l.spent))
		}
		// Whoever there is no room for waits for what all of them have spent.
		if l.Wait("a newcomer") == 0 {
			t.Error("a newcomer to a full limiter does not wait")
		}
	})
}

// TestAKnownCallerIsBelievedDuringAStoreOutage holds that who was verified a short
// while ago can act, nobody else, and no one who was revoked.
func TestAKnownCallerIsBelievedDuringAStoreOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &users{}
		s := New(u, zerolog.Nop())
		known, _ := NewSecret(PrefixAPI)
		other, _ := NewSecret(PrefixAPI)
		if _, err := s.Bearer(t.Context(), known); err != nil {
			t.Fatal(err)
		}
		u.down = fmt.Errorf("looking up token: %w", store.ErrUnavailable)
		for range 10 {
			time.Sleep(time.Minute)
			if id, err := s.Bearer(t.Context(), known); err != nil || id.User.UserID != "u" {
				t.Fatalf("%+v, %v", id, err)
			}
			if _, err := s.Bearer(t.Context(), other); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("an unknown caller: %v", err)
			}
		}
		time.Sleep(GraceFor)
		if _, err := s.Bearer(t.Context(), known); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("long after: %v", err)
		}
		// An answer of the store counts, as ever.
		u.down = nil
		if _, err := s.Bearer(t.Context(), known); err != nil {
			t.Fatal(err)
		}
		time.Sleep(CacheFor + time.Second)
		u.down = errors.New("a defect")
		if _, err := s.Bearer(t.Context(), known); err == nil {
			t.Error("an error that is no outage was passed over")
		}
		u.down = store.ErrUnavailable
		if _, err := s.Bearer(t.Context(), known); err != nil {
			t.Fatal(err)
		}
		_ = s.Revoke(t.Context(), "u", "t")
		if _, err := s.Bearer(t.Context(), known); err == nil {
			t.Error("a revoked caller is believed")
		}
	})
}
