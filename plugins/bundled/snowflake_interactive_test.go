package bundled_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/snowsim"
)

// TestAnInteractiveWarehouseIsComparedOnEveryTypeOfTable: it queries standard and hybrid
// tables too. A table that is made comes through a standard warehouse, and one that is
// there is added for the run and taken away again.
func TestAnInteractiveWarehouseIsComparedOnEveryTypeOfTable(t *testing.T) {
	t.Parallel()
	s := newSnow(t)
	s.exec("CREATE TABLE held (id NUMBER, note VARCHAR(100), PRIMARY KEY (id))",
		"INSERT INTO held SELECT SEQ4() + 1, 'x' FROM TABLE(GENERATOR(ROWCOUNT => 100))")
	s.dsn = strings.Replace(s.dsn, "warehouse="+snowsim.DefaultWarehouse, "warehouse=INTERACTIVE_WH", 1)
	const lookups = `{"weights":{"POINT_LOOKUP":1}}`
	for _, adapter := range []string{"snowflake_standard", "snowflake_hybrid"} {
		sc := s.scenario(adapter, "mix", "made_"+adapter, lookups,
			&engine.Prepare{Rows: prepared, IfExists: engine.IfExistsUse})
		sc.Target.Warehouse = "INTERACTIVE_WH"
		_, err := prepare.Plan(context.Background(), s.deps(), sc, nil)
		refused(t, err, "target.params.load_warehouse", "it makes no table")
		sc.Target.Params = json.RawMessage(`{"load_warehouse":"` + snowsim.DefaultWarehouse + `"}`)
		p := s.prepare(sc)
		if p.Plan.Tables[0].Rows != prepared {
			t.Errorf("%s: %+v", adapter, p.Plan.Tables[0])
		}
		s.load(sc, p, 100*time.Millisecond)
	}

	sc := s.scenario("snowflake_standard", "mix", "held", lookups, nil)
	sc.Target.Warehouse = "INTERACTIVE_WH"
	if f := s.inspect(sc); !f.OK || found(f, "attached_tables", "ok") == nil || found(f, "warehouse_type", "ok") == nil {
		t.Errorf("preflight says %+v", f.Checks)
	}
	p := s.prepare(sc)
	s.load(sc, p, 100*time.Millisecond)
	if len(p.Plan.Restore) == 0 ||
		!strings.Contains(strings.Join(p.Plan.Restore, "; "), `DROP TABLES ("LOADSTONE"."PUBLIC"."HELD")`) {
		t.Errorf("it is set back by %q", p.Plan.Restore)
	}
	s.exec(p.Plan.Restore...)
	if f := s.inspect(sc); found(f, "attached_tables", "ok") == nil {
		t.Errorf("the table is still there after the run: %+v", f.Checks)
	}
}

// TestWhatWritesOnAnInteractiveWarehouseIsTried: whether it takes MERGE no document says, so the account is asked, in a
// transaction that is undone, before the load; on a standard warehouse the workload's own statements are not tried.
func TestWhatWritesOnAnInteractiveWarehouseIsTried(t *testing.T) {
	t.Parallel()
	s := newSnow(t)
	s.exec("CREATE TABLE merged (id NUMBER, note VARCHAR(100), PRIMARY KEY (id))",
		"INSERT INTO merged SELECT SEQ4() + 1, 'x' FROM TABLE(GENERATOR(ROWCOUNT => 100))",
		"ALTER WAREHOUSE INTERACTIVE_WH ADD TABLES (merged)")
	const merge = `{"statements":[{"id":"m","sql":"MERGE INTO {table} t USING (SELECT 1 AS id, 'y' AS note) s ` +
		`ON t.id = s.id WHEN MATCHED THEN UPDATE SET note = s.note"}]}`
	sc := s.scenario("snowflake_standard", "sql", "merged", merge, nil)
	if f := s.look(sc); !f.OK || found(f, "trial", "failed") != nil {
		t.Errorf("on a standard warehouse: %+v", f.Checks)
	}
	s.dsn = strings.Replace(s.dsn, "warehouse="+snowsim.DefaultWarehouse, "warehouse=INTERACTIVE_WH", 1)
	sc = s.scenario("snowflake_standard", "sql", "merged", merge, nil)
	sc.Target.Warehouse = "INTERACTIVE_WH"
	if f := s.look(sc); f.OK || found(f, "trial", "failed") == nil {
		t.Errorf("on an interactive one: %+v", f.Checks)
	}
	if _, err := s.ready(sc); !engine.HasCode(err, engine.CodeInvalid) ||
		!strings.Contains(err.Error(), "refuses what the run would write") {
		t.Errorf("the run on an interactive one: %v", err)
	}
}
