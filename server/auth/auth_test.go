package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/keyring"
)

func TestMain(m *testing.M) {
	_ = os.Unsetenv(keyring.KeyEnv)
	os.Exit(pgtest.Main(m))
}

// users answers for one token, as slowly as a test wants.
type users struct {
	Users
	mu      sync.Mutex // of asked, deleted and role: what goes on asks beside a test
	asked   int
	deleted bool
	role    store.Role // of the user; "" is an operator
	during  func()
	down    error
}

func (u *users) UseToken(_ context.Context, kind string, _ [32]byte) (store.Token, store.User, error) {
	u.mu.Lock()
	u.asked++
	deleted, role := u.deleted, cmp.Or(u.role, store.RoleOperator)
	u.mu.Unlock()
	if deleted {
		return store.Token{}, store.User{}, store.ErrNotFound
	}
	if u.down != nil {
		return store.Token{}, store.User{}, u.down
	}
	if u.during != nil {
		u.during()
	}
	return store.Token{TokenID: "t", Kind: kind}, store.User{UserID: "u", Role: role}, nil
}

func (u *users) FindToken(ctx context.Context, kind string, hash [32]byte) (store.Token, store.User, error) {
	return u.UseToken(ctx, kind, hash)
}

func (u *users) ValidTokens(_ context.Context, ids []string) (map[string]store.Role, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asked++
	valid := map[string]store.Role{}
	for _, id := range ids {
		if !u.deleted {
			valid[id] = cmp.Or(u.role, store.RoleOperator)
		}
	}
	return valid, u.down
}

func (u *users) delete() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.deleted = true
}

func (u *users) become(role store.Role) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.role = role
}

func (u *users) DeleteToken(context.Context, string, string) error {
	u.delete()
	return nil
}

func TestCache(t *testing.T) {
	t.Parallel()
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
		time.Sleep(CacheTTL + time.Second)
		u.delete() // by another server
		if err := use(); !engine.HasCode(err, engine.CodeUnauthorized) {
			t.Errorf("after the cache: %v", err)
		}
	})
}

// TestRevocationDuringACheck lets the store's yes arrive after the revocation:
// it must not be remembered.
func TestRevocationDuringACheck(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(3, time.Second)
		for range 3 {
			if l.Wait("a") != 0 {
				t.Fatal("limited too early")
			}
			l.RecordFailure("a")
		}
		if l.Wait("a") != time.Second || l.Wait("b") != 0 {
			t.Errorf("a waits %v, b %v", l.Wait("a"), l.Wait("b"))
		}
		time.Sleep(2 * time.Second)
		if l.Wait("a") != 0 {
			t.Errorf("a waits %v", l.Wait("a"))
		}
		for range 3 {
			l.RecordFailure("a")
		}
		for i := range 3 * maxCallers {
			l.RecordFailure(string(rune(i + 1000)))
		}
		if len(l.callers) > maxCallers {
			t.Errorf("%d callers are remembered", len(l.callers))
		}
		// A flood from ever more addresses neither makes others wait nor wins a new beginning for who has spent a lot.
		if w := l.Wait("a newcomer"); w != 0 {
			t.Errorf("a newcomer to a full limiter waits %v", w)
		}
		if l.Wait("a") == 0 {
			t.Error("a flood of others has made the limiter forget who is to wait")
		}
	})
}

// TestAKnownCallerIsBelievedDuringAStoreOutage holds that who was verified a short
// while ago can act, nobody else, and no one who was revoked.
func TestAKnownCallerIsBelievedDuringAStoreOutage(t *testing.T) {
	t.Parallel()
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
		time.Sleep(GracePeriod)
		if _, err := s.Bearer(t.Context(), known); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("long after: %v", err)
		}
		// An answer of the store counts, as ever.
		u.down = nil
		if _, err := s.Bearer(t.Context(), known); err != nil {
			t.Fatal(err)
		}
		time.Sleep(CacheTTL + time.Second)
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

// EnsureAdmin stands still while the store is away.
func (u *users) EnsureAdmin(ctx context.Context, name string) (store.User, error) {
	if u.down != nil {
		<-ctx.Done()
		return store.User{}, ctx.Err()
	}
	return store.User{UserID: "first", Name: name, Role: store.RoleAdmin}, nil
}

// TestTheOperatorActsWithoutTheStore: who reads the server's own files can stop it in an emergency, and soon.
func TestTheOperatorActsWithoutTheStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := &users{down: store.ErrUnavailable}
		s := New(u, zerolog.Nop())
		secret := s.Operator()
		began := time.Now()
		id, err := s.Bearer(t.Context(), secret)
		if err != nil || id.User.Role != store.RoleAdmin || id.Token.Kind != KindOperator ||
			time.Since(began) > 2*time.Second {
			t.Errorf("%+v, %v after %v", id, err, time.Since(began))
		}
		if _, err := s.Bearer(t.Context(), secret+"x"); !engine.HasCode(err, engine.CodeUnauthorized) {
			t.Errorf("another secret: %v", err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Bearer(gone, secret); err == nil {
			t.Error("a request that is over is answered")
		}
		u.down = nil
		if id, err := s.Bearer(t.Context(), secret); err != nil || id.User.UserID != "first" {
			t.Errorf("with the store: %+v, %v", id, err)
		}
	})
}

// TestEnds: what another server has revoked, or whose user it has given another role, ends with the next Recheck, what
// expires at its time, and what is stopped never.
func TestEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := &users{}
		s := New(u, zerolog.Nop())
		id := Identity{User: store.User{UserID: "u", Role: store.RoleOperator},
			Token: store.Token{TokenID: "t", Kind: KindSession}}
		after := func(id Identity) func() time.Duration {
			began := time.Now()
			ended := make(chan time.Duration, 2)
			stop := s.OnEnd(id, func() { ended <- time.Since(began) })
			return func() time.Duration {
				defer stop()
				select {
				case d := <-ended:
					return d
				case <-time.After(time.Hour):
					return 0
				}
			}
		}
		recheck := func() {
			t.Helper()
			if err := s.Recheck(t.Context()); err != nil {
				t.Error(err)
			}
		}
		recheck()
		expiring := id
		expiring.Token.ExpiresAt = engine.At(time.Now().Add(90 * time.Second))
		if d := after(expiring)(); d != 90*time.Second {
			t.Errorf("what expires after 90 s ends after %v", d)
		}
		if d := after(id)(); d != 0 {
			t.Errorf("what is good ends after %v", d)
		}
		wait := after(id)
		time.Sleep(time.Second)
		u.become(store.RoleViewer) // by another server
		recheck()
		if d := wait(); d != time.Second {
			t.Errorf("what is open to who has another role elsewhere ends after %v", d)
		}
		u.become(store.RoleOperator)
		wait = after(id)
		time.Sleep(time.Second)
		u.delete() // by another server
		recheck()
		if d := wait(); d != time.Second {
			t.Errorf("what was revoked elsewhere ends after %v", d)
		}
		stop := s.OnEnd(id, func() { t.Error("what was stopped ends") })
		stop()
		stop()
		s.InvalidateUser("u")
		time.Sleep(time.Hour)
		if n := len(s.watches); n != 0 {
			t.Errorf("%d are watched still", n)
		}
	})
}

// TestOthersAreRemembered: a recheck asks the store anew about who is not what it was, and about nobody else.
func TestOthersAreRemembered(t *testing.T) {
	t.Parallel()
	u := &users{}
	s := New(u, zerolog.Nop())
	secret, _ := NewSecret(PrefixAPI)
	use := func(asks int) {
		t.Helper()
		before := u.asked
		if _, err := s.Bearer(t.Context(), secret); err != nil || u.asked-before != asks {
			t.Errorf("the store is asked %d times, want %d; %v", u.asked-before, asks, err)
		}
	}
	recheck := func() {
		t.Helper()
		if err := s.Recheck(t.Context()); err != nil {
			t.Error(err)
		}
	}
	use(1)
	recheck()
	use(0)
	u.become(store.RoleViewer)
	recheck()
	use(1)
	recheck()
	use(0)
}
