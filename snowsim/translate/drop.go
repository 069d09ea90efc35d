package translate

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// drop reads DROP ….
func (p *parser) drop() *Plan {
	p.expect("DROP")
	if !p.isAny("TABLE", "VIEW", "WAREHOUSE", "SCHEMA") {
		p.fail(protocol.NotSimulated("DROP %s", p.peek().text))
	}
	kind := p.next().text
	ifExists := p.accept("IF", "EXISTS")
	if kind == "SCHEMA" {
		return p.dropSchema(ifExists)
	}
	gone := func(object string) *Plan {
		return p.statusPlan("Drop statement executed successfully (" + object + " already dropped).")
	}
	if kind == "WAREHOUSE" {
		warehouseName := p.identifier()
		if _, ok := p.account.host.Warehouses().Get(warehouseName); !ok && ifExists {
			return gone(warehouseName)
		}
		return p.onWarehouse(warehouseName, "OWNERSHIP", warehouseName+" successfully dropped.",
			func(w Warehouses) error { return w.Drop(warehouseName) })
	}
	n := p.name()
	if t, err := p.account.tables.lookup(p.ctx, n); err != nil {
		p.fail(err)
	} else if t == nil && ifExists {
		return gone(n.object)
	} else if t == nil {
		p.fail(protocol.DoesNotExist(kind[:1]+strings.ToLower(kind[1:]), n.String()))
	} else if found := tableObject(t).kind; found != kind {
		p.fail(wrongKind(found, kind))
	} else if !p.hasTablePrivilege("OWNERSHIP", t) {
		p.fail(insufficient(strings.ToLower(kind), displayName(n.object)))
	}
	return p.ddlPlan(n.object+" successfully dropped.", func(ctx context.Context, conn *pgx.Conn) error {
		if err := execAll(ctx, conn, "DROP "+kind+" "+n.postgres()+" CASCADE"); err != nil {
			return err
		}
		p.account.tables.invalidate(n)
		return nil
	})
}

// comment reads COMMENT ON TABLE t IS '…'.
func (p *parser) comment() *Plan {
	p.expect("COMMENT", "ON")
	if !p.is("TABLE") {
		p.fail(protocol.NotSimulated("COMMENT ON %s", p.peek().text))
	}
	p.expect("TABLE")
	changed := *p.resolve(p.name(), "OWNERSHIP")
	p.expect("IS")
	changed.Comment = p.constant()
	return p.ddlPlan("Statement executed successfully.",
		func(ctx context.Context, conn *pgx.Conn) error { return p.account.writeTable(ctx, conn, &changed) })
}
