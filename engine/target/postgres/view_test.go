package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// viewTables has a table whose rows fail at COMMIT, and one whose COMMIT takes longer than a statement may.
var viewTables = []string{"CREATE TABLE t (n int)", "CREATE TABLE u (n int UNIQUE DEFERRABLE INITIALLY DEFERRED)",
	"CREATE TABLE w (n int)", "CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS " +
		"'BEGIN PERFORM pg_sleep(30); RETURN NULL; END'", "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON w " +
		"DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION late()", "INSERT INTO u VALUES (1)"}

var viewStatements = statements(
	"SELECT 1",
	"INSERT INTO t VALUES (1)",
	"INSERT INTO u VALUES (1)",
	"SELECT 1/(random()*0)::int",
	"PREPARE TRANSACTION 'x'",
	"DECLARE c CURSOR FOR SELECT 1",
	"FETCH c",
	"FETCH none",
	"COPY t FROM STDIN",
	"COPY (SELECT generate_series(1, 300)) TO STDOUT",
	"SAVEPOINT a",
	"ROLLBACK TO a",
	"RELEASE a",
	"LOCK TABLE t",
	"SET LOCAL work_mem = '1MB'",
	"PREPARE p AS SELECT 1",
	"EXECUTE p",
	"SET CONSTRAINTS ALL IMMEDIATE",
	"INSERT INTO w VALUES (1)",
	"SELECT pg_sleep(30)",
	"COPY t FROM '/nowhere'",
	"COMMIT",
)

// TestTheViewOfATransactionIsTheServers executes random statements, transactions and what fails in them, and compares
// after each where the session stands, as the connection has it, with what pg_stat_activity says. Nothing of all that is
// the end of a connection, but a statement that ends a transaction by itself.
func TestTheViewOfATransactionIsTheServers(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	bothPaths(t, func(t *testing.T, d target.Driver) {
		dsn := pgtest.Start(t).NewDatabase(t)
		admin, err := postgres.NewDriver().Open(target.Config{DSN: secret.New(dsn), ApplicationName: "admin"})
		if err != nil {
			t.Fatal(err)
		}
		defer admin.Close()
		if err := admin.Exec(t.Context(), viewTables...); err != nil {
			t.Fatal(err)
		}
		db, err := d.Open(
			target.Config{DSN: secret.New(dsn), ApplicationName: "viewed", StatementTimeout: 20 * time.Millisecond},
		)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		random := rand.New(rand.NewPCG(seed, 1))
		var c target.Conn
		var batch plugin.Batch
		failedCommits := 0
		var script []uint16 // what comes next
		for i := range 300 {
			if c == nil {
				if c, err = db.Connect(t.Context(), viewStatements); err != nil {
					t.Fatal(err)
				}
			}
			inside := target.TransactionOf(c) != target.TransactionNone
			next := uint16(random.IntN(len(viewStatements)))
			switch {
			case len(script) > 0:
				next, script = script[0], script[1:]
			case random.IntN(3) > 0:
			case !inside:
				next, script = plugin.StatementBegin, [][]uint16{nil, {2, plugin.StatementCommit, 0}}[random.IntN(2)]
			default:
				next = []uint16{plugin.StatementCommit, plugin.StatementRollback, plugin.StatementBegin, 2}[random.IntN(4)]
			}
			if next >= 18 && next <= 19 && random.IntN(4) > 0 {
				continue // they take their time
			}
			var res target.Result
			failed := c.Exec(t.Context(), &batch, op(next), &res)
			if next == plugin.StatementCommit && inside && failed != nil {
				failedCommits++
			}
			if c.Broken() {
				class := db.Classify(failed)
				ends := inside && (next == 4 || next == 21) && class.Code == target.CodeTransactionState
				if !ends && class.Class != engine.ErrClassTimeout { // a busy machine may give an answer up
					t.Fatalf("seed %d, %d: %#x ended the connection: %v", seed, i, next, failed)
				}
				_ = c.Close()
				c = nil
				// The session that was left is on its way out.
				if err := gone(t, admin); err != nil {
					t.Fatal(err)
				}
				continue
			}
			rs, err := admin.Query(t.Context(), "SELECT state FROM pg_stat_activity WHERE application_name = 'viewed'")
			if err != nil || len(rs.Rows) != 1 {
				t.Fatalf("%v, %v", rs, err)
			}
			view := map[target.Transaction]string{target.TransactionNone: "idle", target.TransactionOpen: "idle in transaction",
				target.TransactionFailed: "idle in transaction (aborted)"}[target.TransactionOf(c)]
			if rs.Rows[0][0] != view {
				t.Fatalf("seed %d, %d: after %#x (%v) the view is %q, the server's %q", seed, i, next, failed, view, rs.Rows[0][0])
			}
		}
		if failedCommits == 0 {
			t.Error("no COMMIT failed: nothing was tried")
		}
		if c != nil {
			_ = c.Close()
		}
	})
}

func gone(t *testing.T, admin target.Database) error {
	for range 500 {
		rs, err := admin.Query(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'viewed'")
		if err != nil || rs.Rows[0][0] == int64(0) {
			return err
		}
		time.Sleep(2 * time.Millisecond)
	}
	return fmt.Errorf("the session stays")
}

// TestACopyIsAnAnswerLikeOthers: rows that are read are counted, and a COPY that waits for rows is an error of its own,
// after which the session goes on.
func TestACopyIsAnAnswerLikeOthers(t *testing.T) {
	t.Parallel()
	bothPaths(t, func(t *testing.T, d target.Driver) {
		dsn := pgtest.Start(t).NewDatabase(t)
		_, c := connect(t, d, target.Config{DSN: secret.New(dsn)}, statements(
			"COPY (SELECT generate_series(1, 3000), repeat('x', 100)) TO STDOUT"))
		var batch plugin.Batch
		var res target.Result
		for range 3 {
			if err := c.Exec(t.Context(), &batch, op(0), &res); err != nil || res.Rows != 3000 {
				t.Fatalf("%d rows, %v", res.Rows, err)
			}
		}
		_, c = connect(
			t,
			d,
			target.Config{DSN: secret.New(dsn)},
			append(statements("CREATE TEMP TABLE x (n int)", "SELECT 1"),
				engine.Statement{ID: "copy", SQL: "COPY x FROM STDIN"}),
		)
		if err := c.Exec(t.Context(), &batch, op(0), &res); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := c.Exec(
				t.Context(),
				&batch,
				op(2),
				&res,
			); err == nil || !strings.Contains(err.Error(), "COPY FROM STDIN") ||
				c.Broken() ||
				target.TransactionOf(c) != target.TransactionNone {
				t.Fatalf("%v, broken %v", err, c.Broken())
			}
			if err := c.Exec(t.Context(), &batch, op(1), &res); err != nil || res.Rows != 1 {
				t.Fatalf("%d rows, %v", res.Rows, err)
			}
		}
	})
}
