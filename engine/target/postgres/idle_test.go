package postgres

import (
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// Looking at a target asks one query after the other: its connection is not pinged before each, which
// behind a long way is a quarter of the time. One that the server has ended is another then, all the same.
func TestLookingAtATargetPingsOnlyWhatHasLainIdle(t *testing.T) {
	t.Parallel()
	opened, err := NewDriver().Open(target.Config{DSN: secret.New(pgtest.Start(t).NewDatabase(t))})
	if err != nil {
		t.Fatal(err)
	}
	db := opened.(*database)
	defer func() { _ = db.Close() }()
	read := func() (backend int) {
		t.Helper()
		rs, err := target.Read(t.Context(), db, "SELECT pg_backend_pid()", time.Second)
		if err != nil {
			t.Fatal(err)
		}
		return int(rs.Rows[0][0].(int64))
	}
	first := read()
	for _, c := range []struct {
		idle time.Duration
		want string
	}{{0, "ROLLBACK"}, {reuseWindow + time.Second, "-- ping"}} {
		db.idle[0].since = time.Now().Add(-c.idle)
		held, _, err := db.lend(t.Context(), reuseWindow)
		if err != nil {
			t.Fatal(err)
		}
		// Another connection asks, as this one is lent.
		rs, err := db.Query(t.Context(), "SELECT query FROM pg_catalog.pg_stat_activity WHERE pid = $1", int(held.PID()))
		if err != nil || int(held.PID()) != first || len(rs.Rows) != 1 || rs.Rows[0][0] != c.want {
			t.Errorf("idle for %v, the last it was asked is %v, want %q: %v", c.idle, rs, c.want, err)
		}
		db.idle = nil
		db.give(held)
	}
	held := db.idle[0].PgConn
	db.idle = nil
	if _, err := db.Query(t.Context(), "SELECT pg_terminate_backend($1, 10000)", first); err != nil {
		t.Fatal(err)
	}
	db.idle = []idle{{held, time.Now()}}
	if again := read(); again == first {
		t.Error("a session that was ended was used again")
	}
}
