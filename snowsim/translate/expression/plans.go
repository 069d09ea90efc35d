package expression

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/snowsim/plan"
	"github.com/loadstone-db/loadstone/snowsim/translate/catalog"
)

// Done is a plan that only reports success.
func (p *Parser) Done(message string) *plan.Plan {
	return &plan.Plan{Type: plan.DDL,
		Local: func(context.Context) (*plan.Result, error) { return plan.Status(message), nil }}
}

// DDL is a plan that changes the catalog in a transaction of its own.
func (p *Parser) DDL(message string, do step) *plan.Plan {
	p.Volatile = true
	return &plan.Plan{Type: plan.DDL, DDL: true, Before: do, SQL: "SELECT " + catalog.Literal(message) +
		"::text AS status",
		Columns: []plan.Column{plan.Text("status")},
		Params:  []plan.Param{}}
}

// Shown answers a SHOW with rows made here.
func (p *Parser) Shown(r *plan.Result) *plan.Plan {
	return &plan.Plan{Type: plan.Show, Local: func(context.Context) (*plan.Result, error) { return r, nil }}
}

// step is something to be done on the connection before the statement.
type step func(ctx context.Context, conn *pgx.Conn) error
