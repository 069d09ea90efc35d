package engine

import "testing"

// TestShownPlanHasNoValues: neither samples nor the largest values of columns are shown.
func TestShownPlanHasNoValues(t *testing.T) {
	top := int64(900_100_200)
	p := &Plan{
		Tables: []Table{{Columns: []Column{{Name: "card"}, {Name: "number", Top: &top}}}},
		Pools:  []Pool{{Rows: [][]any{{1}}}},
	}
	shown := p.Shown()
	if shown.Pools != nil || shown.Tables[0].Columns[1].Top != nil {
		t.Errorf("%+v", shown)
	}
	if p.Pools == nil || p.Tables[0].Columns[1].Top == nil {
		t.Error("the plan itself has lost them")
	}
}
