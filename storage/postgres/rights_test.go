package postgres_test

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine/store"
)

// TestTheRevisionOfRightsRises: with each transaction that changes rights, once, also when transactions overlap; the end
// of tokens is counted apart, and what changes no right is not counted. Transactions that change the same things in
// another order than they count do not wait for each other for good.
func TestTheRevisionOfRightsRises(t *testing.T) {
	t.Parallel()
	s, dsn := open(t)
	ctx := t.Context()
	_, ada, eve := makeUser(t, s)
	rises := func(what string, rights, tokens int64, change func()) {
		t.Helper()
		r0, t0, err := s.RightsRevision(ctx)
		must(t, err)
		change()
		r1, t1, err := s.RightsRevision(ctx)
		must(t, err)
		if r1-r0 != rights || t1-t0 != tokens {
			t.Errorf("%s: rights rise by %d, tokens by %d; want %d and %d", what, r1-r0, t1-t0, rights, tokens)
		}
	}
	connect := func() *pgx.Conn {
		conn, err := pgx.Connect(ctx, dsn)
		must(t, err)
		t.Cleanup(func() { _ = conn.Close(ctx) })
		return conn
	}
	one, other := connect(), connect()
	exec := func(conn *pgx.Conn, statement string, args ...any) {
		t.Helper()
		_, err := conn.Exec(ctx, statement, args...)
		must(t, err)
	}
	const lock = "UPDATE users SET disabled_at = clock_timestamp() WHERE user_id = $1"
	rises("a name", 0, 0, func() { exec(one, "UPDATE users SET user_name = 'Adah' WHERE user_id = $1", ada.UserID) })
	rises("many users at once", 1, 0, func() { exec(one, "UPDATE users SET disabled_at = now()") })
	rises("transactions that overlap", 2, 0, func() {
		exec(one, "BEGIN")
		exec(one, lock, ada.UserID)
		exec(other, "BEGIN")
		exec(other, lock, eve.UserID) // it would wait for the first here, or later each for the other
		exec(other, "COMMIT")
		exec(one, lock, eve.UserID)
		exec(one, "COMMIT")
	})
	exec(one, "UPDATE users SET disabled_at = NULL")
	for i := range 3 {
		_, err := s.CreateToken(ctx, store.Token{UserID: ada.UserID, Kind: "session"}, sha256.Sum256(fmt.Append(nil, i)))
		must(t, err)
	}
	rises("the end of tokens", 0, 1, func() { exec(one, "DELETE FROM api_tokens") })
	rises("a user with tokens", 1, 1, func() {
		_, err := s.CreateToken(ctx, store.Token{UserID: ada.UserID, Kind: "session"}, sha256.Sum256([]byte("a")))
		must(t, err)
		exec(one, "DELETE FROM users WHERE user_id = $1", ada.UserID)
	})
}
