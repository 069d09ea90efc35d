package translate

import (
	"context"
	"fmt"

	"github.com/loadstone-db/loadstone/snowsim/plan"
)

// cancelQuery reads SELECT | CALL SYSTEM$CANCEL_QUERY('id'), which ends another
// statement; nil when the statement is something else.
func (p *statement) cancelQuery() *plan.Plan {
	const name = "SYSTEM$CANCEL_QUERY"
	if !p.Is("SELECT", name) && !p.Is("CALL", name) {
		return nil
	}
	p.Advance(2)
	p.Volatile = true
	var id string
	p.InParentheses(func() { id = p.OptionValue() })
	return &plan.Plan{Type: plan.Select, Local: func(context.Context) (*plan.Result, error) {
		said := fmt.Sprintf("query [%s] terminated.", id)
		if !p.Account.Host.Cancel(id) {
			said = "Identified SQL statement is not currently executing."
		}
		return &plan.Result{Columns: []plan.Column{plan.Text(name)}, Rows: [][]any{{said}}}, nil
	}}
}
