package prepare

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// bank is a world whose workload has three tables, sized by scale.
func bank(prefix string, prep *engine.Prepare) (*world, engine.Scenario) {
	w := newWorld()
	id := []plugin.LogicalColumn{{Name: "id", Type: engine.TypeI64}, {Name: "note", Type: engine.TypeText}}
	w.logical = []plugin.LogicalTable{
		{Name: "history", Columns: id, Empty: true, Varies: true},
		{Name: "accounts", Columns: id, Key: []string{"id"}, Rows: 3000, SizedBy: "scale"},
		{Name: "branches", Columns: id, Key: []string{"id"}, Rows: 3, SizedBy: "scale"},
	}
	w.wanted = []plugin.Statement{{ID: "total", Kind: engine.KindGenericSQL, Table: "accounts",
		SQL: map[string]string{"*": "SELECT {table} {table:branches}"}}}
	w.statement = func(s plugin.Statement) engine.Statement { return engine.Statement{ID: s.ID, SQL: "by the adapter"} }
	w.answers = func([]engine.Statement) []engine.Statement { return nil }
	w.schema = `{"type":"object","properties":{"scale":{"type":"integer","minimum":1,"default":3}}}`
	sc := scenario()
	sc.Target.TableName, sc.Target.Prepare = prefix, prep
	return w, sc
}

// grown puts tables of these rows into the world, as (history, accounts, branches).
func (w *world) grown(rows ...int64) {
	for i, t := range w.logical {
		if i < len(rows) && rows[i] >= 0 {
			w.add(t.Name, engine.Column{Name: "id", Type: engine.TypeI64}, engine.Column{Name: "note", Type: engine.TypeText})
			w.tables[t.Name].Rows, w.tables[t.Name].RowsExact = rows[i], true
		}
	}
}

func TestSeveralTablesAreMadeInTheirOrderAndCountedTogether(t *testing.T) {
	w, sc := bank("bench_", &engine.Prepare{IfExists: engine.IfExistsUse})
	var messages []string
	var last int64
	p, err := Plan(t.Context(), w.deps(), sc, func(p engine.PrepareProgress) {
		if p.Step == "load" {
			messages = append(messages, p.Message)
			if p.RowsTotal != 3003 || p.RowsDone < last {
				t.Errorf("%d of %d rows after %d", p.RowsDone, p.RowsTotal, last)
			}
			last = p.RowsDone
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"CREATE TABLE bench_history", "ANALYZE bench_history", "CREATE TABLE bench_accounts",
		"ANALYZE bench_accounts", "CREATE TABLE bench_branches", "ANALYZE bench_branches"}
	if !slices.Equal(w.sql, want) || w.loaded != 3003 || last != 3003 {
		t.Errorf("%q, %d rows, %d reported", w.sql, w.loaded, last)
	}
	if len(messages) == 0 || messages[0] != "Loading sample rows into bench_accounts (2 of 3)" {
		t.Errorf("%q", messages)
	}
	if got := p.Plan.Statements[0].SQL; got != "SELECT bench_accounts bench_branches" {
		t.Errorf("the statement is %q", got)
	}
}

func TestNamesOfSeveralTables(t *testing.T) {
	for prefix, want := range map[string]string{"": "accounts", "bench_": "bench_accounts", " s. ": "s.accounts",
		`"Mine".`: `"Mine".accounts`, "s.b_": "s.b_accounts"} {
		w, sc := bank(prefix, &engine.Prepare{IfExists: engine.IfExistsUse})
		if _, err := Plan(t.Context(), w.deps(), sc, nil); err != nil || w.tables[want] == nil {
			t.Errorf("%q: %v, %v", prefix, err, w.sql)
		}
	}
	for _, prefix := range []string{"orders", `"Quoted"`, "s.x"} {
		w, sc := bank(prefix, nil)
		_, err := Plan(t.Context(), w.deps(), sc, nil)
		fails(t, err, engine.CodeInvalid, "target.table_name", "does not end in _ or a dot")
		if len(w.sql) != 0 {
			t.Errorf("%q executed %q", prefix, w.sql)
		}
	}
}

func TestRowsThatContradictTheParameters(t *testing.T) {
	for rows, words := range map[int64]string{0: "", 3000: "", 5: "3000 in accounts"} {
		w, sc := bank("", &engine.Prepare{Rows: rows, IfExists: engine.IfExistsUse})
		_, err := Plan(t.Context(), w.deps(), sc, nil)
		if words == "" {
			if err != nil {
				t.Errorf("%d: %v", rows, err)
			}
			continue
		}
		fails(t, err, engine.CodeInvalid, "target.prepare.rows", words)
	}
	// A table that leaves its rows open gets those of the document, or the default.
	for rows, want := range map[int64]int64{0: defaultRows + 3, 7: 10} {
		w, sc := bank("", &engine.Prepare{Rows: rows, IfExists: engine.IfExistsUse})
		w.logical[1].Rows = 0
		if _, err := Plan(t.Context(), w.deps(), sc, nil); err != nil || w.loaded != want {
			t.Errorf("%d: %v, %d rows", rows, err, w.loaded)
		}
	}
}

func TestExistingTablesOfSeveral(t *testing.T) {
	use, recreate, fail := &engine.Prepare{IfExists: engine.IfExistsUse},
		&engine.Prepare{IfExists: engine.IfExistsRecreate}, &engine.Prepare{IfExists: engine.IfExistsFail}
	cases := []struct {
		name  string
		prep  *engine.Prepare
		rows  []int64 // −1: not there
		field string
		words string // of the error; "" for none
		hint  string
		sql   int
	}{
		{"all there", use, []int64{12, 3000, 3}, "", "", "", 0},
		{"all there, nothing asked", nil, []int64{0, 3000, 3}, "", "", "", 0},
		{"made again", recreate, []int64{12, 5, 3}, "", "", "", 9},
		{"some made, some made again", recreate, []int64{-1, 5, -1}, "", "", "", 7},
		{"must not exist", fail, []int64{12, 3000, 3}, "target.prepare.if_exists", "exists already", "", 0},
		{"one is missing", use, []int64{12, -1, 3}, "target.prepare.if_exists", "accounts is missing", "recreate", 0},
		{"none is there", nil, nil, "target.table_name", "does not exist", "if_exists: use", 0},
		{"another scale", use, []int64{12, 1000, 1}, "workload.params.scale",
			"The table accounts in the database db of the connection playground has 1000 rows, and scale 3 wants 3000",
			"set it to 1 to use", 0},
		{"another scale, nothing asked", nil, []int64{12, 6000, 6}, "workload.params.scale", "scale 3 wants 3000",
			"set it to 6", 0},
		{"no scale at all", use, []int64{12, 1234, 1}, "workload.params.scale", "1234 rows", "recreate", 0},
		{"empty", use, []int64{0, 0, 3}, "workload.params.scale", "has 0 rows", "recreate", 0},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			w, sc := bank("", tc.prep)
			w.grown(tc.rows...)
			_, err := Plan(t.Context(), w.deps(), sc, nil)
			if tc.words == "" {
				if err != nil {
					t.Fatal(err)
				}
			} else {
				fails(t, err, engine.CodeTarget, tc.field, tc.words)
				var e *engine.Error
				if errors.As(err, &e) && !strings.Contains(e.Fields[0].Hint, tc.hint) {
					t.Errorf("the hint is %q", e.Fields[0].Hint)
				}
			}
			if len(w.sql) != tc.sql {
				t.Errorf("executed %q", w.sql)
			}
			w.sql = nil
			f, err := Inspect(t.Context(), w.deps(), sc, true)
			if err != nil || len(w.sql) != 0 {
				t.Fatalf("the preflight: %v, executed %q", err, w.sql)
			}
			if tc.sql == 0 && f.OK != (tc.words == "") {
				t.Errorf("the preflight says %v: %+v", f.OK, f.Checks)
			}
		})
	}
}

func TestATableWithoutItsKey(t *testing.T) {
	w, sc := bank("", &engine.Prepare{IfExists: engine.IfExistsUse})
	w.grown(0, 3000, 3)
	w.tables["branches"].Key = nil
	_, err := Plan(t.Context(), w.deps(), sc, nil)
	fails(t, err, engine.CodeTarget, "target.prepare.if_exists",
		"The table branches in the database db of the connection playground has no primary key")
	sc.Target.Prepare = nil
	p, err := Plan(t.Context(), w.deps(), sc, nil)
	if err != nil || !strings.Contains(strings.Join(p.Notes, " "),
		"branches in the database db of the connection playground has no primary key") {
		t.Errorf("used on purpose: %v", err)
	}
}

func TestAnEstimateMayBeOffALittle(t *testing.T) {
	for rows, ok := range map[int64]bool{2900: true, 3100: true, 1000: false} {
		w, sc := bank("", nil)
		w.grown(0, rows, 3)
		w.tables["accounts"].RowsExact = false
		if _, err := Plan(t.Context(), w.deps(), sc, nil); (err == nil) != ok {
			t.Errorf("about %d rows: %v", rows, err)
		}
	}
}

func TestWhenOneTableFailsNoneIsLeft(t *testing.T) {
	w, sc := bank("", &engine.Prepare{IfExists: engine.IfExistsUse})
	w.execErr = map[string]error{"CREATE TABLE branches": errors.New("disk full")}
	_, err := Plan(t.Context(), w.deps(), sc, nil)
	fails(t, err, engine.CodeTarget, "", "disk full")
	if len(w.tables) != 0 {
		t.Errorf("%d tables are left", len(w.tables))
	}
	w, sc = bank("", &engine.Prepare{IfExists: engine.IfExistsUse})
	w.rowsErr, w.rowsLeft = plugin.ErrEnded, 1024
	_, err = Plan(t.Context(), w.deps(), sc, nil)
	fails(t, err, engine.CodePlugin, "", "making sample rows")
	if len(w.tables) != 0 {
		t.Errorf("%d tables are left", len(w.tables))
	}
}

func TestNumberParam(t *testing.T) {
	for doc, want := range map[string]int64{`{"scale":7}`: 7, `{"scale":7.5}`: 0, `{"scale":"7"}`: 0, `{}`: 0, ``: 0,
		`[]`: 0} {
		if got := numberParam(json.RawMessage(doc), "scale"); got != want {
			t.Errorf("%s: %d", doc, got)
		}
	}
}
