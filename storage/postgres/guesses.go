package postgres

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// guessSweepInterval is how often a server deletes the rows of callers who have regained all their guesses.
const guessSweepInterval = time.Minute

// GuessCounts implements auth.GuessStore. Callers are stored as keyed hashes: what somebody typed as a user's name may
// be a password.
type GuessCounts struct {
	pool   *pgxpool.Pool
	hashes *hashes

	mu      sync.Mutex
	sweptAt time.Time
}

func (g *GuessCounts) key(ctx context.Context, kind, caller string) ([]byte, error) {
	hash, _, err := g.hashes.stored(ctx, guessHash, sha256.Sum256([]byte(kind+"\x00"+caller)))
	return hash, err
}

// AddGuess implements auth.GuessStore.
func (g *GuessCounts) AddGuess(ctx context.Context, kind, caller string, refill time.Duration) error {
	key, err := g.key(ctx, kind, caller)
	if err != nil {
		return err
	}
	_, err = g.pool.Exec(ctx, `INSERT INTO guess_counts AS g (caller, regained_at)
		VALUES ($1, clock_timestamp() + $2::interval) ON CONFLICT (caller) DO UPDATE
		SET regained_at = greatest(g.regained_at, clock_timestamp()) + $2::interval`, key, refill)
	if err != nil {
		return dberr.Failed("counting a wrong guess", err)
	}
	g.mu.Lock()
	due := time.Since(g.sweptAt) >= guessSweepInterval
	if due {
		g.sweptAt = time.Now()
	}
	g.mu.Unlock()
	if due {
		_, err = g.pool.Exec(ctx, "DELETE FROM guess_counts WHERE regained_at <= clock_timestamp()")
	}
	return dberr.Failed("forgetting wrong guesses", err)
}

// GuessesOwed implements auth.GuessStore.
func (g *GuessCounts) GuessesOwed(ctx context.Context, kind, caller string) (time.Duration, error) {
	key, err := g.key(ctx, kind, caller)
	if err != nil {
		return 0, err
	}
	var seconds float64
	err = g.pool.QueryRow(ctx, `SELECT extract(epoch FROM regained_at - clock_timestamp())::float8 FROM guess_counts
		WHERE caller = $1`, key).Scan(&seconds)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return max(time.Duration(seconds*float64(time.Second)), 0), dberr.Failed("reading wrong guesses", err)
}
