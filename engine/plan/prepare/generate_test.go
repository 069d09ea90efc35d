package prepare

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// generating is a world whose database makes the rows of the workload's table.
func generating() *world {
	w := newWorld()
	w.supports = &plugin.Supports{GeneratesRows: true}
	for i := range w.logical[0].Columns {
		w.logical[0].Columns[i].Fill = &plugin.Fill{As: "number"}
	}
	return w
}

func TestTheDatabaseMakesTheRows(t *testing.T) {
	w := generating()
	var done []int64
	p, err := Plan(t.Context(), w.deps(), prepared(2500, engine.IfExistsUse), func(p engine.PrepareProgress) {
		if p.Step == "load" {
			done = append(done, p.RowsDone)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"CREATE TABLE orders", "INSERT INTO orders SELECT orders", "INSERT INTO orders SELECT orders",
		"INSERT INTO orders SELECT orders", "ANALYZE orders"}; !slices.Equal(w.sql, want) || w.loaded != 0 {
		t.Fatalf("%v, %d rows copied", w.sql, w.loaded)
	}
	if done[0] != 0 || done[len(done)-1] != 2500 ||
		!slices.ContainsFunc(p.Notes, func(n string) bool { return strings.Contains(n, "made 2500 sample rows") }) {
		t.Errorf("%v, %v", done, p.Notes)
	}
}

func TestRowsAreCopiedWhereTheyHaveToBe(t *testing.T) {
	for name, change := range map[string]func(*world, *engine.Scenario){
		"asked for":                    func(_ *world, sc *engine.Scenario) { sc.Target.Prepare.Load = engine.LoadCopy },
		"a column that only rows tell": func(w *world, _ *engine.Scenario) { w.logical[0].Columns[1].Fill = nil },
		"a table type that cannot":     func(w *world, _ *engine.Scenario) { w.supports = nil },
	} {
		t.Run(name, func(t *testing.T) {
			w, sc := generating(), prepared(2500, engine.IfExistsUse)
			change(w, &sc)
			if _, err := Plan(t.Context(), w.deps(), sc, nil); err != nil || w.loaded != 2500 {
				t.Fatalf("%d rows copied, %v", w.loaded, err)
			}
		})
	}
}

func TestGeneratingIsUndone(t *testing.T) {
	w := generating()
	ctx, cancel := context.WithCancel(t.Context())
	w.execErr = map[string]error{"INSERT": errors.New("cancelled")}
	cancel()
	if _, err := Plan(ctx, w.deps(), prepared(10, engine.IfExistsUse), nil); !errors.Is(err, context.Canceled) ||
		len(w.tables) != 0 {
		t.Fatalf("%v, left %v", err, w.tables)
	}
}

func TestATableFilledThroughAnother(t *testing.T) {
	w := newWorld()
	w.final = "orders_loadstone_served"
	w.execErr = map[string]error{"ANALYZE": errors.New("no")}
	_, err := Plan(t.Context(), w.deps(), prepared(10, engine.IfExistsUse), nil)
	fails(t, err, engine.CodeTarget, "", "no")
	if len(w.tables) != 0 {
		t.Fatalf("left %v after %v", w.tables, w.sql)
	}
}

// TestARefusalComesBeforeAnything: what a table type cannot do is known before
// the target is touched, and the field and the cure are named.
func TestARefusalComesBeforeAnything(t *testing.T) {
	write := plugin.Statement{ID: "set", Kind: engine.KindUpdate, Table: "main", Writes: true, Param: "weights.UPDATE"}
	call := plugin.Statement{ID: "call", Kind: engine.KindGenericSQL, Writes: true}
	for name, tc := range map[string]struct {
		statement plugin.Statement
		field     string
	}{"a kind": {write, "workload.params.weights.UPDATE"}, "a statement that writes": {call, "workload.plugin"}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.kinds = []engine.Kind{engine.KindPointLookup, engine.KindGenericSQL}
			w.supports = &plugin.Supports{ReadOnly: true, Reason: "it is read only", Instead: "read"}
			w.wanted = append(w.wanted, tc.statement)
			_, err := Plan(t.Context(), w.deps(), prepared(10, engine.IfExistsUse), nil)
			fails(t, err, engine.CodeInvalid, tc.field, "it is read only")
			fails(t, Check(t.Context(), w.deps(), prepared(10, engine.IfExistsUse)), engine.CodeInvalid, tc.field, "(read)")
			f, err := Inspect(t.Context(), w.deps(), prepared(10, engine.IfExistsUse), true)
			if err != nil || f.OK || f.Checks[0].Field != tc.field {
				t.Errorf("preflight: %+v, %v", f, err)
			}
			if len(w.sql) != 0 || len(w.requests) != 0 {
				t.Errorf("the target was touched: %v, %v", w.sql, w.requests)
			}
		})
	}
}

func TestWhatAnAdapterRefuses(t *testing.T) {
	w := newWorld()
	w.logical = append(w.logical, w.logical[0])
	w.logical[1].Name = "second"
	w.refusal = &plugin.Refusal{Field: "target.params.cluster_by", Message: "no column \x1b[2Jx", Hint: "name another"}
	sc := prepared(0, engine.IfExistsUse)
	sc.Target.TableName = ""
	_, err := Plan(t.Context(), w.deps(), sc, nil)
	fails(t, err, engine.CodeInvalid, "target.params.cluster_by", "no column [2Jx")
	if len(w.sql) != 0 {
		t.Errorf("something was made: %v", w.sql)
	}
}

func TestAdapterParameters(t *testing.T) {
	w := newWorld()
	w.adapterParams = `{"type":"object","additionalProperties":false,"properties":{"transient":{"type":"boolean","default":true},"key":{"type":"array","items":{"type":"string"}}}}`
	sc := scenario()
	w.add("orders", engine.Column{Name: "id", Type: engine.TypeI64}, engine.Column{Name: "note", Type: engine.TypeText})
	sc.Target.Params = json.RawMessage(`{"key":["a"]}`)
	if _, err := Plan(t.Context(), w.deps(), sc, nil); err != nil {
		t.Fatal(err)
	}
	for _, req := range w.requests {
		if string(req.Params) != `{"key":["a"],"transient":true}` {
			t.Errorf("%s got %s", req.Op, req.Params)
		}
	}
	sc.Target.Params = json.RawMessage(`{"kye":["a"]}`)
	_, err := Plan(t.Context(), w.deps(), sc, nil)
	fails(t, err, engine.CodeInvalid, "target.params.kye", "key")
}

func TestPreflightShowsTheDDL(t *testing.T) {
	w := generating()
	f, err := Inspect(t.Context(), w.deps(), prepared(10, engine.IfExistsUse), true)
	if err != nil || !f.OK || len(f.Creates) != 1 ||
		!slices.Equal(f.Creates[0].DDL, []string{"CREATE TABLE orders", "ANALYZE orders"}) {
		t.Fatalf("%+v, %v", f, err)
	}
	if !slices.ContainsFunc(f.Checks,
		func(c CheckResult) bool { return strings.Contains(c.Message, "made by the database itself") }) {
		t.Errorf("%+v", f.Checks)
	}
}
