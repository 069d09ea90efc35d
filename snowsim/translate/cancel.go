package translate

import (
	"context"
	"fmt"

	"github.com/loadstone-db/loadstone/snowsim/plan"
)

// cancelQuery reads SELECT | CALL SYSTEM$CANCEL_QUERY('id'), which ends another
// statement; nil when the statement is something else.
func (p *parser) cancelQuery() *plan.Plan {
	const name = "SYSTEM$CANCEL_QUERY"
	if !p.is("SELECT", name) && !p.is("CALL", name) {
		return nil
	}
	p.i += 2
	p.volatile = true
	var id string
	p.inParentheses(func() { id = p.optionValue() })
	return &plan.Plan{Type: plan.Select, Local: func(context.Context) (*plan.Result, error) {
		said := fmt.Sprintf("query [%s] terminated.", id)
		if !p.t.host.Cancel(id) {
			said = "Identified SQL statement is not currently executing."
		}
		return &plan.Result{Columns: []plan.Column{plan.Text(name)}, Rows: [][]any{{said}}}, nil
	}}
}
