// Package rules runs the rules of a run beside it, in the process that carries the run: continuous queries that see the
// rows of this run and no others. They begin with the run, or with who takes it over, and nothing of them is left when
// it is over: they are in no catalog, so names of rules of several runs do not meet, and a process that dies takes them
// along.
//
// Who tells the rows waits for nobody. A rule that cannot go on fails with its reason, and the run goes on.
package rules

import (
	"slices"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/plan"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
	"github.com/loadstone-db/loadstone/engine/stream/system"
)

// Bind checks the SELECT of a rule and returns its plan. The error is a *sql.Error.
func Bind(when string) (*plan.Plan, error) {
	s, err := sql.ParseSelect(when)
	if err != nil {
		return nil, err
	}
	return plan.Bind(when, s, system.Schemas{})
}

// Interrupted are the rules of a run that was ended by another process than the one that carried it; nil where they all
// had come to an end. What the others held is gone with that process.
func Interrupted(states []engine.RuleState) []engine.RuleState {
	var left []engine.RuleState
	for i, s := range states {
		if s.Status != engine.RuleRunning {
			continue
		}
		if left == nil {
			left = slices.Clone(states)
		}
		left[i].Status, left[i].Failure = engine.RuleFailed, "what carried the run was gone before the rule had ended"
	}
	return left
}

// Check judges what a schema cannot: the name of the first field that is wrong, and why; "" where nothing is. Errors of
// the statement are *sql.Error.
func Check(r engine.Rule) (field string, err error) {
	if _, err := Bind(r.When); err != nil {
		return "when", err
	}
	switch {
	case r.Do == engine.RuleWebhook && r.URL == "":
		return "url", engine.InvalidField("url", "is required with do: webhook", "https://HOST/PATH")
	case r.Do != engine.RuleWebhook && r.URL != "":
		return "url", engine.InvalidField("url", "has no meaning with do: "+string(r.Do), "remove it, or write do: webhook")
	case r.URL != "" && !connector.IsAddress(r.URL):
		return "url", engine.InvalidField("url", "is not http://HOST/PATH or https://HOST/PATH", "")
	case r.URL != "":
		if what := connector.CheckHost(r.URL); what != "" {
			return "url", engine.InvalidField("url", what, "name the host that takes the rows in your network")
		}
	}
	return "", nil
}
