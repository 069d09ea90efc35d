package translate

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/snowsim/plan"
)

// swapTables reads the rest of ALTER TABLE t SWAP WITH u: both change their names in
// one transaction, and each keeps its rows, keys, comment, grants and CREATED_ON.
func (p *parser) swapTables(t *table) *plan.Plan {
	u := p.resolve(p.name(), "OWNERSHIP")
	switch {
	case t.Temporary != u.Temporary && (t.Temporary == "TEMPORARY" || u.Temporary == "TEMPORARY"):
		p.fail(plan.Unsupported("swapping a temporary table"))
	case schemaName(t.name.database, t.name.schema) != schemaName(u.name.database, u.name.schema):
		p.fail(plan.Unsupported("swapping tables of two schemas"))
	}
	first, second := *t, *u
	first.rename(u.name)
	second.rename(t.name)
	between := t.name
	between.object += "~swap"
	var statements []string
	for _, step := range [...]struct {
		of       *table
		from, to name
	}{{t, t.name, between}, {u, u.name, t.name}, {t, between, u.name}} {
		statements = append(statements, step.of.renaming(step.from, step.to)...)
	}
	return p.ddl("Statement executed successfully.", func(ctx context.Context, conn *pgx.Conn) error {
		if t.name == u.name {
			return nil
		}
		if err := execAll(ctx, conn, statements...); err != nil {
			return err
		}
		p.t.catalog.forget(t.name)
		p.t.catalog.forget(u.name)
		if err := p.t.changeTable(ctx, conn, &first); err != nil {
			return err
		}
		return p.t.changeTable(ctx, conn, &second)
	})
}

// rename gives the entry another name.
func (t *table) rename(n name) {
	t.name = n
	t.Database, t.Schema, t.Table = n.database, n.schema, n.object
}

// renaming are the statements by which Postgres renames the table, and what is named
// after it: its indexes and sequences.
func (t *table) renaming(from, to name) []string {
	statements := []string{"ALTER TABLE " + from.postgres() + " RENAME TO " + quote(short(to.object))}
	parts := []string{"cluster", "key"}
	for _, i := range t.Indexes {
		parts = append(parts, i.Name)
	}
	in := quote(schemaName(from.database, from.schema)) + "."
	for _, part := range parts {
		statements = append(statements, "ALTER INDEX IF EXISTS "+in+quote(short(from.object+"~"+part))+" RENAME TO "+
			quote(short(to.object+"~"+part)))
	}
	for _, c := range t.Columns {
		statements = append(statements, "ALTER SEQUENCE IF EXISTS "+in+quote(short(from.object+"~"+c.Name+"~seq"))+
			" RENAME TO "+quote(short(to.object+"~"+c.Name+"~seq")))
	}
	return statements
}
