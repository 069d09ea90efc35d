package postgres_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/server/auth"
)

// TestGuessesAreCountedTogether: whoever guesses at several servers of a store has no more guesses than at one, and
// kinds are counted apart.
func TestGuessesAreCountedTogether(t *testing.T) {
	ctx, dsn, key := t.Context(), newDatabase(t), filepath.Join(t.TempDir(), "key")
	var servers []*auth.GuessLimiter
	var codes *auth.GuessLimiter
	for range 2 {
		s := openWith(t, dsn, key)
		servers = append(servers, auth.NewGuessLimiter("password", 10, time.Minute, s))
		codes = auth.NewGuessLimiter("code", 10, time.Minute, s)
	}
	for i := range 10 {
		of := servers[i%2]
		if wait := of.Wait(ctx, "ada"); wait != 0 {
			t.Fatalf("guess %d waits %s", i, wait)
		}
		of.RecordFailure(ctx, "ada")
	}
	for i, of := range servers {
		if wait := of.Wait(ctx, "ada"); wait < 55*time.Second || wait > time.Minute {
			t.Errorf("guess 11 at server %d waits %s, want a minute", i, wait)
		}
		if wait := of.Wait(ctx, "eve"); wait != 0 {
			t.Errorf("another caller waits %s", wait)
		}
	}
	if wait := codes.Wait(ctx, "ada"); wait != 0 {
		t.Errorf("a code waits %s for passwords", wait)
	}
	conn, err := pgx.Connect(ctx, dsn)
	must(t, err)
	defer conn.Close(context.WithoutCancel(ctx))
	// What is regained goes away.
	_, err = conn.Exec(ctx, "UPDATE guess_counts SET regained_at = now() - interval '1 second'")
	must(t, err)
	auth.NewGuessLimiter("code", 10, time.Minute, openWith(t, dsn, key)).RecordFailure(ctx, "bob")
	var left int
	must(t, conn.QueryRow(ctx, "SELECT count(*) FROM guess_counts").Scan(&left))
	if left != 1 {
		t.Errorf("%d rows are left", left)
	}
}
