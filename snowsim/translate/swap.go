package translate

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// swapTables reads the rest of ALTER TABLE t SWAP WITH u: both change their names in
// one transaction, and each keeps its rows, keys, comment, grants and CREATED_ON.
func (p *Parser) swapTables(t *Table) *Plan {
	u := p.Resolve(p.Name(), "OWNERSHIP")
	switch {
	case t.Temporary != u.Temporary && (t.Temporary == "TEMPORARY" || u.Temporary == "TEMPORARY"):
		p.Fail(protocol.NotSimulated("swapping a temporary table"))
	case SchemaName(t.Name.Database, t.Name.Schema) != SchemaName(u.Name.Database, u.Name.Schema):
		p.Fail(protocol.NotSimulated("swapping tables of two schemas"))
	}
	first, second := *t, *u
	first.Rename(u.Name)
	second.Rename(t.Name)
	between := t.Name
	between.Object += "~swap"
	var statements []string
	for _, step := range [...]struct {
		of       *Table
		from, to Name
	}{{t, t.Name, between}, {u, u.Name, t.Name}, {t, between, u.Name}} {
		statements = append(statements, step.of.Renaming(step.from, step.to)...)
	}
	return p.DDL("Statement executed successfully.", func(ctx context.Context, conn *pgx.Conn) error {
		if t.Name == u.Name {
			return nil
		}
		if err := ExecAll(ctx, conn, statements...); err != nil {
			return err
		}
		p.Account.Tables.Forget(t.Name)
		p.Account.Tables.Forget(u.Name)
		if err := p.Account.ChangeTable(ctx, conn, &first); err != nil {
			return err
		}
		return p.Account.ChangeTable(ctx, conn, &second)
	})
}
