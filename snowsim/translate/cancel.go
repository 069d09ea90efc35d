package translate

import (
	"context"
	"fmt"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// cancelQuery reads SELECT | CALL SYSTEM$CANCEL_QUERY('id'), which ends another
// statement; nil when the statement is something else.
func (p *Parser) cancelQuery() *Plan {
	const name = "SYSTEM$CANCEL_QUERY"
	if !p.Is("SELECT", name) && !p.Is("CALL", name) {
		return nil
	}
	p.Advance(2)
	p.Volatile = true
	var id string
	p.InParentheses(func() { id = p.OptionValue() })
	return &Plan{Type: protocol.Select, Local: func(context.Context) (*Result, error) {
		said := fmt.Sprintf("query [%s] terminated.", id)
		if !p.Account.Host.Cancel(id) {
			said = "Identified SQL statement is not currently executing."
		}
		return &Result{Columns: []protocol.Column{protocol.Text(name)}, Rows: [][]any{{said}}}, nil
	}}
}
