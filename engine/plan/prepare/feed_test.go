package prepare

import (
	"slices"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

// A workload that issues the operations of a feed is refused before anything is
// connected when the template names none.
func TestAFeedIsAskedForInPreflight(t *testing.T) {
	w := newWorld()
	w.feed = true
	w.add("orders", engine.Column{Name: "id", Type: engine.TypeI64}, engine.Column{Name: "note", Type: engine.TypeText})
	sc := scenario()
	f, err := Inspect(t.Context(), w.deps(), sc, true)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(f.Checks); f.OK || n != 1 || f.Checks[0].Field != "workload.feed" || f.Checks[0].Outcome != CheckFailed ||
		!strings.Contains(f.Checks[0].Fix, "--feed") {
		t.Errorf("%+v", f.Checks)
	}
	if _, err := Plan(t.Context(), w.deps(), sc, nil); !engine.HasCode(err, engine.CodeInvalid) {
		t.Errorf("planning gave %v", err)
	}
	sc.Workload.Feed = &engine.Feed{CSV: "at_ms,statement,values\n0,get,1\n"}
	if f, err = Inspect(t.Context(), w.deps(), sc, true); err != nil || !f.OK {
		t.Errorf("with a feed: %v %+v", err, f.Checks)
	}
}

func TestSampleRowsOfAWorkloadWithoutTables(t *testing.T) {
	w := newWorld()
	w.logical, w.wanted = nil, nil
	sc := scenario()
	sc.Target.TableName, sc.Target.Prepare = "", &engine.Prepare{Rows: 10, IfExists: engine.IfExistsUse}
	f, err := Inspect(t.Context(), w.deps(), sc, true)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(f.Checks, func(c CheckResult) bool {
		return c.Outcome == CheckWarning &&
			c.Field == "target.prepare"
	}) {
		t.Errorf("%+v", f.Checks)
	}
}
