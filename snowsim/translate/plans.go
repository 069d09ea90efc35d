package translate

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// Done is a plan that only reports success.
func (p *Parser) Done(message string) *Plan {
	return &Plan{Type: protocol.DDL,
		Local: func(context.Context) (*Result, error) { return Status(message), nil }}
}

// DDL is a plan that changes the catalog in a transaction of its own.
func (p *Parser) DDL(message string, do step) *Plan {
	p.Volatile = true
	return &Plan{Type: protocol.DDL, DDL: true, Before: do, SQL: "SELECT " + Literal(message) +
		"::text AS status",
		Columns: []protocol.Column{protocol.Text("status")},
		Params:  []protocol.Param{}}
}

// Shown answers a SHOW with rows made here.
func (p *Parser) Shown(r *Result) *Plan {
	return &Plan{Type: protocol.Show, Local: func(context.Context) (*Result, error) { return r, nil }}
}

// step is something to be done on the connection before the statement.
type step func(ctx context.Context, conn *pgx.Conn) error
