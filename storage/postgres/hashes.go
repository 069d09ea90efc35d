package postgres

import (
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/storage/keyring"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// hashKeyContext binds the sealed keys of keyed hashes.
const hashKeyContext = "hash-key"

// hashKeyLock is the key of the advisory lock under which a hash key is made and rows are hashed again.
const hashKeyLock = 0x68617368 // "hash"

// The purposes of keyed hashes, each with a key of its own: a hash of one table means nothing in another.
const (
	tokenHash     = "api_tokens"
	shareHash     = "run_shares"
	joinTokenHash = "node_tokens"
	guessHash     = "guess_counts"
)

// hashes computes the keyed hashes of tokens and links. What reaches it is the SHA-256 of a secret; what is stored is
// the HMAC of that, under a key that is sealed in the store under the servers' key. So rows of before were hashed again
// without their secrets, and a rotation of the servers' key leaves all of them valid. It is safe for concurrent use.
type hashes struct {
	keys *keyring.Keyring
	pool *pgxpool.Pool

	mu sync.RWMutex
	// known has the key of each purpose, by the row of hash_keys. The first one hashes: all servers that have a key of
	// the ring agree on it.
	known map[int]map[string][]byte
	first int
	// rows are the numbers of all that there were when they were read.
	rows []int
	// lost are the names of the servers' keys under which others are sealed, and which are not here.
	lost []string
}

// newHashes reads the hash keys. The first server makes one, and hashes the rows of before again: the ring has the key
// that all servers seal with, which Open has seen to.
func newHashes(ctx context.Context, pool *pgxpool.Pool, keys *keyring.Keyring) (*hashes, error) {
	h := &hashes{keys: keys, pool: pool}
	if keys == nil {
		return h, nil
	}
	return h, h.open(ctx)
}

// refresh reads the hash keys again where another server has made one, or where the key of a lost one is back.
func (h *hashes) refresh(ctx context.Context) error {
	rows, err := h.pool.Query(ctx, "SELECT hash_key FROM hash_keys ORDER BY hash_key")
	if err != nil {
		return dberr.Failed("reading the keys of hashes", err)
	}
	there, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		return dberr.Failed("reading the keys of hashes", err)
	}
	h.mu.RLock()
	changed := !slices.Equal(there, h.rows) || slices.ContainsFunc(h.lost, h.keys.Has)
	h.mu.RUnlock()
	if !changed {
		return nil
	}
	return h.open(ctx)
}

// open reads the hash keys, and makes one where none can be opened: what was hashed under those is not found until
// their key is back.
func (h *hashes) open(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	err := pgx.BeginFunc(ctx, h.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", hashKeyLock); err != nil {
			return err
		}
		if err := h.load(ctx, tx); err != nil {
			return err
		}
		if h.first == 0 {
			if err := h.add(ctx, tx); err != nil {
				return err
			}
		}
		for _, purpose := range []string{tokenHash, shareHash, joinTokenHash} {
			if err := h.rehash(ctx, tx, purpose); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		h.known, h.first, h.rows = nil, 0, nil // a key that was made is rolled back
	}
	return dberr.Failed("reading the keys of hashes", err)
}

func (h *hashes) load(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, "SELECT hash_key, key_sealed FROM hash_keys ORDER BY hash_key")
	if err != nil {
		return err
	}
	h.known, h.first, h.rows, h.lost = map[int]map[string][]byte{}, 0, nil, nil
	var number int
	var sealed string
	_, err = pgx.ForEachRow(rows, []any{&number, &sealed}, func() error {
		h.rows = append(h.rows, number)
		secret, err := h.keys.Open(sealed, hashKeyContext)
		if errors.Is(err, keyring.ErrUnknownKey) {
			id, _ := keyring.KeyID(sealed) // it had one
			h.lost = append(h.lost, id)
			return nil
		}
		if err != nil {
			return &engine.Error{Code: engine.CodeInvalid, Cause: err,
				Message: fmt.Sprintf("The key %d of hashed tokens cannot be decrypted.", number),
				Hint: "Restore the table hash_keys from a backup. Without it, delete its rows: then all tokens, sessions and " +
					"links are void."}
		}
		return h.derive(number, secret)
	})
	return err
}

func (h *hashes) derive(number int, secret []byte) error {
	of := map[string][]byte{}
	for _, purpose := range []string{tokenHash, shareHash, joinTokenHash, guessHash} {
		key, err := hkdf.Expand(sha256.New, secret, "loadstone hash of "+purpose, sha256.Size)
		if err != nil {
			return fmt.Errorf("deriving the key of hashes: %w", err)
		}
		of[purpose] = key
	}
	h.known[number] = of
	if h.first == 0 {
		h.first = number
	}
	return nil
}

func (h *hashes) add(ctx context.Context, tx pgx.Tx) error {
	secret := make([]byte, sha256.Size)
	_, _ = rand.Read(secret) // never fails: the runtime ends the process instead
	var number int
	err := tx.QueryRow(ctx, "INSERT INTO hash_keys (key_sealed) VALUES ($1) RETURNING hash_key",
		h.keys.Seal(secret, hashKeyContext)).Scan(&number)
	if err != nil {
		return err
	}
	h.rows = append(h.rows, number)
	return h.derive(number, secret)
}

// rehash hashes the rows of before version 17 again, with the key.
func (h *hashes) rehash(ctx context.Context, tx pgx.Tx, table string) error {
	name := pgx.Identifier{table}.Sanitize()
	rows, err := tx.Query(ctx, "SELECT secret_sha256 FROM "+name+" WHERE hash_key = 0")
	if err != nil {
		return err
	}
	before, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil || len(before) == 0 {
		return err
	}
	after := make([][]byte, len(before))
	for i, sum := range before {
		after[i] = mac(h.known[h.first][table], sum)
	}
	_, err = tx.Exec(ctx, "UPDATE "+name+` t SET secret_sha256 = k.after, hash_key = $3
		FROM unnest($1::bytea[], $2::bytea[]) AS k (before, after)
		WHERE t.secret_sha256 = k.before AND t.hash_key = 0`, before, after, h.first)
	return err
}

func mac(key, sum []byte) []byte {
	m := hmac.New(sha256.New, key)
	m.Write(sum)
	return m.Sum(nil)
}

// stored is what to store of the SHA-256 of a secret, and under which key it was hashed.
func (h *hashes) stored(ctx context.Context, purpose string, sum [32]byte) (hash []byte, number int, err error) {
	if h.keys == nil {
		return nil, 0, &engine.Error{Code: engine.CodeInternal, Message: "This process has no key for tokens and links."}
	}
	h.mu.RLock()
	lacks := h.first == 0
	h.mu.RUnlock()
	if lacks {
		if err := h.open(ctx); err != nil {
			return nil, 0, err
		}
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	return mac(h.known[h.first][purpose], sum[:]), h.first, nil
}

// candidates are what may be stored of the SHA-256 of a secret, one of each key.
func (h *hashes) candidates(purpose string, sum [32]byte) [][]byte {
	h.mu.RLock()
	defer h.mu.RUnlock()
	all := make([][]byte, 0, len(h.known))
	for _, key := range h.known {
		all = append(all, mac(key[purpose], sum[:]))
	}
	return all
}
