package postgres_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/keyring"
	"github.com/loadstone-db/loadstone/storage/postgres"
	"github.com/loadstone-db/loadstone/storage/postgres/postgrestest"
)

func openWith(t testing.TB, dsn, key string) *postgres.Store {
	t.Helper()
	t.Setenv(keyring.KeyEnv, "")
	keys, err := keyring.Open(key)
	must(t, err)
	s, err := postgres.Open(t.Context(), dsn, keys)
	must(t, err)
	t.Cleanup(s.Close)
	return s
}

// secrets is a store with one of each thing that is found by the hash of a secret.
type secrets struct {
	dsn                string
	token, share, join [32]byte
}

func newSecrets(t testing.TB, s *postgres.Store, dsn string) secrets {
	t.Helper()
	ctx := t.Context()
	h := secrets{dsn, sha256.Sum256([]byte("token")), sha256.Sum256([]byte("share")), sha256.Sum256([]byte("join"))}
	admin, err := s.EnsureAdmin(ctx, "root")
	must(t, err)
	expires := engine.At(time.Now().Add(time.Hour))
	_, err = s.CreateToken(ctx, store.Token{UserID: admin.UserID, Kind: "api", ExpiresAt: expires}, h.token)
	must(t, err)
	must(t, s.CreateRun(ctx, engine.Run{RunID: "r", ResultID: "r"}))
	_, err = s.CreateShare(ctx, store.Share{RunID: "r", ExpiresAt: expires}, h.share)
	must(t, err)
	_, err = s.CreateNodeToken(ctx, store.NodeToken{TokenID: "n", Uses: 100}, h.join, time.Hour)
	must(t, err)
	return h
}

// check looks for each of them.
func (h secrets) check(t testing.TB, s *postgres.Store, found bool) {
	t.Helper()
	ctx := t.Context()
	if _, _, err := s.UseToken(
		ctx,
		"api",
		h.token,
	); (err == nil) != found ||
		!found && !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the token, to be found %t: %v", found, err)
	}
	if _, err := s.UseShare(ctx, h.share); (err == nil) != found || !found && !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the link, to be found %t: %v", found, err)
	}
	node := store.NodeCertificate{Serial: time.Now().String(), NodeID: "node", ExpiresAt: time.Now().Add(time.Hour)}
	if err := s.AdmitNode(ctx, node, h.join); (err == nil) != found {
		t.Errorf("the join token, to be found %t: %v", found, err)
	}
}

// stored are the hashes as they are in the database.
func (h secrets) stored(t testing.TB) (all [][]byte) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), h.dsn)
	must(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	rows, err := conn.Query(
		t.Context(),
		`SELECT secret_sha256 FROM api_tokens UNION ALL SELECT secret_sha256 FROM run_shares
		UNION ALL SELECT secret_sha256 FROM node_tokens`,
	)
	must(t, err)
	all, err = pgx.CollectRows(rows, pgx.RowTo[[]byte])
	must(t, err)
	return all
}

func newDatabase(t testing.TB) string {
	t.Helper()
	return postgrestest.NewControl(t)
}

// TestHashesAreKeyed: who has the database alone cannot compare guesses, and rows of before work after the upgrade.
func TestHashesAreKeyed(t *testing.T) {
	dsn, key := newDatabase(t), filepath.Join(t.TempDir(), "key")
	s := openWith(t, dsn, key)
	h := newSecrets(t, s, dsn)
	h.check(t, s, true)
	plain := func() (n int) {
		for _, stored := range h.stored(t) {
			for _, sum := range [][32]byte{h.token, h.share, h.join} {
				if bytes.Equal(stored, sum[:]) {
					n++
				}
			}
		}
		return n
	}
	if n := plain(); n != 0 {
		t.Errorf("%d hashes are not keyed", n)
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	must(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	for table, sum := range map[string][32]byte{"api_tokens": h.token, "run_shares": h.share, "node_tokens": h.join} {
		_, err := conn.Exec(t.Context(), "UPDATE "+table+" SET secret_sha256 = $1, hash_key = 0", sum[:])
		must(t, err)
	}
	if n := plain(); n != 3 {
		t.Fatalf("%d rows are as in version 16", n)
	}
	// Several servers start at once after an upgrade.
	t.Setenv(keyring.KeyEnv, "")
	keys, err := keyring.Open(key)
	must(t, err)
	var starting sync.WaitGroup
	for range 4 {
		starting.Go(func() {
			s, err := postgres.Open(t.Context(), dsn, keys)
			if err != nil {
				t.Error(err)
				return
			}
			s.Close()
		})
	}
	starting.Wait()
	if n := plain(); n != 0 {
		t.Errorf("%d hashes are not keyed after the upgrade", n)
	}
	h.check(t, s, true)
}

// asVersion16 is the store as it is after `schema apply`, before any server of this version has opened it.
func (h secrets) asVersion16(t testing.TB) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), h.dsn)
	must(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	for table, sum := range map[string][32]byte{"api_tokens": h.token, "run_shares": h.share, "node_tokens": h.join} {
		_, err := conn.Exec(t.Context(), "UPDATE "+table+" SET secret_sha256 = $1, hash_key = 0", sum[:])
		must(t, err)
	}
	for _, statement := range []string{"DELETE FROM hash_keys", "DELETE FROM key_rotation"} {
		_, err := conn.Exec(t.Context(), statement)
		must(t, err)
	}
}

// TestAWrongKeyRehashesNothing: the first server after an upgrade has to be one of the store. One whose key volume is not
// mounted is refused, however often it is started, and all tokens work with the right key.
func TestAWrongKeyRehashesNothing(t *testing.T) {
	t.Setenv(keyring.KeyEnv, "")
	for name, sealed := range map[string]bool{"with sealed texts": true, "without any": false} {
		t.Run(name, func(t *testing.T) {
			dsn, key, stray := newDatabase(t), filepath.Join(t.TempDir(), "key"), filepath.Join(t.TempDir(), "stray")
			s := openWith(t, dsn, key)
			h := newSecrets(t, s, dsn)
			if sealed {
				_, err := s.SaveSetting(t.Context(), store.Setting{Name: "notifications", Value: []byte(`{}`), Secret: []byte("x")})
				must(t, err)
			}
			h.asVersion16(t)
			before := h.stored(t)
			for range 2 {
				keys, err := keyring.Open(stray)
				must(t, err)
				if _, err := postgres.Open(t.Context(), dsn, keys); !engine.HasCode(err, engine.CodeInvalid) ||
					!strings.Contains(engine.AsError(err).Hint, "--lost-key") {
					t.Fatalf("with a stray key: %v", err)
				}
				if _, err := os.Stat(stray); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("the stray key stays: %v", err)
				}
			}
			if after := h.stored(t); !slices.EqualFunc(before, after, bytes.Equal) {
				t.Error("tokens were hashed again")
			}
			h.check(t, openWith(t, dsn, key), true)
		})
	}
}

// TestWhoLacksTheSealingKeyIsRefused: it would seal what no other server opens, and count guesses by itself.
func TestWhoLacksTheSealingKeyIsRefused(t *testing.T) {
	ctx, dsn, key := t.Context(), newDatabase(t), filepath.Join(t.TempDir(), "key")
	s := openWith(t, dsn, key)
	h := newSecrets(t, s, dsn)
	stray, err := keyring.Open(filepath.Join(t.TempDir(), "stray"))
	must(t, err)
	_, err = postgres.Open(ctx, dsn, stray)
	if !engine.HasCode(err, engine.CodeInvalid) || !strings.Contains(err.Error(), "which this process lacks") {
		t.Fatalf("without the key that seals: %v", err)
	}
	// Who looks after the keys may look, and changes nothing.
	looking, err := postgres.OpenUnproved(ctx, dsn, stray)
	must(t, err)
	defer looking.Close()
	if r, err := looking.KeyRotation(ctx); err != nil || stray.Has(r.Sealing) {
		t.Errorf("%+v, %v", r, err)
	}
	conn, err := pgx.Connect(ctx, dsn)
	must(t, err)
	defer conn.Close(context.WithoutCancel(ctx))
	var keys int
	must(t, conn.QueryRow(ctx, "SELECT count(*) FROM hash_keys").Scan(&keys))
	if keys != 1 {
		t.Errorf("%d hash keys", keys)
	}
	h.check(t, s, true)
	// A key file that has lost its key does not have a server seal under another one.
	other, err := keyring.Open(filepath.Join(t.TempDir(), "other"))
	must(t, err)
	text, err := os.ReadFile(other.Path())
	must(t, err)
	must(t, os.WriteFile(key, text, 0o600))
	if err := s.AnnounceKeys(ctx, "one"); err == nil || !strings.Contains(err.Error(), "has lost the key") {
		t.Errorf("a key file with another key: %v", err)
	}
	servers, err := s.KeyServers(ctx)
	must(t, err)
	if len(servers) != 1 || slices.Contains(servers[0].Keys, other.FirstID()) {
		t.Errorf("servers: %v", servers)
	}
}

// TestHashKeysOfOtherServersAreFound without a restart.
func TestHashKeysOfOtherServersAreFound(t *testing.T) {
	ctx, dsn, key := t.Context(), newDatabase(t), filepath.Join(t.TempDir(), "key")
	s := openWith(t, dsn, key)
	conn, err := pgx.Connect(ctx, dsn)
	must(t, err)
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, "DELETE FROM hash_keys")
	must(t, err)
	other := openWith(t, dsn, key)
	h := newSecrets(t, other, dsn)
	h.check(t, s, false)
	must(t, s.AnnounceKeys(ctx, "one"))
	h.check(t, s, true)
}

// TestALostKeyIsSaid: a server without the key, after it was given up, finds none of the tokens and says so; they work
// again once it is back.
func TestALostKeyIsSaid(t *testing.T) {
	dsn, key := newDatabase(t), filepath.Join(t.TempDir(), "key")
	s := openWith(t, dsn, key)
	if lost := s.LostKeys(); len(lost) != 0 {
		t.Errorf("lost: %v", lost)
	}
	h := newSecrets(t, s, dsn)
	conn, err := pgx.Connect(t.Context(), dsn)
	must(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	_, err = conn.Exec(t.Context(), "DELETE FROM key_rotation")
	must(t, err)
	fresh := filepath.Join(t.TempDir(), "other")
	keys, err := keyring.Open(fresh)
	must(t, err)
	unproved, err := postgres.OpenUnproved(t.Context(), dsn, keys)
	must(t, err)
	defer unproved.Close()
	_, err = unproved.NameSealingKey(t.Context())
	must(t, err)
	other := openWith(t, dsn, fresh)
	if lost := other.LostKeys(); len(lost) != 1 {
		t.Errorf("lost: %v", lost)
	}
	h.check(t, other, false)
	for _, file := range []string{key, fresh} {
		line, err := os.ReadFile(file)
		must(t, err)
		both, err := os.OpenFile(filepath.Join(filepath.Dir(fresh), "both"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		must(t, err)
		_, err = both.Write(line)
		must(t, errors.Join(err, both.Close()))
	}
	h.check(t, openWith(t, dsn, filepath.Join(filepath.Dir(fresh), "both")), true)
}
