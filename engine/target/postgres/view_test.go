package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
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

// TestValuesWithoutParameters: rows of a COPY and values of an EXECUTE reach the server as they are, through both ways of
// sending; what it refuses of them leaves the session where it was.
func TestValuesWithoutParameters(t *testing.T) {
	bothPaths(t, func(t *testing.T, d target.Driver) {
		dsn := pgtest.Start(t).NewDatabase(t)
		admin, _ := connect(t, d, target.Config{DSN: secret.New(dsn)}, statements("SELECT 1"))
		if err := admin.Exec(
			t.Context(),
			"CREATE TABLE kept (id int8 PRIMARY KEY, f float8, b bool, x bytea, at timestamptz, "+
				"s text CHECK (s <> 'no'))",
		); err != nil {
			t.Fatal(err)
		}
		binds := []engine.Bind{{Name: "id", Type: engine.TypeI64}, {Name: "f", Type: engine.TypeF64},
			{Name: "b", Type: engine.TypeBool}, {Name: "x", Type: engine.TypeBytes}, {Name: "at", Type: engine.TypeTimestamp},
			{Name: "s", Type: engine.TypeText}}
		const prepare = "PREPARE keep (int8, float8, bool, bytea, timestamptz, text) AS " +
			"INSERT INTO kept VALUES ($1, $2, $3, $4, $5, $6) RETURNING id, x, s, f; "
		_, c := connect(t, d, target.Config{DSN: secret.New(dsn)}, []engine.Statement{
			{ID: "copy", SQL: "COPY kept (id, f, b, x, at, s) FROM STDIN", Binds: slices.Concat(binds, binds)},
			{ID: "named", SQL: prepare + "EXECUTE keep($1, $2, $3, $4, $5, $6)", Binds: binds,
				Columns: []string{"id", "x", "s", "f"}},
			{ID: "same", SQL: "EXECUTE keep(-1-$1, $4, false, $2, now(), $3)", Binds: binds[:4]},
			{ID: "rows", SQL: "COPY kept (id, x, s, f) FROM STDIN", Binds: binds[:4]},
			{ID: "one", SQL: "SELECT 1"}})
		for _, s := range []string{"plain", "it's", `back\slash \N`, "tab\tline\nend\r", "", "ü€𝄞", `\'; DROP TABLE kept; --`} {
			b := &plugin.Batch{}
			add := func(id int64, null bool) {
				text := func(of string, typ engine.ValueType) plugin.Value {
					b.Data = append(b.Data, of...)
					return plugin.Value{Type: typ, Off: uint32(len(b.Data) - len(of)), Len: uint32(len(of))}
				}
				b.Args = append(b.Args, plugin.Value{Type: engine.TypeI64, I: id})
				if null {
					b.Args = append(b.Args, make([]plugin.Value, 5)...)
					return
				}
				b.Args = append(b.Args, plugin.Value{Type: engine.TypeF64, F: -1.5e-7}, plugin.Value{Type: engine.TypeBool, I: 1},
					text("\x00'\\\xff", engine.TypeBytes), plugin.Value{Type: engine.TypeTimestamp, I: 1_700_000_000_123_456},
					text(s, engine.TypeText))
			}
			add(-9_000_000_000, false)
			add(2, true)
			add(3, false)
			run := func(op plugin.Op) (target.Result, error) {
				var res target.Result
				err := c.Exec(t.Context(), b, op, &res)
				return res, err
			}
			ref := func(columns ...uint8) uint32 {
				from := len(b.Args)
				for _, column := range columns {
					b.Args = append(b.Args, plugin.Ref(1, column))
				}
				return uint32(from)
			}
			for _, op := range []plugin.Op{{Statement: plugin.StatementBegin}, {Statement: 0, NArgs: 12},
				{Statement: 1, FirstArg: 12, NArgs: 6, Referred: true}, {Statement: 2, FirstArg: ref(0, 1, 2, 3), NArgs: 4}} {
				if res, err := run(op); err != nil || op.Statement == 0 && res.Rows != 2 {
					t.Fatalf("%q: %#x: %d rows, %v", s, op.Statement, res.Rows, err)
				}
			}
			// A COPY of the same key is refused at its row, one of a bad value at its field, and the rest of it is passed over.
			for _, bad := range []plugin.Op{{Statement: 3, FirstArg: ref(0, 1, 2, 3), NArgs: 4}, {Statement: 0, NArgs: 6}} {
				if _, err := run(bad); err == nil || c.Broken() || target.TransactionOf(c) != target.TransactionFailed {
					t.Fatalf("%q: %v, broken %v", s, err, c.Broken())
				}
				for _, end := range []uint16{plugin.StatementRollback, 4, plugin.StatementBegin} {
					if _, err := run(op(end)); err != nil {
						t.Fatalf("%q: after a refused COPY: %v", s, err)
					}
				}
				if bad.Statement == 0 {
					break
				}
				if _, err := run(plugin.Op{Statement: 0, NArgs: 12}); err != nil {
					t.Fatal(err)
				}
			}
			for _, op := range []plugin.Op{{Statement: 0, NArgs: 12}, {Statement: 1, FirstArg: 12, NArgs: 6, Referred: true},
				{Statement: plugin.StatementCommit}} {
				if _, err := run(op); err != nil {
					t.Fatal(err)
				}
			}
			rs, err := admin.Query(t.Context(), "SELECT count(*) FILTER (WHERE f = -1.5e-7 AND b AND x = '\\x00275cff' AND "+
				"at = '2023-11-14 22:13:20.123456Z' AND s = $1), count(*) FILTER (WHERE id = 2 AND num_nulls(f, b, x, at, s) = 5), "+
				"count(*) FROM kept", s)
			if err != nil || fmt.Sprint(rs.Rows) != "[[2 1 3]]" {
				t.Fatalf("%q: the table holds %v, %v", s, rs, err)
			}
			if err := admin.Exec(t.Context(), "TRUNCATE kept"); err != nil {
				t.Fatal(err)
			}
		}
	})
}
