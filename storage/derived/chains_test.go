package derived_test

import (
	"context"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
)

// TestATableOfTablesLacksNoRun: a table that reads another one and is refreshed before that one has a new run has the
// run after the next refresh; so it has what another definition of that one gives, though no run has changed.
func TestATableOfTablesLacksNoRun(t *testing.T) {
	d, owner, _ := open(t)
	epoch := int64(100)
	made := func(table refresh.Table) refresh.Result {
		t.Helper()
		epoch++
		r, err := d.Materialize(t.Context(), table, claim(table.Name, "", epoch), held)
		if err != nil {
			t.Fatalf("%s: %v", table.Name, err)
		}
		return r
	}
	below := refresh.Table{Name: "below", Kind: refresh.SQL, Definition: "SELECT run_id, 1 AS n FROM rollup.runs",
		PartitionBy: refresh.ByRun, Mode: refresh.Auto, Version: 1, Sources: []string{"runs"}}
	above := refresh.Table{Name: "above", Kind: refresh.SQL, Definition: "SELECT run_id, n FROM tables.below",
		PartitionBy: refresh.ByRun, Mode: refresh.Auto, Version: 1, Sources: []string{"below"}}
	r, _ := oneRun("a", 30)
	put(t, d, r, 1)
	made(below)
	r, _ = oneRun("b", 30)
	put(t, d, r, 2)
	made(above)
	if result := made(below); result.Mode != refresh.Incremental {
		t.Errorf("below: %+v", result)
	}
	if result := made(above); result.Mode != refresh.Full || !strings.Contains(result.Note, `reads the table "below"`) {
		t.Errorf("above: %+v", result)
	}
	if n := count(t, owner, "SELECT count(*) FROM tables.above"); n != 2 {
		t.Errorf("above has %d runs of 2", n)
	}
	below.Definition, below.Version = "SELECT run_id, 2 AS n FROM rollup.runs", 2
	made(below)
	made(above)
	if n := count(t, owner, "SELECT sum(n) FROM tables.above"); n != 4 {
		t.Errorf("above has %d of the new definition, not 4", n)
	}
	above.Mode = refresh.Incremental
	if err := d.CheckMode(t.Context(), above); !engine.HasCode(err, engine.CodeInvalid) ||
		!strings.Contains(engine.ErrorText(err), `reads the table "below"`) {
		t.Errorf("INCREMENTAL: %v", err)
	}
	if err := d.CheckMode(t.Context(), below); err != nil {
		t.Error(err)
	}
}

// TestATableThatIsMadeAgainBeginsAnew: what is left of a table of the same name, version and columns is none of it: its
// drop came no further than the control store, or that was restored.
func TestATableThatIsMadeAgainBeginsAnew(t *testing.T) {
	d, owner, _ := open(t)
	r, _ := oneRun("a", 30)
	put(t, d, r, 1)
	for i, n := range []string{"1", "2"} {
		table := refresh.Table{Name: "again", Kind: refresh.SQL, Definition: "SELECT run_id, " + n + " AS n FROM rollup.runs",
			PartitionBy: refresh.ByRun, Mode: refresh.Auto, Version: 1, Sources: []string{"runs"}}
		if _, err := d.Materialize(t.Context(), table, claim("again", "", int64(10+i)), held); err != nil {
			t.Fatal(err)
		}
	}
	if n := count(t, owner, "SELECT sum(n) FROM tables.again"); n != 2 {
		t.Errorf("it holds %d of the definition of 2", n)
	}
}

// TestWhatHoldsATableIsNamed: a view of an administrator's on a table that gets other columns, or is dropped, is left
// and named; the rows are those from before.
func TestWhatHoldsATableIsNamed(t *testing.T) {
	d, owner, _ := open(t)
	table := refresh.Table{Name: "held", Kind: refresh.SQL, Definition: "SELECT 1 AS a", Mode: refresh.Full, Version: 1}
	if _, err := d.Materialize(t.Context(), table, claim("held", "", 1), held); err != nil {
		t.Fatal(err)
	}
	if _, err := owner.Exec(t.Context(), `CREATE SCHEMA of_an_administrator
		CREATE VIEW seen AS TABLE tables.held`); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = owner.Exec(context.Background(), "DROP SCHEMA IF EXISTS of_an_administrator CASCADE")
	})
	table.Definition, table.Version = "SELECT 1 AS a, 2 AS b", 2
	_, changed := d.Materialize(t.Context(), table, claim("held", "", 2), held)
	for what, err := range map[string]error{"changing it": changed, "dropping it": d.Drop(t.Context(), "held")} {
		if !engine.HasCode(err, engine.CodeConflict) ||
			!strings.Contains(engine.ErrorText(err), "view of_an_administrator.seen depends on") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if n := count(t, owner, "SELECT sum(a) FROM tables.held"); n != 1 {
		t.Errorf("its rows are %d", n)
	}
	if _, err := owner.Exec(t.Context(), "DROP VIEW of_an_administrator.seen"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Materialize(t.Context(), table, claim("held", "", 3), held); err != nil {
		t.Error(err)
	}
}
