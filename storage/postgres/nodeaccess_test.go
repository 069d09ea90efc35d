package postgres_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/keyring"
	"github.com/loadstone-db/loadstone/storage/postgres"
)

func certificateOf(serial, node string, key byte) store.NodeCertificate {
	return store.NodeCertificate{Serial: serial, NodeID: node, Key: [32]byte{key}, ExpiresAt: time.Now().Add(time.Hour)}
}

func TestAServersAuthorityIsOneAndSealed(t *testing.T) {
	t.Parallel()
	s, dsn := open(t)
	var made sync.Map
	var work sync.WaitGroup
	got := make([]store.NodeAuthority, 4)
	for n := range got {
		work.Go(func() {
			var err error
			got[n], err = s.EnsureNodeAuthority(t.Context(), func() (store.NodeAuthority, error) {
				made.Store(n, true)
				return store.NodeAuthority{Certificate: []byte{byte(n)}, Key: []byte("very secret key")}, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	for _, a := range got {
		if a.Certificate[0] != got[0].Certificate[0] || string(a.Key) != "very secret key" {
			t.Errorf("%+v and %+v", a, got[0])
		}
	}
	var sealed string
	if err := connect(t, dsn).QueryRow(t.Context(), "SELECT key_sealed FROM node_authority").Scan(&sealed); err != nil ||
		strings.Contains(sealed, "secret") {
		t.Errorf("in the database: %q, %v", sealed, err)
	}
	keys, err := keyring.Open(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := postgres.OpenUnproved(t.Context(), dsn, keys)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.EnsureNodeAuthority(t.Context(), nil); !engine.HasCode(err, engine.CodeInvalid) ||
		!strings.Contains(err.Error(), keyring.KeyEnv) {
		t.Errorf("a server with another key: %v", err)
	}
}

// TestATokenIsItsAdmins: nobody joins by the token of who is locked out, demoted or deleted.
func TestATokenIsItsAdmins(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	ctx := t.Context()
	_, err := s.EnsureAdmin(ctx, "root")
	must(t, err)
	for i, end := range []func(u store.User) error{
		func(store.User) error { return nil },
		func(u store.User) error {
			role := store.RoleOperator
			_, _, err := s.ChangeUser(ctx, u.UserID, store.UserChange{Role: &role})
			return err
		},
		func(u store.User) error { return s.DeleteUser(ctx, u.UserID, store.ExpectedUser{}) },
	} {
		u, err := s.CreateUser(ctx, fmt.Sprint("admin-", i), store.RoleAdmin)
		must(t, err)
		secret := [32]byte{byte(i + 1)}
		_, err = s.CreateNodeToken(ctx, store.NodeToken{TokenID: fmt.Sprint("t", i), Uses: 9, CreatedBy: u.Name,
			CreatedByID: u.UserID}, secret, time.Hour)
		must(t, err)
		must(t, end(u))
		err = s.AdmitNode(ctx, store.NodeCertificate{Serial: fmt.Sprint(i), NodeID: fmt.Sprint("n", i), Key: secret,
			ExpiresAt: time.Now().Add(time.Hour)}, secret)
		if refused := engine.HasCode(err, engine.CodeForbidden) &&
			strings.Contains(err.Error(), "is void"); refused != (i > 0) ||
			i == 0 && err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
}

func TestANodesTokenIsUsedOnce(t *testing.T) {
	t.Parallel()
	s, dsn := open(t)
	ctx := t.Context()
	token := func(id byte, uses int, valid time.Duration) [32]byte {
		made, err := s.CreateNodeToken(ctx, store.NodeToken{TokenID: string('a' + rune(id)), Uses: uses, CreatedBy: "u"},
			[32]byte{id}, valid)
		if err != nil || made.Used != 0 || made.ExpiresAt.Sub(made.CreatedAt.Time) != valid {
			t.Fatalf("%+v, %v", made, err)
		}
		return [32]byte{id}
	}
	refused := func(what string, err error, words string) {
		t.Helper()
		var e *engine.Error
		if !errors.As(err, &e) || !strings.Contains(e.Message, words) || e.Hint == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
	one, two, three := token(1, 1, time.Hour), token(2, 2, time.Hour), token(3, 1, time.Hour)
	refused("an unknown token", s.AdmitNode(ctx, certificateOf("0", "n", 1), [32]byte{9}), "not known")
	// Both at once: one of them is late.
	errs := make([]error, 2)
	var work sync.WaitGroup
	for n, name := range []string{"first", "second"} {
		work.Go(func() { errs[n] = s.AdmitNode(ctx, certificateOf(name, name, byte(n)), one) })
	}
	work.Wait()
	if (errs[0] == nil) == (errs[1] == nil) {
		t.Fatalf("%v and %v", errs[0], errs[1])
	}
	refused("a used token", errors.Join(errs...), "used before")
	// The same node asks again, with the same key: the answer was lost.
	again := certificateOf("again", "first", 0)
	if errs[0] != nil {
		again = certificateOf("again", "second", 1)
	}
	if err := s.AdmitNode(ctx, again, one); err != nil {
		t.Error(err)
	}
	again.Serial, again.Key = "other key", [32]byte{7}
	refused("its name with another key", s.AdmitNode(ctx, again, two), "Another node has the name")
	for serial, err := range map[string]error{"t1": nil, "t2": nil} {
		if got := s.AdmitNode(ctx, certificateOf(serial, serial, 5), two); !errors.Is(got, err) {
			t.Errorf("%s of a token for two: %v", serial, got)
		}
	}
	refused("a third", s.AdmitNode(ctx, certificateOf("t3", "t3", 5), two), "used before")
	if _, err := connect(t, dsn).Exec(ctx, "UPDATE node_tokens SET expires_at = now() WHERE token_id = 'd'"); err != nil {
		t.Fatal(err)
	}
	refused("an expired token", s.AdmitNode(ctx, certificateOf("late", "late", 1), three), "expired")
}

func TestARevokedNodeIsNotRenewed(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	ctx := t.Context()
	for n := range byte(2) {
		if _, err := s.CreateNodeToken(ctx, store.NodeToken{TokenID: string('a' + rune(n)), Uses: 1}, [32]byte{n},
			time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.AdmitNode(ctx, certificateOf("1", "n", 1), [32]byte{0}); err != nil {
		t.Fatal(err)
	}
	if err := s.RenewNode(ctx, certificateOf("2", "n", 1), "1"); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]store.NodeCertificate{"another key": certificateOf("3", "n", 2),
		"another name": certificateOf("3", "m", 1)} {
		if err := s.RenewNode(ctx, c, "1"); !engine.HasCode(err, engine.CodeForbidden) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if none, err := s.RevokedNodes(ctx); err != nil || len(none) != 0 {
		t.Errorf("revoked: %v, %v", none, err)
	}
	for range 2 { // twice is as good as once
		if err := s.RevokeNode(ctx, "n", "u"); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.RevokeNode(ctx, "m", "u"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an unknown one: %v", err)
	}
	if both, err := s.RevokedNodes(ctx); err != nil || len(both) != 2 {
		t.Errorf("revoked: %v, %v", both, err)
	}
	if err := s.RenewNode(ctx, certificateOf("4", "n", 1), "2"); !engine.HasCode(err, engine.CodeForbidden) {
		t.Errorf("a revoked certificate was renewed: %v", err)
	}
	// Its token is no way back, another is, also with another key.
	if err := s.AdmitNode(ctx, certificateOf("5", "n", 1), [32]byte{0}); err == nil {
		t.Error("the token of a revoked node lets it in again")
	}
	if err := s.AdmitNode(ctx, certificateOf("6", "n", 2), [32]byte{1}); err != nil {
		t.Error(err)
	}
	if both, err := s.RevokedNodes(ctx); err != nil || len(both) != 2 {
		t.Errorf("revoked after it has joined again: %v, %v", both, err)
	}
}

func TestTheCatalogOfNodesIsShared(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	ctx := t.Context()
	for _, address := range []string{"b:9090", "a:9090"} {
		if a, err := s.AddNodeAddress(ctx, address, "u"); err != nil || a.Address != address || a.AddedBy != "u" {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	if _, err := s.AddNodeAddress(ctx, "a:9090", "v"); !errors.Is(err, store.ErrConflict) {
		t.Errorf("twice: %v", err)
	}
	if err := s.RemoveNodeAddress(ctx, "b:9090"); err != nil {
		t.Error(err)
	}
	if err := s.RemoveNodeAddress(ctx, "b:9090"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("one that is not there: %v", err)
	}
	if all, err := s.NodeAddresses(ctx); err != nil || len(all) != 1 || all[0].Address != "a:9090" {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestARevocationBesideARenewalEndsWhatWasRenewed: it waits for the renewal that it has met.
func TestARevocationBesideARenewalEndsWhatWasRenewed(t *testing.T) {
	t.Parallel()
	s, dsn := open(t)
	ctx := t.Context()
	if _, err := s.CreateNodeToken(ctx, store.NodeToken{TokenID: "a", Uses: 1}, [32]byte{0}, time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := s.AdmitNode(ctx, certificateOf("1", "n", 1), [32]byte{0}); err != nil {
		t.Fatal(err)
	}
	// The renewal stands still before it is committed: a key of its row is taken by somebody else.
	other := connect(t, dsn)
	tx, err := other.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, `INSERT INTO node_certificates (serial, node_id, key_sha256, token_id, expires_at)
		VALUES ('2', 'x', decode(repeat('00', 32), 'hex'), '', now())`); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 2)
	go func() { ended <- s.RenewNode(ctx, certificateOf("2", "n", 1), "1") }()
	waiting := func(n int) {
		t.Helper()
		watch := connect(t, dsn)
		for range 6000 {
			var held int
			if err := watch.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
				AND wait_event_type = 'Lock'`).Scan(&held); err != nil {
				t.Fatal(err)
			}
			if held == n {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Fatalf("there are not %d that wait", n)
	}
	waiting(1)
	go func() { ended <- s.RevokeNode(ctx, "n", "u") }()
	waiting(2)
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	if both, err := s.RevokedNodes(ctx); err != nil || len(both) != 2 {
		t.Errorf("revoked: %v, %v", both, err)
	}
}

// TestARevokedNodeDoesNotJoinAgainByItsToken, whatever uses are left, with another key or name.
func TestARevokedNodeDoesNotJoinAgainByItsToken(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	ctx := t.Context()
	for n := range byte(2) {
		if _, err := s.CreateNodeToken(ctx, store.NodeToken{TokenID: string('a' + rune(n)), Uses: 100}, [32]byte{n},
			time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.AdmitNode(ctx, certificateOf("1", "n", 1), [32]byte{0}); err != nil {
		t.Fatal(err)
	}
	if err := s.RenewNode(ctx, certificateOf("2", "n", 1), "1"); err != nil {
		t.Fatal(err)
	}
	if err := s.RevokeNode(ctx, "n", "u"); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]store.NodeCertificate{"itself": certificateOf("3", "n", 1),
		"another key": certificateOf("4", "n", 2), "another name": certificateOf("5", "m", 3)} {
		if err := s.AdmitNode(ctx, c, [32]byte{0}); !engine.HasCode(err, engine.CodeForbidden) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := s.AdmitNode(ctx, certificateOf("6", "n", 2), [32]byte{1}); err != nil {
		t.Errorf("by a token that it did not have: %v", err)
	}
}

// TestATokenIsListedAndEnded: those by which nodes can join now, without their secrets.
func TestATokenIsListedAndEnded(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	ctx := t.Context()
	for n, of := range []struct {
		uses  int
		valid time.Duration
	}{{1, time.Hour}, {2, time.Hour}, {5, time.Millisecond}} {
		if _, err := s.CreateNodeToken(ctx, store.NodeToken{TokenID: string('a' + rune(n)), Uses: of.uses, CreatedBy: "u"},
			[32]byte{byte(n)}, of.valid); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(2 * time.Millisecond)
	listed := func() (ids string) {
		t.Helper()
		all, err := s.NodeTokens(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, tok := range all {
			ids += tok.TokenID
			if tok.CreatedBy != "u" || tok.ExpiresAt.Sub(tok.CreatedAt.Time) != time.Hour {
				t.Errorf("%+v", tok)
			}
		}
		return ids
	}
	if got := listed(); got != "ba" {
		t.Errorf("listed: %s", got)
	}
	for n, key := range []byte{1, 2} {
		if err := s.AdmitNode(ctx, certificateOf(string('1'+rune(n)), string('m'+rune(n)), key),
			[32]byte{key - 1}); err != nil {
			t.Fatal(err)
		}
	}
	if got := listed(); got != "b" { // a is used up
		t.Errorf("listed: %s", got)
	}
	for range 2 { // repeated, it is the same
		if err := s.RevokeNodeToken(ctx, "b"); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.AdmitNode(ctx, certificateOf("3", "o", 3), [32]byte{1}); !engine.HasCode(err, engine.CodeForbidden) ||
		listed() != "" {
		t.Errorf("after its end: %v, listed %q", err, listed())
	}
	if err := s.RenewNode(ctx, certificateOf("4", "n", 2), "2"); err != nil {
		t.Errorf("who has joined before: %v", err)
	}
	if err := s.RevokeNodeToken(ctx, "z"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("of no token: %v", err)
	}
}
