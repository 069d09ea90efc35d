package prepare

import (
	"slices"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// A table is looked at once where it is used as it is, and its keys are asked for once: behind a slow
// connection each look takes seconds. What is going to be dropped is asked no more than what drops it.
func TestTheKeysOfATableAreLookedAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		there     bool
		exists    engine.IfExists
		preflight bool
		dropped   []bool // of each look, whether the table is going to be dropped
	}{
		"used":                  {true, engine.IfExistsUse, false, []bool{false}},
		"made":                  {false, engine.IfExistsUse, false, []bool{false, false}},
		"made again":            {true, engine.IfExistsRecreate, false, []bool{true, false}},
		"preflight, used":       {true, engine.IfExistsUse, true, []bool{false}},
		"preflight, made again": {true, engine.IfExistsRecreate, true, []bool{true}},
	} {
		w, sc := newWorld(), scenario()
		sc.Target.Prepare = &engine.Prepare{Rows: 10, IfExists: c.exists}
		if c.there {
			w.add("orders", engine.Column{Name: "id", Type: engine.TypeI64}, engine.Column{Name: "note", Type: engine.TypeText})
			w.tables["orders"].Own = true
		}
		var err error
		if c.preflight {
			_, err = InspectAll(t.Context(), w.deps(), sc, true)
		} else {
			_, err = Plan(t.Context(), w.deps(), sc, nil)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var looks []bool
		for _, r := range w.requests {
			if r.Op == plugin.OpInspect {
				looks = append(looks, r.Recreate)
			}
		}
		if !slices.Equal(looks, c.dropped) {
			t.Errorf("%s: looked at %d times, about to be dropped %v, want %v", name, len(looks), looks, c.dropped)
		}
	}
}
