package postgres_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/engine/target/targettest"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// bothPaths runs a test over the ordinary path and over that of an event loop.
func bothPaths(t *testing.T, f func(t *testing.T, d target.Driver)) {
	for name, d := range map[string]target.Driver{"ordinary": postgres.NewDriver(),
		"events": targettest.Events(postgres.NewDriver())} {
		t.Run(name, func(t *testing.T) { f(t, d) })
	}
}

func op(i uint16) plugin.Op { return plugin.Op{Statement: i} }

func statements(texts ...string) []engine.Statement {
	var list []engine.Statement
	for i, sql := range texts {
		list = append(list, engine.Statement{ID: "s" + string(rune('0'+i)), SQL: sql})
	}
	return list
}

func connect(t *testing.T, d target.Driver, cfg target.Config, list []engine.Statement) (target.Database, target.Conn) {
	t.Helper()
	db, err := d.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c, err := db.Connect(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		_ = db.Close()
	})
	return db, c
}

// TestAnOperationThatLeavesATransactionOpenFails: what follows it would be rolled
// back, and counted as done.
func TestAnOperationThatLeavesATransactionOpenFails(t *testing.T) {
	t.Parallel()
	bothPaths(t, func(t *testing.T, d target.Driver) {
		dsn := pgtest.Start(t).NewDatabase(t)
		admin, err := postgres.NewDriver().Open(target.Config{DSN: secret.New(dsn)})
		if err != nil {
			t.Fatal(err)
		}
		defer admin.Close()
		if err := admin.Exec(t.Context(), "CREATE TABLE t (n int)",
			"CREATE PROCEDURE commits() LANGUAGE plpgsql AS 'BEGIN INSERT INTO t VALUES (1); COMMIT; INSERT INTO t VALUES "+
				"(2); COMMIT; END'"); err != nil {
			t.Fatal(err)
		}
		list := statements("BEGIN", "INSERT INTO t VALUES (9)", "COMMIT", "CALL commits()",
			"DO $$ BEGIN INSERT INTO t VALUES (3); COMMIT; END $$")
		var batch plugin.Batch
		var res target.Result
		db, c := connect(t, d, target.Config{DSN: secret.New(dsn), StatementTimeout: 10 * time.Second}, list)
		err = c.Exec(t.Context(), &batch, op(0), &res)
		if err == nil || !strings.Contains(err.Error(), "the statement s0 left a transaction open") || !c.Broken() {
			t.Errorf("a BEGIN: %v, broken %v", err, c.Broken())
		}
		if class := db.Classify(err); class.Code != "transaction_state" {
			t.Errorf("%+v", class)
		}
		// Procedures and blocks that commit leave nothing open.
		_, c = connect(t, d, target.Config{DSN: secret.New(dsn)}, list)
		for _, i := range []uint16{3, 4} {
			if err := c.Exec(t.Context(), &batch, op(i), &res); err != nil {
				t.Errorf("statement %d: %v", i, err)
			}
		}
		// A transaction of the workload's own, and one that a statement ends.
		for _, i := range []uint16{plugin.StatementBegin, 1, plugin.StatementCommit, plugin.StatementBegin, 1} {
			if err := c.Exec(t.Context(), &batch, op(i), &res); err != nil {
				t.Fatalf("statement %d: %v", i, err)
			}
		}
		if err := c.Exec(t.Context(), &batch, op(2), &res); err == nil ||
			!strings.Contains(err.Error(), "s2 ended the transaction") || !c.Broken() {
			t.Errorf("a COMMIT inside: %v", err)
		}
		rs, err := admin.Query(t.Context(), "SELECT count(*) FROM t")
		if err != nil || rs.Rows[0][0] != int64(5) {
			t.Errorf("%v rows, %v", rs, err)
		}
	})
}

// TestAlteredTablesArePreparedAgain: once, and on every connection by itself.
func TestAlteredTablesArePreparedAgain(t *testing.T) {
	t.Parallel()
	bothPaths(t, func(t *testing.T, d target.Driver) {
		dsn := pgtest.Start(t).NewDatabase(t)
		admin, err := postgres.NewDriver().Open(target.Config{DSN: secret.New(dsn)})
		if err != nil {
			t.Fatal(err)
		}
		defer admin.Close()
		if err := admin.Exec(t.Context(), "CREATE TABLE t (id int PRIMARY KEY, v int)",
			"INSERT INTO t SELECT g, g FROM generate_series(1, 10) g"); err != nil {
			t.Fatal(err)
		}
		list := []engine.Statement{{ID: "get", SQL: "SELECT * FROM t WHERE id = $1",
			Binds: []engine.Bind{{Name: "id", Type: engine.TypeI64}}},
			{ID: "set", SQL: "UPDATE t SET v = $1 WHERE id = $2",
				Binds: []engine.Bind{{Name: "v", Type: engine.TypeI64}, {Name: "id", Type: engine.TypeI64}}}}
		// What an EXECUTE names is prepared by SQL, which a pooler's sessions do not keep.
		named := []engine.Statement{{ID: "all", SQL: "PREPARE every AS SELECT * FROM t WHERE id = 7; EXECUTE every"},
			{ID: "one", SQL: `PREPARE "One row" (int) AS SELECT * FROM t WHERE id = $1; EXECUTE "One row" ($1)`,
				Binds: []engine.Bind{{Name: "id", Type: engine.TypeI64}}},
			{ID: "prepares", SQL: "PREPARE other AS SELECT * FROM t WHERE id = 7; EXECUTE other"},
			{ID: "other", SQL: "EXECUTE other"},
			{ID: "forget", SQL: "DEALLOCATE ALL"}}
		for _, prepared := range []bool{true, false} {
			list, ops, mayFail := list, []plugin.Op{{Statement: 0, FirstArg: 1, NArgs: 1}, {Statement: 1, NArgs: 2}}, 2
			if prepared {
				list, mayFail = slices.Concat(list, named), 5
				ops = append(ops, plugin.Op{Statement: 2}, plugin.Op{Statement: 3, FirstArg: 1, NArgs: 1}, op(5))
			}
			var conns []target.Conn
			for range 2 {
				_, c := connect(t, d, target.Config{DSN: secret.New(dsn), Prepared: &prepared}, list)
				conns = append(conns, c)
			}
			batch := plugin.Batch{Args: []plugin.Value{{Type: engine.TypeI64, I: 7}, {Type: engine.TypeI64, I: 3}}}
			round := func(what string, mayFail int) {
				t.Helper()
				for _, c := range conns {
					failed := 0
					for range 5 {
						for _, o := range ops {
							var res target.Result
							if err := c.Exec(t.Context(), &batch, o, &res); err != nil {
								failed++
								t.Logf("%s: %v", what, err)
							} else if res.Rows != 1 {
								t.Errorf("%s: %d rows", what, res.Rows)
							}
						}
					}
					if failed > mayFail || c.Broken() {
						t.Errorf("%s, prepared %v: %d operations failed", what, prepared, failed)
					}
				}
			}
			round("before", 0)
			for _, sql := range []string{"ALTER TABLE t ADD COLUMN w text DEFAULT 'x'",
				"ALTER TABLE t ALTER id TYPE bigint, ALTER v TYPE text", "ALTER TABLE t DROP COLUMN w",
				"ALTER TABLE t ALTER v TYPE int USING v::int, ALTER id TYPE int"} {
				if err := admin.Exec(t.Context(), sql); err != nil {
					t.Fatal(err)
				}
				round(sql, mayFail)
			}
			if !prepared {
				continue
			}
			// A session that has lost all of them has them again.
			for _, c := range conns {
				var res target.Result
				if err := c.Exec(t.Context(), &batch, op(6), &res); err != nil {
					t.Fatal(err)
				}
			}
			round("DEALLOCATE ALL", mayFail)
		}
	})
}
