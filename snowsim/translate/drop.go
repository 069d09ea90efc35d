package translate

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// drop reads DROP ….
func (p *Parser) drop() *Plan {
	p.Expect("DROP")
	if !p.IsAny("TABLE", "VIEW", "WAREHOUSE") {
		p.Fail(protocol.NotSimulated("DROP %s", p.Peek().Text))
	}
	kind := p.Next().Text
	ifExists := p.Accept("IF", "EXISTS")
	gone := func(object string) *Plan {
		return p.Done("Drop statement executed successfully (" + object + " already dropped).")
	}
	if kind == "WAREHOUSE" {
		warehouseName := p.Identifier()
		if _, ok := p.Account.Host.Warehouses().Get(warehouseName); !ok && ifExists {
			return gone(warehouseName)
		}
		return p.onWarehouse(warehouseName, "OWNERSHIP", warehouseName+" successfully dropped.",
			func(w Warehouses) error { return w.Drop(warehouseName) })
	}
	n := p.Name()
	if t, err := p.Account.Tables.Table(p.Context, n); err != nil {
		p.Fail(err)
	} else if t == nil && ifExists {
		return gone(n.Object)
	} else if t == nil {
		p.Fail(protocol.DoesNotExist(kind[:1]+strings.ToLower(kind[1:]), n.String()))
	} else if found := TableObject(t).Kind; found != kind {
		p.Fail(OfKind(found, kind))
	} else if !p.MayTable("OWNERSHIP", t) {
		p.Fail(Insufficient(strings.ToLower(kind), Display(n.Object)))
	}
	return p.DDL(n.Object+" successfully dropped.", func(ctx context.Context, conn *pgx.Conn) error {
		if err := ExecAll(ctx, conn, "DROP "+kind+" "+n.Postgres()+" CASCADE"); err != nil {
			return err
		}
		p.Account.Tables.Forget(n)
		return nil
	})
}

// comment reads COMMENT ON TABLE t IS '…'.
func (p *Parser) comment() *Plan {
	p.Expect("COMMENT", "ON")
	if !p.Is("TABLE") {
		p.Fail(protocol.NotSimulated("COMMENT ON %s", p.Peek().Text))
	}
	p.Expect("TABLE")
	changed := *p.Resolve(p.Name(), "OWNERSHIP")
	p.Expect("IS")
	changed.Comment = p.Constant()
	return p.DDL("Statement executed successfully.",
		func(ctx context.Context, conn *pgx.Conn) error { return p.Account.ChangeTable(ctx, conn, &changed) })
}
