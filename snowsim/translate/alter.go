package translate

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
	"github.com/loadstone-db/loadstone/snowsim/warehouse"
)

// alter reads ALTER ….
func (p *Parser) alter() *Plan {
	p.Expect("ALTER")
	switch {
	case p.Accept("WAREHOUSE"):
		return p.alterWarehouse()
	case p.Accept("TABLE"):
		return p.alterTable()
	}
	p.Fail(protocol.NotSimulated("ALTER %s", p.Peek().Text))
	return nil
}

// alterTable reads ALTER TABLE t ….
func (p *Parser) alterTable() *Plan {
	t := p.Resolve(p.Name(), "OWNERSHIP")
	if p.Accept("SWAP", "WITH") {
		return p.swapTables(t)
	}
	changed := *t
	changed.Columns, changed.Keys = slices.Clone(t.Columns), slices.Clone(t.Keys)
	statements := p.alteration(t, &changed)
	return p.DDL("Statement executed successfully.", func(ctx context.Context, conn *pgx.Conn) error {
		if err := ExecAll(ctx, conn, statements...); err != nil {
			return err
		}
		if changed.Name != t.Name {
			p.Account.Tables.Forget(t.Name)
		}
		if err := changed.FillColumns(ctx, conn, p.Account.Display); err != nil {
			return Error(err)
		}
		return p.Account.ChangeTable(ctx, conn, &changed)
	})
}

// alteration reads what to alter, changes the entry and returns what Postgres has to do.
func (p *Parser) alteration(t, changed *Table) []string {
	altered := "ALTER TABLE " + t.Name.Postgres() + " "
	switch {
	case p.Accept("RENAME", "TO"):
		changed.Rename(p.Name())
		statements := t.Renaming(t.Name, changed.Name)
		if SchemaName(changed.Name.Database, changed.Name.Schema) != SchemaName(t.Name.Database,
			t.Name.Schema) {
			p.Fail(protocol.NotSimulated("renaming a table into another schema"))
		}
		return statements
	case p.Accept("ADD", "SEARCH", "OPTIMIZATION"):
		if t.Type != warehouse.Standard {
			p.Fail(protocol.CompilationError("391420", "0A000", "Search optimization is supported on standard tables only."))
		}
		changed.Searched = true
		if p.Account.Contract.Standard {
			p.Fail(protocol.Unsupported("SEARCH OPTIMIZATION"))
		}
		if !p.May("ADD SEARCH OPTIMIZATION", p.SchemaObject(t.Name)) {
			p.Fail(Insufficient("schema", Display(t.Name.Schema)))
		}
		if p.Accept("ON") {
			p.Expect("EQUALITY")
			p.InParentheses(func() { p.List(p.SQL) })
		}
		return nil
	case p.Accept("ADD"):
		return p.addColumn(altered, changed)
	case p.Accept("DROP"):
		p.Accept("COLUMN")
		column := p.Identifier()
		if t.Type == warehouse.Hybrid &&
			slices.ContainsFunc(t.Keys, func(k KeyMeta) bool {
				return k.Kind == "PRIMARY KEY" &&
					slices.Contains(k.Columns, column)
			}) {
			p.Fail(protocol.CompilationError("391420", "0A000", "A column of the primary key of a hybrid table cannot be dropped."))
		}
		return []string{altered + "DROP COLUMN " + Quote(Short(column))}
	}
	p.Fail(protocol.NotSimulated("ALTER TABLE … %s", p.Written(p.Peek())))
	return nil
}

// addColumn reads the column of ADD [COLUMN].
func (p *Parser) addColumn(altered string, changed *Table) []string {
	d := &tableDDL{Meta: changed.Meta}
	d.Columns, d.Keys, d.Indexes = nil, nil, nil
	p.Inline = true
	p.Accept("COLUMN")
	p.column(d)
	if slices.ContainsFunc(d.Keys, func(k KeyMeta) bool { return k.Enforced }) {
		p.Fail(protocol.CompilationError("391420", "0A000", "Constraints of a hybrid table can only be defined when it is "+
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
