package prepare

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

const (
	resumeSQL  = `ALTER WAREHOUSE "WH" RESUME IF SUSPENDED`
	suspendSQL = `ALTER WAREHOUSE "WH" SUSPEND`
)

func suspended() *plugin.AdapterAnswer {
	return &plugin.AdapterAnswer{
		Checks: []plugin.Check{{Name: "warehouse", Outcome: CheckOK, Message: "It is suspended."}},
		Resume: []string{resumeSQL}, Restore: []string{suspendSQL}}
}

func TestAWarehouseIsResumedForTheRun(t *testing.T) {
	w := newWorld()
	w.add("orders", engine.Column{Name: "id", Type: engine.TypeI64}, engine.Column{Name: "note", Type: engine.TypeText})
	w.preflight = suspended()
	p, err := Plan(t.Context(), w.deps(), scenario(), nil)
	if err != nil || !slices.Equal(p.Plan.Restore, []string{suspendSQL}) {
		t.Fatalf("%v, %+v", err, p)
	}
	if !slices.Contains(w.sql, resumeSQL) || slices.Contains(w.sql, suspendSQL) {
		t.Fatalf("executed %q", w.sql)
	}
	// A preflight says so, resumes nothing, and sets back what looking has resumed.
	w.sql = nil
	f, err := Inspect(t.Context(), w.deps(), scenario(), true)
	if err != nil || !f.OK || slices.Contains(w.sql, resumeSQL) || w.sql[len(w.sql)-1] != suspendSQL ||
		!slices.ContainsFunc(f.Checks, func(c CheckResult) bool { return c.Name == "warehouse" }) {
		t.Fatalf("%v, %+v, executed %q", err, f, w.sql)
	}
}

func TestAPreparationThatFailsSetsTheWarehouseBack(t *testing.T) {
	w := newWorld()
	w.add("orders", engine.Column{Name: "id", Type: engine.TypeI64}, engine.Column{Name: "note", Type: engine.TypeText})
	w.preflight = suspended()
	w.connectErr = errors.New("refused")
	if _, err := Plan(t.Context(), w.deps(), scenario(), nil); err == nil || !slices.Contains(w.sql, suspendSQL) {
		t.Fatalf("%v, executed %q", err, w.sql)
	}
}

func TestAFailedCheckEndsThePreparation(t *testing.T) {
	w := newWorld()
	w.add("orders", engine.Column{Name: "id", Type: engine.TypeI64}, engine.Column{Name: "note", Type: engine.TypeText})
	w.preflight = &plugin.AdapterAnswer{
		Checks: []plugin.Check{{Name: "warehouse_type", Outcome: CheckFailed, Message: "It is interactive.",
			Fix: "take another", Field: "target.warehouse"}}, Resume: []string{resumeSQL}}
	_, err := Plan(t.Context(), w.deps(), scenario(), nil)
	if !engine.HasCode(err, engine.CodeTarget) || !strings.Contains(err.Error(), "target.warehouse") ||
		slices.Contains(w.sql, resumeSQL) {
		t.Fatalf("%v, executed %q", err, w.sql)
	}
	if f, err := Inspect(t.Context(), w.deps(), scenario(), true); err != nil || f.OK {
		t.Fatalf("%v, %+v", err, f)
	}
}

// TestAllFailedChecksAreTold: one error, with each check's fix once.
func TestAllFailedChecksAreTold(t *testing.T) {
	w := newWorld()
	w.preflight = &plugin.AdapterAnswer{
		Checks: []plugin.Check{{Name: "privileges", Outcome: CheckFailed, Message: "No USAGE.", Fix: "GRANT USAGE",
			Field: "target.warehouse"},
			{Name: "role", Outcome: CheckOK, Message: "A role."},
			{Name: "role", Outcome: CheckFailed, Message: "No role.", Fix: "take one"},
			{Name: "privileges", Outcome: CheckFailed, Message: "No UPDATE.", Fix: "GRANT UPDATE", Field: "target.table_name"}}}
	_, err := Plan(t.Context(), w.deps(), scenario(), nil)
	e := engine.AsError(err)
	if e.Message != "No USAGE. No role. No UPDATE." || e.Hint != "take one" || len(e.Fields) != 2 ||
		e.Fields[1].Hint != "GRANT UPDATE" {
		t.Errorf("%+v", e)
	}
}

func TestAnAdapterMayDoNothingElseToAWarehouse(t *testing.T) {
	for _, sql := range []string{`DROP WAREHOUSE "WH"`, `ALTER WAREHOUSE "WH" SET WAREHOUSE_SIZE = XLARGE`,
		`ALTER WAREHOUSE "WH" SUSPEND; DROP TABLE t`, `ALTER WAREHOUSE "W"H" SUSPEND`, ``} {
		w := newWorld()
		w.add("orders", engine.Column{Name: "id", Type: engine.TypeI64}, engine.Column{Name: "note", Type: engine.TypeText})
		w.preflight = &plugin.AdapterAnswer{Restore: []string{sql}}
		if _, err := Plan(t.Context(), w.deps(), scenario(), nil); !engine.HasCode(err, engine.CodePlugin) {
			t.Fatalf("%q gave %v", sql, err)
		}
	}
}

// TestAnAdapterWithoutPreflight: the operation is optional, also where there are warehouses.
func TestAnAdapterWithoutPreflight(t *testing.T) {
	for _, driver := range []string{"postgres", "snowflake"} {
		w := newWorld()
		w.driver, w.preflight = driver, nil
		w.add("orders", engine.Column{Name: "id", Type: engine.TypeI64}, engine.Column{Name: "note", Type: engine.TypeText})
		told := func(text string) bool { return strings.Contains(text, "does not check the warehouse") }
		p, err := Plan(t.Context(), w.deps(), scenario(), nil)
		if err != nil || slices.ContainsFunc(p.Notes, told) != (driver == "snowflake") {
			t.Fatalf("%s: %v, %+v", driver, err, p)
		}
		f, err := Inspect(t.Context(), w.deps(), scenario(), true)
		if err != nil || !f.OK || slices.ContainsFunc(f.Checks, func(c CheckResult) bool {
			return c.Outcome == CheckWarning &&
				told(c.Message)
		}) != (driver == "snowflake") {
			t.Fatalf("%s: %v, %+v", driver, err, f)
		}
	}
}
