package prepare

import (
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/sdk/sqltext"
)

// TestAnAdapterSendsWhatItDeclares: an approval binds, on every answer.
func TestAnAdapterSendsWhatItDeclares(t *testing.T) {
	for name, c := range map[string]struct {
		bend  func(*world)
		words string
	}{
		"a query beyond its patterns": {func(w *world) {
			w.rounds, w.queries = 1, []plugin.Query{{ID: "q", SQL: "SELECT secret FROM accounts"}}
			w.sends = &plugin.Sends{Query: []string{"SELECT max(id) FROM {table}"}, Session: []string{"SET TIME ZONE 'UTC'"}}
		}, "does not declare"},
		"a query that writes, whatever it declares": {func(w *world) {
			w.rounds, w.queries = 1, []plugin.Query{{ID: "q", SQL: "DELETE FROM orders"}}
			w.sends = &plugin.Sends{Query: []string{"DELETE FROM {table}"}, Session: []string{"SET TIME ZONE 'UTC'"}}
		}, "may only read"},
		"a session that becomes somebody":    {func(w *world) { w.session = []string{"SET ROLE postgres"} }, `sets "role"`},
		"a session that opens a transaction": {func(w *world) { w.session = []string{"BEGIN"} }, "does not begin with SET"},
		"DDL that it does not declare": {
			func(w *world) { w.sends = &plugin.Sends{Session: []string{"SET TIME ZONE 'UTC'"}} }, "does not declare"},
		"a pattern that allows anything": {func(w *world) { w.sends = &plugin.Sends{DDL: []string{"{*}"}} },
			"would allow anything"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			c.bend(w)
			_, err := Plan(t.Context(), w.deps(), prepared(10, engine.IfExistsUse), nil)
			if !engine.HasCode(err, engine.CodePlugin) || !strings.Contains(err.Error(), c.words) {
				t.Errorf("%v", err)
			}
			if len(w.sql) > 0 {
				t.Errorf("%v was executed", w.sql)
			}
		})
	}
}

func TestWhatASessionMaySet(t *testing.T) {
	for sql, fine := range map[string]bool{
		"SET TIME ZONE 'UTC'": true, "set enable_seqscan = off": true, "SET SESSION work_mem TO '1 MB'": true,
		"ALTER SESSION SET QUERY_TAG = 'x'":                                          true,
		"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ": true,
		"SET ROLE x": false, "SET SESSION AUTHORIZATION x": false, "SET search_path = x": false,
		"SET default_transaction_read_only = off": false, "SET row_security = off": false,
		"SET session_replication_role = replica": false, "RESET ALL": false, "SELECT 1": false,
		"SET TIME ZONE 'UTC'; DROP TABLE t": false, "": false, "SET": false,
		"SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE": false, "SET work_mem = (SELECT 1)": false, "BEGIN": false,
		"DO $$ $$": false,
	} {
		if why := setsSession(sql, sqltext.Postgres); (why == "") != fine {
			t.Errorf("%q: %q", sql, why)
		}
	}
}

// TestTransactionControlIsNoStatement: alone, behind another statement, behind a comment.
func TestTransactionControlIsNoStatement(t *testing.T) {
	for _, sql := range []string{"BEGIN", " /* SELECT */ begin", "SELECT 1; COMMIT", "START TRANSACTION",
		"-- x\nrollback to savepoint a; select 1", "ROLLBACK", "END", "ABORT",
		"PREPARE TRANSACTION 'x'", "SET TRANSACTION READ ONLY", "SET LOCAL TRANSACTION READ ONLY", "RELEASE a; COMMIT", ";;COMMIT",
		"SELECT $$ ; $$, '--'; COMMIT -- '"} {
		w := newWorld()
		w.statement = func(s plugin.Statement) engine.Statement { return engine.Statement{ID: s.ID, Kind: s.Kind, SQL: sql} }
		w.add("orders", engine.Column{Name: "id", Type: engine.TypeI64}, engine.Column{Name: "note", Type: engine.TypeText})
		if _, err := Plan(t.Context(), w.deps(), scenario(), nil); !engine.HasCode(err, engine.CodeInvalid) ||
			!strings.Contains(err.Error(), "transaction") {
			t.Errorf("%q: %v", sql, err)
		}
	}
	for _, sql := range []string{"SELECT 'BEGIN'", "SELECT 1 /* ; COMMIT */", "SELECT $$;ROLLBACK$$",
		"SELECT \"end\" FROM t", "DO $$ BEGIN NULL; END $$", "SAVEPOINT a", "RELEASE a",
		"-- x\nrollback to savepoint a", "ROLLBACK WORK TO a"} {
		w := newWorld()
		w.wanted = []plugin.Statement{{ID: "own", Kind: engine.KindGenericSQL, SQL: map[string]string{"*": sql}}}
		w.statement = func(s plugin.Statement) engine.Statement { return engine.Statement{ID: s.ID, Kind: s.Kind, SQL: sql} }
		w.add("orders", engine.Column{Name: "id", Type: engine.TypeI64}, engine.Column{Name: "note", Type: engine.TypeText})
		if _, err := Plan(t.Context(), w.deps(), scenario(), nil); err != nil {
			t.Errorf("%q: %v", sql, err)
		}
	}
}

// TestAStatementThatChangesItsSessionIsRefused: in any of its statements, by a verb or by a function. What
// ends with its transaction may stay.
func TestAStatementThatChangesItsSessionIsRefused(t *testing.T) {
	plan := func(sql string) error {
		w := newWorld()
		w.wanted = []plugin.Statement{{ID: "own", Kind: engine.KindGenericSQL, Param: "statements[0]",
			SQL: map[string]string{"*": sql}}}
		w.statement = func(s plugin.Statement) engine.Statement { return engine.Statement{ID: s.ID, Kind: s.Kind, SQL: sql} }
		w.add("orders", engine.Column{Name: "id", Type: engine.TypeI64}, engine.Column{Name: "note", Type: engine.TypeText})
		_, err := Plan(t.Context(), w.deps(), scenario(), nil)
		return err
	}
	for sql, word := range map[string]string{
		"SET default_transaction_read_only = on":                  "SET default_transaction_read_only",
		"/* x */ set session search_path to x":                    "SET search_path",
		"SELECT 1; SET ROLE other":                                "SET ROLE",
		"RESET ALL":                                               "RESET",
		"DISCARD PLANS":                                           "DISCARD",
		"ALTER SESSION SET QUERY_TAG = 'x'":                       "ALTER SESSION",
		"PREPARE p AS SELECT 1":                                   "PREPARE",
		"SELECT set_config('work_mem', '1MB', false)":             "set_config",
		`SELECT pg_catalog."set_config"('a.b', $1, $2)`:           "set_config",
		"SELECT set_config('a', set_config('b','c',true), false)": "set_config",
	} {
		err := plan(sql)
		e := engine.AsError(err)
		if !engine.HasCode(err, engine.CodeInvalid) || len(e.Fields) != 1 || !strings.Contains(e.Message, "own") ||
			!strings.Contains(e.Message, "("+word+")") || e.Fields[0].Field != "workload.params.statements[0]" ||
			!strings.Contains(e.Fields[0].Hint, "SET LOCAL") {
			t.Errorf("%q: %v", sql, err)
		}
	}
	for _, sql := range []string{"SET LOCAL work_mem = '1MB'", "SET CONSTRAINTS ALL DEFERRED",
		"UPDATE orders SET note = 'x'", "SELECT set_config('a.b', $1, true)", "SELECT 'SET ROLE x'",
		"SELECT reset FROM orders", "INSERT INTO orders VALUES (1) ON CONFLICT (id) DO UPDATE SET note = 'x'"} {
		if err := plan(sql); err != nil {
			t.Errorf("%q: %v", sql, err)
		}
	}
}

// TestWhatAnAdapterWritesForAWorkload: statements are of the adapter's patterns, or the
// workload's own, word for word.
func TestWhatAnAdapterWritesForAWorkload(t *testing.T) {
	declared := &plugin.Sends{Query: []string{"SELECT {reads max count}"},
		Statements: []string{"SELECT {names} FROM {table} WHERE {reads}"}, Session: []string{"SET TIME ZONE 'UTC'"}}
	for _, c := range []struct {
		sql, own string
		sends    *plugin.Sends
		words    string
	}{
		{"SELECT note FROM orders WHERE id = $1", "", declared, ""},
		{"SELECT note FROM orders WHERE id = $1", "", nil, ""},
		{"SELECT count(*) FROM orders", "SELECT count(*) FROM {table}", declared, ""},
		{"SELECT pg_read_file('x'), note FROM orders WHERE id = $1", "", declared, "manifest does not declare"},
		{"SELECT pg_read_file('x')", "", nil, "manifest does not declare"},
		{"SELECT secret FROM accounts WHERE id = $1", "", declared, "manifest does not declare"},
		{"SELECT secret FROM accounts WHERE id = $1", "", nil, "manifest does not declare"},
		{"SELECT note FROM orders WHERE id = (SELECT id FROM accounts)", "", declared, "manifest does not declare"},
		{"SELECT count(*) FROM accounts", "SELECT count(*) FROM {table}", declared, "not what the workload brought"},
		{"SELECT note FROM orders WHERE true", "SELECT count(*) FROM {table}", declared, "not what the workload brought"},
	} {
		w := newWorld()
		w.sends = c.sends
		w.wanted = []plugin.Statement{{ID: "get", Kind: engine.KindGenericSQL, Table: "main"}}
		if c.own != "" {
			w.wanted[0].SQL = map[string]string{"*": c.own}
		}
		w.statement = func(s plugin.Statement) engine.Statement {
			return engine.Statement{ID: s.ID, Kind: s.Kind,
				SQL: c.sql}
		}
		w.add("orders", engine.Column{Name: "id", Type: engine.TypeI64}, engine.Column{Name: "note", Type: engine.TypeText})
		_, err := Plan(t.Context(), w.deps(), scenario(), nil)
		if c.words == "" && err != nil || c.words != "" &&
			(!engine.HasCode(err, engine.CodePlugin) || !strings.Contains(err.Error(), c.words) ||
				!strings.Contains(err.Error(), "get")) {
			t.Errorf("%s (own %q): %v", c.sql, c.own, err)
		}
	}
}
