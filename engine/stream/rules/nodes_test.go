package rules

import (
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// TestAStatementGetsASink: however it ends, as what is sent to nodes.
func TestAStatementGetsASink(t *testing.T) {
	for _, when := range []string{"SELECT runId FROM executions", "SELECT runId FROM executions;",
		"SELECT runId FROM executions ; ;\n", "SELECT runId FROM executions -- all; of them",
		"SELECT runId FROM executions WHERE statement = 'a;b'; /* ; */ -- ;"} {
		text, err := into(when, "rule")
		if err != nil {
			t.Errorf("%q: %v", when, err)
			continue
		}
		list, err := sql.Parse(text)
		if q, is := list[0].Statement.(*sql.CreateQuery); err != nil || len(list) != 1 || !is ||
			q.Select.Into.Text != "rule" || strings.Contains(when, "a;b") != strings.Contains(text, "'a;b'") {
			t.Errorf("%q became %q: %v", when, text, err)
		}
	}
}

// TestWhatANodeIsToldOfARule: the source of its own run, and no other; a node that does not know that plans otherwise.
func TestWhatANodeIsToldOfARule(t *testing.T) {
	shape := func(run string) string {
		a := &attempt{rule: engine.Rule{Name: "r", When: "SELECT runId FROM Executions WHERE latencyMs > 5"},
			o: Options{RunID: run}, nodes: []string{"n1", "n2"}}
		a.key.QueryID = firstRuleID
		s, err := a.plan()
		if err != nil {
			t.Fatal(err)
		}
		if s.On("n2").IsTail() || len(s.Hosts) != 3 {
			t.Errorf("%+v", s)
		}
		for _, p := range s.Contents.Physical {
			if p.OnEveryWorker() && p.Config.String("SOURCE.RUN_ID") != run {
				t.Errorf("%+v", p)
			}
		}
		return s.Shape
	}
	if shape("r1") != shape("r2") || shape("r1") == shape("") {
		t.Error("who tells of all runs plans as who tells of one")
	}
}
