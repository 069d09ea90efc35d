package prepare

import (
	"slices"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// TestATerseAdapter: an adapter may answer with ids and SQL alone, in its own
// order, without the statements that brought their SQL, and know neither session
// nor classify_error.
func TestATerseAdapter(t *testing.T) {
	w := newWorld()
	w.add("orders", engine.Column{Name: "id", Type: engine.TypeI64}, engine.Column{Name: "note", Type: engine.TypeText})
	bind := []engine.Bind{{Name: "id", Type: engine.TypeI64, Column: "id"}}
	w.wanted = []plugin.Statement{
		{ID: "get", Kind: engine.KindPointLookup, Table: "main", Binds: bind},
		{ID: "del", Kind: engine.KindDelete, Table: "main", Binds: bind, Columns: []string{"id"}, Writes: true},
		{ID: "own", Kind: engine.KindGenericSQL, Table: "main", SQL: map[string]string{"*": "SELECT count(*) FROM {table}"}},
	}
	w.statement = func(s plugin.Statement) engine.Statement {
		return engine.Statement{ID: s.ID, SQL: "SELECT '" + s.ID + "'"}
	}
	w.answers = func(list []engine.Statement) []engine.Statement {
		list = list[:2]
		slices.Reverse(list)
		return list
	}
	w.mute = true
	sc := scenario()
	sc.Target.AllowWrites = true
	p, err := Plan(t.Context(), w.deps(), sc, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := p.Plan.Statements
	if len(got) != 3 || got[0].SQL != "SELECT 'get'" || got[2].SQL != "SELECT count(*) FROM orders" {
		t.Fatalf("%+v", got)
	}
	if d := got[1]; d.ID != "del" || d.Kind != engine.KindDelete || d.Table != "main" || !d.Writes || len(d.Binds) != 1 ||
		len(d.Columns) != 1 {
		t.Errorf("%+v", d)
	}
	if notes := strings.Join(p.Notes, " "); !strings.Contains(notes, "session") ||
		!strings.Contains(notes, "classify_error") {
		t.Errorf("what the adapter did not answer is not noted: %s", notes)
	}
}

func TestATableNameIsRequiredOnlyForTables(t *testing.T) {
	w := newWorld()
	sc := scenario()
	sc.Target.TableName = ""
	_, err := Plan(t.Context(), w.deps(), sc, nil)
	fails(t, err, engine.CodeInvalid, "target.table_name", "is required")
	w.logical, w.wanted = nil, []plugin.Statement{{ID: "one", Kind: engine.KindGenericSQL}}
	if _, err := Plan(t.Context(), w.deps(), sc, nil); err != nil {
		t.Errorf("a workload without tables: %v", err)
	}
}
