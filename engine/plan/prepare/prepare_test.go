package prepare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/sdk/sqltext"
)

func prepared(rows int64, how engine.IfExists) engine.Scenario {
	sc := scenario()
	sc.Target.Prepare = &engine.Prepare{Rows: rows, IfExists: how}
	return sc
}

// fails checks that err is a user-facing error with the code, the field and the words.
func fails(t *testing.T, err error, code engine.Code, field, words string) {
	t.Helper()
	var e *engine.Error
	if !errors.As(err, &e) {
		t.Fatalf("%v is not for users", err)
	}
	if e.Code != code || !strings.Contains(e.Error(), words) {
		t.Fatalf("%s: %v; want %s with %q", e.Code, e, code, words)
	}
	if field != "" && !slices.ContainsFunc(e.Fields, func(f engine.FieldError) bool { return f.Field == field }) {
		t.Fatalf("%+v does not name %s", e.Fields, field)
	}
}

func TestAMissingTableIsMadeLoadedAndLookedAtAgain(t *testing.T) {
	w := newWorld()
	var steps []string
	var last engine.PrepareProgress
	p, err := Plan(t.Context(), w.deps(), prepared(5000, engine.IfExistsUse), func(p engine.PrepareProgress) {
		if len(steps) == 0 || steps[len(steps)-1] != p.Step {
			steps = append(steps, p.Step)
		}
		if p.Step == "load" {
			last = p
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"CREATE TABLE orders", "ANALYZE orders"}; !slices.Equal(w.sql, want) || w.loaded != 5000 {
		t.Fatalf("%v, %d rows", w.sql, w.loaded)
	}
	if want := []string{"connect", "inspect", "create", "load", "index", "inspect"}; !slices.Equal(steps, want) ||
		last.RowsDone != 5000 || last.RowsTotal != 5000 {
		t.Fatalf("%v, %+v", steps, last)
	}
	plan := p.Plan
	if plan.KeySlots != 12 || len(plan.Statements) != 1 || len(plan.Tables) != 1 || plan.Tables[0].Name != "main" ||
		plan.Driver != "fake" || plan.Workload.SHA256 != "w" || len(plan.Session) != 1 {
		t.Fatalf("%+v", plan)
	}
	if string(p.Params) != `{"keys":"uniform"}` {
		t.Fatalf("params %s", p.Params)
	}
}

func TestAnExistingTable(t *testing.T) {
	id, note := engine.Column{Name: "id", Type: engine.TypeI64, DBType: "bigint"},
		engine.Column{Name: "note", Type: engine.TypeText, DBType: "text"}
	cases := []struct {
		name    string
		sc      engine.Scenario
		columns []engine.Column
		any     bool
		words   string // of the error; "" for none
		sql     int    // statements executed
	}{
		{"is used", scenario(), []engine.Column{id, note}, false, "", 0},
		{"is used although sample rows are asked for", prepared(10, engine.IfExistsUse), []engine.Column{id, note}, false, "",
			0},
		{"is kept when it must not exist", prepared(10, engine.IfExistsFail), []engine.Column{id, note}, false,
			"exists already", 0},
		{"is made again when that is asked for", prepared(10, engine.IfExistsRecreate), []engine.Column{id}, false, "", 3},
		{"lacks a column", scenario(), []engine.Column{id}, false, "the column note (text) is missing", 0},
		{"has another type", prepared(10, engine.IfExistsUse),
			[]engine.Column{id, {Name: "note", Type: engine.TypeBool, DBType: "boolean"}}, false,
			"the column note is boolean (bool), and must hold text", 0},
		{"may have any shape", scenario(), []engine.Column{id}, true, "", 0},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld()
			w.logical[0].AnyShape = tc.any
			w.add("orders", tc.columns...)
			_, err := Plan(t.Context(), w.deps(), tc.sc, nil)
			if tc.words == "" && err != nil {
				t.Fatal(err)
			}
			if tc.words != "" {
				fails(t, err, engine.CodeTarget, "", tc.words)
			}
			if len(w.sql) != tc.sql || w.tables["orders"] == nil {
				t.Fatalf("executed %v", w.sql)
			}
		})
	}
}

func TestAnEmptyTableIsNotTakenForALoadedOne(t *testing.T) {
	w := newWorld()
	w.add("orders", engine.Column{Name: "id", Type: engine.TypeI64, DBType: "bigint"},
		engine.Column{Name: "note", Type: engine.TypeText, DBType: "text"})
	w.tables["orders"].Rows, w.tables["orders"].RowsExact = 0, true
	_, err := Plan(t.Context(), w.deps(), prepared(10, engine.IfExistsUse), nil)
	fails(t, err, engine.CodeTarget, "target.prepare.if_exists",
		"The table orders in the database db of the connection playground is empty")
	if _, err := Plan(t.Context(), w.deps(), scenario(), nil); err != nil {
		t.Errorf("an empty table used on purpose gave %v", err)
	}
	if len(w.sql) != 0 {
		t.Errorf("the database executed %q", w.sql)
	}
}

func TestAMissingTableWithoutPrepareNamesTableConnectionAndCure(t *testing.T) {
	_, err := Plan(t.Context(), newWorld().deps(), scenario(), nil)
	fails(t, err, engine.CodeTarget, "target.table_name",
		"The table orders does not exist in the database db of the connection playground")
	fails(t, err, engine.CodeTarget, "", "prepare: {rows")
}

func TestAFailedOrCancelledLoadLeavesNoTable(t *testing.T) {
	t.Run("target", func(t *testing.T) {
		w := newWorld()
		w.loadErr = errors.New("disk full")
		_, err := Plan(t.Context(), w.deps(), prepared(5000, engine.IfExistsUse), nil)
		fails(t, err, engine.CodeTarget, "", "disk full")
		if len(w.tables) != 0 {
			t.Fatal("the table is left")
		}
	})
	t.Run("plugin", func(t *testing.T) {
		w := newWorld()
		w.rowsErr, w.rowsLeft = plugin.ErrTrapped, 2000
		_, err := Plan(t.Context(), w.deps(), prepared(5000, engine.IfExistsUse), nil)
		fails(t, err, engine.CodePlugin, "", "making sample rows")
		if len(w.tables) != 0 {
			t.Fatal("the table is left")
		}
	})
	t.Run("cancel", func(t *testing.T) {
		w := newWorld()
		ctx, cancel := context.WithCancel(t.Context())
		w.onLoad = func(n int64) {
			if n > 3000 {
				cancel()
			}
		}
		_, err := Plan(ctx, w.deps(), prepared(1_000_000, engine.IfExistsUse), nil)
		if !errors.Is(err, context.Canceled) || len(w.tables) != 0 {
			t.Fatalf("%v, tables %v", err, w.tables)
		}
	})
	t.Run("after load", func(t *testing.T) {
		w := newWorld()
		w.execErr = map[string]error{"ANALYZE": errors.New("no")}
		_, err := Plan(t.Context(), w.deps(), prepared(10, engine.IfExistsUse), nil)
		fails(t, err, engine.CodeTarget, "", "no")
		if len(w.tables) != 0 {
			t.Fatal("the table is left")
		}
	})
	t.Run("somebody else made it meanwhile", func(t *testing.T) {
		w := newWorld()
		w.execErr = map[string]error{"CREATE": errors.New("relation exists")}
		_, err := Plan(t.Context(), w.deps(), prepared(10, engine.IfExistsUse), nil)
		fails(t, err, engine.CodeTarget, "", "relation exists")
		if slices.ContainsFunc(w.sql, func(s string) bool { return strings.HasPrefix(s, "DROP") }) {
			t.Fatalf("dropped what it did not make: %v", w.sql)
		}
	})
}

func TestParameters(t *testing.T) {
	w := newWorld()
	m := fakeWorkload{w: w}.Info().Manifest
	cases := []struct{ params, want, field, hint string }{
		{``, `{"keys":"uniform"}`, "", ""},
		{`null`, `{"keys":"uniform"}`, "", ""},
		{`{"weights":{"POINT_LOOKUP":70.50}}`, `{"keys":"uniform","weights":{"POINT_LOOKUP":70.50}}`, "", ""},
		{`{"weights":{"POINT_LOKUP":70}}`, "", "workload.params.weights.POINT_LOKUP", "POINT_LOOKUP"},
		{`{"keys":"zipfan"}`, "", "workload.params.keys", "zipfian"},
		{`{"weights":{"POINT_LOOKUP":-1}}`, "", "workload.params.weights.POINT_LOOKUP", ""},
		{`{"keys":7}`, "", "workload.params.keys", ""},
		{`[1]`, "", "workload.params", ""},
		{`{"keys"`, "", "workload.params", ""},
	}
	for _, tc := range cases {
		got, err := parameters(m, json.RawMessage(tc.params), paramsField)
		if tc.field == "" {
			if err != nil || string(got) != tc.want {
				t.Errorf("%s gave %s, %v", tc.params, got, err)
			}
			continue
		}
		fails(t, err, engine.CodeInvalid, tc.field, tc.hint)
	}
	if _, err := parameters(plugin.Manifest{Name: "bare"}, json.RawMessage(`{"a":1}`), paramsField); err == nil {
		t.Error("parameters of a plugin that takes none were accepted")
	}
}

func TestTheFrozenListIsChecked(t *testing.T) {
	cases := []struct {
		name   string
		change func(*world)
		words  string
	}{
		{"no statement", func(w *world) { w.wanted = nil }, "no statement"},
		{"two of one id", func(w *world) { w.wanted = append(w.wanted, w.wanted[0]) }, "occurs twice"},
		{"no SQL", func(w *world) {
			w.statement = func(s plugin.Statement) engine.Statement { return engine.Statement{ID: s.ID, SQL: "  "} }
		}, "has no SQL"},
		{"unknown type", func(w *world) { w.wanted[0].Binds[0].Type = "uuid" }, "unknown type"},
		{"bind order", func(w *world) {
			w.statement = func(s plugin.Statement) engine.Statement {
				return engine.Statement{ID: s.ID, SQL: "x", Binds: s.Binds, BindOrder: []int{1}}
			}
		}, "orders a bind"},
		{"another id", func(w *world) {
			w.statement = func(plugin.Statement) engine.Statement { return engine.Statement{ID: "evil", SQL: "x"} }
		}, "stands where"},
		{"unsupported kind", func(w *world) { w.kinds = []engine.Kind{engine.KindInsert} }, "does not support POINT_LOOKUP"},
		{"too many", func(w *world) { w.wanted = make([]plugin.Statement, maxStatements+1) }, "more than"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld()
			w.add("orders", engine.Column{Name: "id", Type: engine.TypeI64}, engine.Column{Name: "note", Type: engine.TypeText})
			tc.change(w)
			_, err := Plan(t.Context(), w.deps(), scenario(), nil)
			var e *engine.Error
			if !errors.As(err, &e) || !strings.Contains(e.Error(), tc.words) {
				t.Fatalf("%v, want %q", err, tc.words)
			}
		})
	}
}

// TestNotesAreReadable: what an adapter says is bounded, and text.
func TestNotesAreReadable(t *testing.T) {
	got := readable(append([]string{"a\x1b[2J\u202eb\nc", "käse" + strings.Repeat("x", maxNote-6) + "ä"},
		make([]string, 1000)...))
	if len(got) != maxNotes || got[0] != "a[2Jb c" || len(got[1]) != maxNote-1 || !utf8.ValidString(got[1]) {
		t.Errorf("%d notes, %q, %d bytes", len(got), got[0], len(got[1]))
	}
}

func TestConversations(t *testing.T) {
	table := []engine.Column{{Name: "id", Type: engine.TypeI64}, {Name: "note", Type: engine.TypeText}}
	t.Run("results come back", func(t *testing.T) {
		w := newWorld()
		w.add("orders", table...)
		w.rounds, w.queries = maxRounds-1, []plugin.Query{{ID: "q", SQL: "SELECT max(id) FROM orders"}}
		if _, err := Plan(t.Context(), w.deps(), scenario(), nil); err != nil || len(w.sql) != maxRounds-1 {
			t.Fatalf("%v, %v", err, w.sql)
		}
	})
	t.Run("an adapter that never ends", func(t *testing.T) {
		w := newWorld()
		w.rounds, w.queries = 100, []plugin.Query{{ID: "q", SQL: "SELECT 1"}}
		_, err := Plan(t.Context(), w.deps(), scenario(), nil)
		fails(t, err, engine.CodePlugin, "", "after 8 rounds")
	})
	t.Run("an adapter that reads without end", func(t *testing.T) {
		w := newWorld()
		w.rounds, w.queries = 1, []plugin.Query{{ID: "q", SQL: "SELECT repeat('x', 1000000) FROM generate_series(1, 1000000)",
			TimeoutMs: 1 << 62}}
		_, err := Plan(t.Context(), w.deps(), scenario(), nil)
		fails(t, err, engine.CodePlugin, "", `the rows of its query "q" have more than 8 MB`)
	})
	t.Run("an adapter that reads much with many queries", func(t *testing.T) {
		w := newWorld()
		w.rounds = 1
		for i := range 30 {
			w.queries = append(w.queries, plugin.Query{ID: fmt.Sprint(i), SQL: "SELECT large"})
		}
		_, err := Plan(t.Context(), w.deps(), scenario(), nil)
		fails(t, err, engine.CodePlugin, "",
			"the answers to its queries have more than 16 MB together, the quota of one conversation")
		if len(w.sql) != 16 {
			t.Errorf("%d queries were run", len(w.sql))
		}
	})
	t.Run("an adapter whose samples are many", func(t *testing.T) {
		p := planner{resolved: &resolved{adapter: fakeAdapter{newWorld()}}}
		pool := engine.Pool{Rows: [][]any{{strings.Repeat("x", 4<<20)}}}
		var err error
		for n := 0; n < 4 && err == nil; n++ {
			err = p.keep(pool)
		}
		fails(t, err, engine.CodePlugin, "", "its samples of keys have more than 16 MB together, the quota of a run")
	})
	t.Run("an adapter that writes", func(t *testing.T) {
		w := newWorld()
		w.rounds, w.queries = 1, []plugin.Query{{ID: "q", SQL: "DELETE FROM orders"}}
		_, err := Plan(t.Context(), w.deps(), scenario(), nil)
		fails(t, err, engine.CodePlugin, "", "may only read")
		if len(w.sql) != 0 {
			t.Fatalf("executed %v", w.sql)
		}
	})
	t.Run("an error of the database is the adapter's to judge", func(t *testing.T) {
		w := newWorld()
		w.add("orders", table...)
		w.rounds, w.queries, w.queryErr = 1, []plugin.Query{{ID: "q", SQL: "SELECT 1"}}, errors.New("timeout")
		if _, err := Plan(t.Context(), w.deps(), scenario(), nil); err != nil {
			t.Fatal(err)
		}
	})
}

func TestWhatReads(t *testing.T) {
	cases := map[string]bool{
		"SELECT 1": true, " select * from t where a = 'delete'": true, "WITH x AS (SELECT 1) SELECT * FROM x;": true,
		"(SELECT 1)": true, "SHOW server_version": true,
		"/* note */ SELECT \"update\" FROM t": true, "-- note\nSELECT 1": true,
		"WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x": false, "SELECT 1; DROP TABLE t": false,
		"DROP TABLE t": false, "": false,
		"WITH a AS (SELECT 1 /* ' */), d AS (DELETE FROM t RETURNING 1) SELECT '' FROM d": false,
		"SELECT E'\\'', d FROM (DELETE FROM t) AS d --'":                                  false,
		"SELECT $$ ' $$, 1; DELETE FROM t --'":                                            false,
		"SELECT $a$ delete $a$":                                                           true,
		"SELECT 1 -- ; delete\n":                                                          true,
		"SELECT pg_read_file('/etc/passwd')":                                              false,
		"SELECT \"pg_terminate_backend\" (1)":                                             false,
		"SELECT pg_catalog.set_config('a', 'b', false)":                                   false,
		"SELECT U&\"pg_sleep\" UESCAPE '!' (1)":                                           false,
		"SELECT (ARRAY[1])[1:pg_sleep(1)]":                                                false,
		"SELECT (ARRAY[1])[1:U&\"pg_sleep\"(1)]":                                          false,
		"SELECT TREAT(1 AS pg_sleep)":                                                     false,
		"SELECT E'a'\n'\\', ', pg_sleep(1), '--'":                                         false,
		"SELECT (ARRAY[1])[1:length('a')]":                                                true,
		"SELECT U&\"p\\0067_sleep\"(1)":                                                   false,
		"SELECT lo_import('x')":                                                           false,
		"SELECT pg_try_advisory_lock(1)":                                                  false,
		"SELECT lower('x'), locate FROM t":                                                true, "SELECT '": false,
		"SELECT /* /* */ 1":   false,
		"SELECT nextval('s')": false, "EXPLAIN ANALYZE SELECT 1": false, "COPY t TO STDOUT": false,
		"SELECT * INTO x FROM t": false, "DO $$ $$": false,
	}
	for sql, want := range cases {
		if got := notReadOnly(sql, sqltext.Postgres) == ""; got != want {
			t.Errorf("%q reads only: %v, want %v (%s)", sql, got, want, notReadOnly(sql, sqltext.Postgres))
		}
	}
}

func TestMoreConnectionsThanTheTargetAllows(t *testing.T) {
	w := newWorld()
	w.maxConns = 3
	_, err := Plan(t.Context(), w.deps(), scenario(), nil)
	fails(t, err, engine.CodeInvalid, "workload.concurrent_connections", "more than the 3")
}

func TestPreflightSaysWhatWouldHappen(t *testing.T) {
	w := newWorld()
	p, err := Inspect(t.Context(), w.deps(), prepared(500, engine.IfExistsUse), true)
	if err != nil || !p.OK || len(p.Creates) != 1 || p.Creates[0].Rows != 500 || p.Plan == nil || len(w.sql) != 0 {
		t.Fatalf("%+v, %v, %v", p, err, w.sql)
	}
	w.add("orders", engine.Column{Name: "id", Type: engine.TypeI64})
	if p, err = Inspect(t.Context(), w.deps(), prepared(500, engine.IfExistsRecreate), true); err != nil || !p.OK ||
		!p.Creates[0].Drops || len(w.sql) != 0 {
		t.Fatalf("%+v, %v, %v", p, err, w.sql)
	}
	p, err = Inspect(t.Context(), w.deps(), scenario(), true)
	if err != nil || p.OK || p.Plan != nil || !slices.ContainsFunc(p.Checks, func(c CheckResult) bool {
		return c.Outcome == CheckFailed && c.Field == "target.table_name" && c.Fix != ""
	}) {
		t.Fatalf("%+v, %v", p, err)
	}
}

func TestIsolationLevelIsTheAdaptersToSet(t *testing.T) {
	for _, c := range []struct {
		level string
		able  bool
		says  string
	}{{"", false, ""}, {engine.IsolationDefault, false, ""}, {"serializable", true, ""},
		{"serializable", false, "cannot set the isolation level serializable"}} {
		w := newWorld()
		w.isolates = c.able
		sc := prepared(10, engine.IfExistsUse)
		sc.Workload.IsolationLevel = c.level
		_, err := Plan(t.Context(), w.deps(), sc, nil)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%q: %v", c.level, err)
		}
	}
}

// TestAPluginThatMayNotBeUsed: the field is named, and who can help.
func TestAPluginThatMayNotBeUsed(t *testing.T) {
	for _, sentinel := range []error{plugin.ErrDisabled, plugin.ErrDamaged} {
		w := newWorld()
		w.refused = &engine.Error{Code: engine.CodePlugin, Message: "The plugin mix@1 is out of use.",
			Hint: "An admin can help.", Cause: sentinel}
		err := Check(t.Context(), w.deps(), scenario())
		fails(t, err, engine.CodePlugin, "workload.plugin", "An admin can help.")
		if !errors.Is(err, sentinel) {
			t.Errorf("%v is not %v", err, sentinel)
		}
	}
	w := newWorld()
	w.refused = plugin.ErrNotFound
	fails(t, Check(t.Context(), w.deps(), scenario()), engine.CodePlugin, "workload.plugin", "no plugin of that name")
}

// TestAPoolerIsSaidBesideTheFigures: every operation costs the server a parse there.
func TestAPoolerIsSaidBesideTheFigures(t *testing.T) {
	for _, pooler := range []string{"", "The connection goes through a pooler."} {
		w := newWorld()
		w.pooler = pooler
		w.add("orders", engine.Column{Name: "id", Type: engine.TypeI64}, engine.Column{Name: "note", Type: engine.TypeText})
		p, err := Plan(t.Context(), w.deps(), scenario(), nil)
		if err != nil || slices.Contains(p.Notes, pooler) != (pooler != "") ||
			slices.Contains(p.Remarks, pooler) != (pooler != "") {
			t.Errorf("%q: %v, %+v", pooler, err, p)
		}
	}
}
