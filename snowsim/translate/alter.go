package translate

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
	"github.com/loadstone-db/loadstone/snowsim/warehouse"
)

// alter reads ALTER ….
func (p *parser) alter() *Plan {
	p.expect("ALTER")
	switch {
	case p.accept("WAREHOUSE"):
		return p.alterWarehouse()
	case p.accept("TABLE"):
		return p.alterTable()
	}
	p.fail(protocol.NotSimulated("ALTER %s", p.peek().text))
	return nil
}

// alterTable reads ALTER TABLE t ….
func (p *parser) alterTable() *Plan {
	t := p.resolve(p.name(), "OWNERSHIP")
	if p.accept("SWAP", "WITH") {
		return p.swapTables(t)
	}
	changed := *t
	changed.Columns, changed.Keys = slices.Clone(t.Columns), slices.Clone(t.Keys)
	statements := p.alteration(t, &changed)
	return p.ddlPlan("Statement executed successfully.", func(ctx context.Context, conn *pgx.Conn) error {
		if err := execAll(ctx, conn, statements...); err != nil {
			return err
		}
		if changed.name != t.name {
			p.account.tables.invalidate(t.name)
		}
		if err := changed.fillColumns(ctx, conn, p.account.displayName); err != nil {
			return Error(err)
		}
		return p.account.writeTable(ctx, conn, &changed)
	})
}

// alteration reads what to alter, changes the entry and returns what Postgres has to do.
func (p *parser) alteration(t, changed *tableEntry) []string {
	altered := "ALTER TABLE " + t.name.postgres() + " "
	switch {
	case p.accept("RENAME", "TO"):
		changed.rename(p.name())
		statements := t.renameStatements(t.name, changed.name)
		if schemaName(changed.name.database, changed.name.schema) != schemaName(t.name.database,
			t.name.schema) {
			p.fail(protocol.NotSimulated("renaming a table into another schema"))
		}
		return statements
	case p.accept("ADD", "SEARCH", "OPTIMIZATION"):
		if t.tableType != warehouse.Standard {
			p.fail(protocol.CompilationError("391420", "0A000", "Search optimization is supported on standard tables only."))
		}
		changed.Searched = true
		if p.account.contract.Standard {
			p.fail(protocol.Unsupported("SEARCH OPTIMIZATION"))
		}
		if !p.hasPrivilege("ADD SEARCH OPTIMIZATION", p.schemaObject(t.name)) {
			p.fail(insufficient("schema", displayName(t.name.schema)))
		}
		if p.accept("ON") {
			p.expect("EQUALITY")
			p.inParentheses(func() { p.list(p.sql) })
		}
		return nil
	case p.accept("ADD"):
		return p.addColumn(altered, changed)
	case p.accept("DROP"):
		p.accept("COLUMN")
		column := p.identifier()
		if t.tableType == warehouse.Hybrid &&
			slices.ContainsFunc(t.Keys, func(k keyMeta) bool {
				return k.Kind == "PRIMARY KEY" &&
					slices.Contains(k.Columns, column)
			}) {
			p.fail(
				protocol.CompilationError("391420", "0A000", "A column of the primary key of a hybrid table cannot be dropped."),
			)
		}
		return []string{altered + "DROP COLUMN " + quote(shortName(column))}
	}
	p.fail(protocol.NotSimulated("ALTER TABLE … %s", p.sourceOf(p.peek())))
	return nil
}

// alterInto changes a table into what CREATE OR ALTER TABLE declares: rows, grants and what else belongs to it stay,
// and what a dropped column held is lost. New columns come last.
func (p *parser) alterInto(t *tableEntry, d *tableDDL) *Plan {
	refuse := func(format string, args ...any) {
		p.fail(protocol.CompilationError("391420", "0A000", "CREATE OR ALTER TABLE: "+format, args...))
	}
	switch {
	case t.Kind == kindView:
		p.fail(existsAs(t.name, "VIEW"))
	case t.Kind != d.Kind || t.Temporary != d.Temporary:
		refuse("the kind of table '%s' cannot be changed.", displayName(t.name.object))
	case d.query != "" || len(d.Keys) > 0 || len(t.Keys) > 0 || len(d.sequences) > 0 ||
		d.ClusterBy != "" && d.ClusterBy != t.ClusterBy:
		p.fail(protocol.NotSimulated("CREATE OR ALTER TABLE with a query, keys, AUTOINCREMENT or another clustering key"))
	}
	changed := *t
	// What the statement does not name is unset, as a property that was set before.
	changed.ClusterBy, changed.ClusterKeys = d.ClusterBy, d.ClusterKeys
	changed.Comment, changed.Columns = d.Comment, nil
	altered := "ALTER TABLE " + t.name.postgres() + " "
	var statements []string
	for _, c := range t.Columns {
		i := slices.IndexFunc(d.Columns, func(want columnMeta) bool { return want.Name == c.Name })
		if i < 0 {
			statements = append(statements, altered+"DROP COLUMN "+quote(c.Postgres))
			continue
		}
		want := d.Columns[i]
		if want.Type != c.Type || want.Precision != c.Precision || want.Scale != c.Scale || want.Length != c.Length {
			p.fail(protocol.NotSimulated("CREATE OR ALTER TABLE that changes the type of a column"))
		}
		if want.Nullable != c.Nullable {
			how := "SET"
			if want.Nullable {
				how = "DROP"
			}
			statements = append(statements, altered+"ALTER COLUMN "+quote(c.Postgres)+" "+how+" NOT NULL")
		}
		changed.Columns = append(changed.Columns, want)
	}
	there := len(changed.Columns)
	for i, c := range d.Columns {
		if slices.ContainsFunc(t.Columns, func(have columnMeta) bool { return have.Name == c.Name }) {
			if i >= there {
				refuse("a new column stands before '%s'; new ones come last.", displayName(c.Name))
			}
			continue
		}
		statements = append(statements, altered+"ADD COLUMN "+d.definitions[i])
		changed.Columns = append(changed.Columns, c)
	}
	return p.ddlPlan("Statement executed successfully.", func(ctx context.Context, conn *pgx.Conn) error {
		if err := execAll(ctx, conn, statements...); err != nil {
			return err
		}
		if err := changed.fillColumns(ctx, conn, p.account.displayName); err != nil {
			return Error(err)
		}
		return p.account.writeTable(ctx, conn, &changed)
	})
}

// addColumn reads the column of ADD [COLUMN].
func (p *parser) addColumn(altered string, changed *tableEntry) []string {
	d := &tableDDL{tableMeta: changed.tableMeta}
	d.Columns, d.Keys, d.Indexes = nil, nil, nil
	p.inline = true
	p.accept("COLUMN")
	p.column(d)
	if slices.ContainsFunc(d.Keys, func(k keyMeta) bool { return k.Enforced }) {
		p.fail(protocol.CompilationError("391420", "0A000", "Constraints of a hybrid table can only be defined when it is "+
			"created."))
	}
	changed.Columns, changed.Keys = append(changed.Columns, d.Columns...), append(changed.Keys, d.Keys...)
	statements := d.sequences
	for _, definition := range d.definitions {
		statements = append(statements, altered+"ADD COLUMN "+definition)
	}
	return append(statements, d.owned...)
}

// swapTables reads the rest of ALTER TABLE t SWAP WITH u: both change their names in
// one transaction, and each keeps its rows, keys, comment, grants and CREATED_ON.
func (p *parser) swapTables(t *tableEntry) *Plan {
	u := p.resolve(p.name(), "OWNERSHIP")
	switch {
	case t.Temporary != u.Temporary && (t.Temporary == "TEMPORARY" || u.Temporary == "TEMPORARY"):
		p.fail(protocol.NotSimulated("swapping a temporary table"))
	case schemaName(t.name.database, t.name.schema) != schemaName(u.name.database, u.name.schema):
		p.fail(protocol.NotSimulated("swapping tables of two schemas"))
	}
	first, second := *t, *u
	first.rename(u.name)
	second.rename(t.name)
	between := t.name
	between.object += "~swap"
	var statements []string
	for _, step := range [...]struct {
		of       *tableEntry
		from, to objectName
	}{{t, t.name, between}, {u, u.name, t.name}, {t, between, u.name}} {
		statements = append(statements, step.of.renameStatements(step.from, step.to)...)
	}
	return p.ddlPlan("Statement executed successfully.", func(ctx context.Context, conn *pgx.Conn) error {
		if t.name == u.name {
			return nil
		}
		if err := execAll(ctx, conn, statements...); err != nil {
			return err
		}
		p.account.tables.invalidate(t.name)
		p.account.tables.invalidate(u.name)
		if err := p.account.writeTable(ctx, conn, &first); err != nil {
			return err
		}
		return p.account.writeTable(ctx, conn, &second)
	})
}
