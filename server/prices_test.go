package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/cost"
	"github.com/loadstone-db/loadstone/engine/store"
)

// TestPrices: the list is read with what it says, saved over what was edited, refused by its fields, and taken away.
func TestPrices(t *testing.T) {
	t.Parallel()
	b := start(t)
	const path = "/api/v1/prices"
	read := decode[map[string]any](t, b.do("GET", path, nil).want(t, http.StatusOK))
	if read["from"] != "built_in" || read["credit_price"] != 3.0 || read["version"] != 0.0 ||
		read["text"] != read["built_in"] || len(read["warehouses"].([]any)) == 0 {
		t.Errorf("before anything was saved: %v", read)
	}
	list := map[string]any{"version": 0,
		"text": strings.Replace(string(cost.Embedded()), "credit_price: 3.00", "credit_price: 2.25", 1)}
	saved := decode[map[string]any](t, b.do("PUT", path, list).want(t, http.StatusOK))
	if saved["from"] != "saved" || saved["credit_price"] != 2.25 || saved["version"] != 1.0 || saved["updated_at"] == nil {
		t.Errorf("saved: %v", saved)
	}
	b.do("PUT", path, list).problem(t, http.StatusConflict, engine.CodeConflict)
	for text, field := range map[string]string{"currency: USD": "credit_price", "credit_price: [": "(line 1)",
		strings.Repeat("x", 70_000): "text"} {
		p := b.do("PUT", path, map[string]any{"version": 1, "text": text}).problem(t, http.StatusUnprocessableEntity,
			engine.CodeInvalid)
		found := false
		for _, f := range p.Errors {
			found = found || f.Field == field
		}
		if !found {
			t.Errorf("%.20q is refused with %+v", text, p.Errors)
		}
	}
	gone := decode[map[string]any](t, b.do("PUT", path, map[string]any{"version": 1, "text": ""}).want(t, http.StatusOK))
	if gone["from"] != "built_in" || gone["credit_price"] != 3.0 || gone["version"] != 2.0 {
		t.Errorf("taken away: %v", gone)
	}
	lines, err := b.store.ListAudit(t.Context(), store.AuditFilter{Action: "prices", Outcome: store.OutcomeDone})
	if err != nil || len(lines) != 2 || !strings.Contains(lines[1].Detail, "2.25 USD") {
		t.Errorf("the audit log: %+v, %v", lines, err)
	}
}
