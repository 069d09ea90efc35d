package prepare

import (
	"slices"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

func TestRightsOfAStatement(t *testing.T) {
	for _, c := range []struct {
		kind    engine.Kind
		dialect string
		sql     string
		want    string
	}{
		{engine.KindPointLookup, "snowflake", "", ""},
		{engine.KindUpdate, "snowflake", "", "UPDATE"},
		{engine.KindDelete, "postgres", "DELETE FROM t WHERE id = $1", "DELETE"},
		{engine.KindInsert, "postgres", "INSERT INTO t (a) VALUES ($1) ON CONFLICT (a) DO UPDATE SET b = 1", "INSERT UPDATE"},
		{engine.KindGenericSQL, "snowflake",
			"SELECT INSERT(a, 1, 2, 'x'), TRUNCATE(b, 2), 'delete from t', \"update\" FROM t -- update t\n", ""},
		{engine.KindGenericSQL, "snowflake", "/* first */ update t set a = 1", "UPDATE"},
		{engine.KindGenericSQL, "postgres", "WITH old AS (DELETE FROM t RETURNING *) INSERT INTO u SELECT * FROM old",
			"INSERT DELETE"},
		{engine.KindGenericSQL, "postgres", "WITH x AS (SELECT 1) UPDATE t SET a = 1", "UPDATE"},
		{engine.KindGenericSQL, "snowflake",
			"MERGE INTO t USING s ON t.a = s.a WHEN MATCHED AND s.b THEN DELETE WHEN MATCHED THEN UPDATE SET a = 1 WHEN NOT " +
				"MATCHED THEN INSERT (a) VALUES (1)", "INSERT UPDATE DELETE"},
		{engine.KindGenericSQL, "snowflake", "INSERT OVERWRITE INTO t SELECT 1", "INSERT"},
		{engine.KindGenericSQL, "postgres", "TRUNCATE t", "TRUNCATE"},
		{engine.KindPointLookup, "postgres", "SELECT a FROM t WHERE id = $1 FOR NO KEY UPDATE", "UPDATE"},
		{engine.KindPointLookup, "snowflake", "SELECT a FROM t WHERE id = ? FOR UPDATE", ""},
		{engine.KindGenericSQL, "snowflake", "SELECT updated FROM t WHERE deleted = ?", ""},
	} {
		s := plugin.Statement{Kind: c.kind}
		if c.sql != "" {
			// The other dialect's text says nothing.
			s.SQL = map[string]string{c.dialect: c.sql, "other": "TRUNCATE t"}
		}
		if got := strings.Join(rightsOf(&s, c.dialect), " "); got != c.want {
			t.Errorf("%s %q: %q, expected %q", c.kind, c.sql, got, c.want)
		}
	}
}

// TestPreflightTellsWhatTheRunDoes: the adapter learns the kinds, and the rights for each table under its own name.
func TestPreflightTellsWhatTheRunDoes(t *testing.T) {
	w := newWorld()
	w.preflight = suspended()
	w.logical = append(w.logical,
		plugin.LogicalTable{Name: "lines", Key: []string{"id"},
			Columns: []plugin.LogicalColumn{{Name: "id", Type: engine.TypeI64}}})
	w.wanted = append(w.wanted, plugin.Statement{ID: "put", Kind: engine.KindInsert, Table: "lines"},
		plugin.Statement{ID: "change", Kind: engine.KindUpdate, Table: "lines"},
		plugin.Statement{ID: "odd", Kind: engine.KindGenericSQL})
	sc := scenario()
	sc.Target.TableName = "bench_"
	sc.Target.Prepare = &engine.Prepare{IfExists: engine.IfExistsRecreate}
	if _, err := Inspect(t.Context(), w.deps(), sc, true); err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(w.requests, func(r plugin.AdapterRequest) bool { return r.Op == plugin.OpPreflight })
	r := w.requests[at]
	if !slices.Equal(r.Kinds, []engine.Kind{engine.KindPointLookup, engine.KindInsert, engine.KindUpdate,
		engine.KindGenericSQL}) || !r.Prepare || !r.Recreate || len(r.Access) != 2 ||
		r.Access[0].TableName != "bench_main" || !slices.Equal(r.Access[0].Rights, []string{"SELECT"}) ||
		r.Access[1].TableName != "bench_lines" || r.Access[1].Table != "lines" ||
		!slices.Equal(r.Access[1].Rights, []string{"SELECT", "INSERT", "UPDATE"}) {
		t.Errorf("%+v", r)
	}
}

// TestMissingRightsAreToldAlone: what the tables look like to a role without rights is not told.
func TestMissingRightsAreToldAlone(t *testing.T) {
	w := newWorld()
	w.preflight = &plugin.AdapterAnswer{
		Checks: []plugin.Check{{Name: "privileges", Outcome: CheckFailed, Message: "No UPDATE.", Fix: "GRANT UPDATE",
			Field: "target.table_name"}}}
	f, err := Inspect(t.Context(), w.deps(), scenario(), true)
	if err != nil || f.OK || slices.ContainsFunc(f.Checks, func(c CheckResult) bool { return c.Name == "table" }) {
		t.Errorf("%v, %+v", err, f)
	}
}
