package translate

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// createSchema reads [IF NOT EXISTS] name.
func (p *parser) createSchema() *Plan {
	ifNotExists := p.accept("IF", "NOT", "EXISTS")
	n := p.schema()
	if ok, err := p.account.tables.hasSchema(p.ctx, n.database, ""); err != nil {
		p.fail(err)
	} else if !ok {
		p.fail(protocol.DoesNotExist("Database", displayName(n.database)))
	}
	if !p.hasPrivilege("CREATE SCHEMA", databaseObject(n.database)) {
		p.fail(insufficient("database", displayName(n.database)))
	}
	switch exists, err := p.account.tables.hasSchema(p.ctx, n.database, n.schema); {
	case err != nil:
		p.fail(err)
	case exists && ifNotExists:
		return p.statusPlan(n.schema + " already exists, statement succeeded.")
	case exists:
		p.fail(protocol.CompilationError("002002", "42710", "Object '%s' already exists.", n))
	}
	statements := createSchema(n.database, n.schema, p.account.host.Now(), p.session.Role, "")
	made := p.ddlPlan("Schema "+n.schema+" successfully created.", func(ctx context.Context, conn *pgx.Conn) error {
		return execAll(ctx, conn, statements...)
	})
	// As in an account, the session goes to the new schema.
	made.Effect.Database, made.Effect.Schema = &n.database, &n.schema
	return made
}

// dropSchema reads name [CASCADE]: what is in the schema goes with it.
func (p *parser) dropSchema(ifExists bool) *Plan {
	n := p.schema()
	if p.is("RESTRICT") {
		p.fail(protocol.NotSimulated("DROP SCHEMA … RESTRICT"))
	}
	p.accept("CASCADE")
	switch exists, err := p.account.tables.hasSchema(p.ctx, n.database, n.schema); {
	case err != nil:
		p.fail(err)
	case !exists && ifExists:
		return p.statusPlan("Drop statement executed successfully (" + n.schema + " already dropped).")
	case !exists:
		p.fail(protocol.DoesNotExist("Schema", n.String()))
	}
	if !p.hasPrivilege("OWNERSHIP", p.schemaObject(n)) {
		p.fail(insufficient("schema", displayName(n.schema)))
	}
	made := p.ddlPlan(n.schema+" successfully dropped.", func(ctx context.Context, conn *pgx.Conn) error {
		if err := execAll(ctx, conn, "DROP SCHEMA "+quote(schemaName(n.database, n.schema))+" CASCADE"); err != nil {
			return err
		}
		p.account.tables.invalidate(objectName{database: n.database, schema: n.schema})
		return nil
	})
	if p.session.Database == n.database && p.session.Schema == n.schema {
		none := ""
		made.Effect.Schema = &none
	}
	return made
}
