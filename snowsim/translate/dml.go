package translate

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/snowsim/plan"
	"github.com/loadstone-db/loadstone/snowsim/warehouse"
)

// target reads the table that a statement changes.
func (p *parser) target(privilege string) *table {
	t := p.resolve(p.name(), privilege)
	if t.kind == warehouse.Interactive && privilege != "INSERT" {
		p.fail(plan.CompilationError("001422", "42601", "%s is not supported on interactive table '%s'. Interactive "+
			"tables take INSERT and INSERT OVERWRITE only.",
			privilege, display(t.name.object)))
	}
	return t
}

// insert reads INSERT [OVERWRITE] INTO t [(columns)] VALUES … or a query.
func (p *parser) insert() *plan.Plan {
	p.expect("INSERT")
	overwrite := p.accept("OVERWRITE")
	if p.isAny("ALL", "FIRST") {
		p.fail(plan.Unsupported("multi-table INSERT"))
	}
	p.expect("INTO")
	p.accept("TABLE")
	t := p.target("INSERT")
	sql := "INSERT INTO " + t.name.postgres()
	columns := t.Columns
	if p.isSymbol("(") {
		columns = nil
		p.inParentheses(func() {
			sql += " (" + p.list(func() string {
				c := p.identifier()
				columns = append(columns, t.column(c))
				return quote(short(c))
			}) + ")"
		})
	}
	made := &plan.Plan{Type: plan.Insert, Work: warehouse.Work{Table: t.kind, Op: warehouse.Write}}
	rows := 1
	if p.is("VALUES") {
		p.next()
		sql += " VALUES " + p.list(func() (row string) {
			rows++
			i := 0
			p.inParentheses(func() {
				row = "(" + p.list(func() string {
					c := columnMeta{}
					if i < len(columns) {
						c = columns[i]
					}
					i++
					return p.assigned(c)
				}) + ")"
			})
			return row
		})
	} else {
		sql += " " + p.selectStatement()
		made.Work.Op = warehouse.Load
	}
	if rows > 100 || len(p.binds) > 0 && p.binds[0].Array {
		made.Work.Op = warehouse.Load
	}
	if overwrite {
		made.Work.Op = warehouse.Load
		sql = p.overwrite(t, sql)
	}
	made.SQL = sql
	return made
}

// overwrite empties the table in the statement's transaction.
func (p *parser) overwrite(t *table, insert string) string {
	for _, read := range p.tables[1:] {
		if read == t {
			p.fail(plan.Unsupported("INSERT OVERWRITE from the table itself"))
		}
	}
	p.before = append(p.before, func(ctx context.Context, conn *pgx.Conn) error {
		return execAll(ctx, conn, "DELETE FROM "+t.name.postgres())
	})
	return insert
}

// update reads UPDATE t SET … [FROM …] [WHERE …].
func (p *parser) update() *plan.Plan {
	p.expect("UPDATE")
	t := p.target("UPDATE")
	sql := "UPDATE " + t.name.postgres() + p.targetAlias()
	p.expect("SET")
	sql += " SET " + p.assignments(t)
	if p.accept("FROM") {
		sql += " FROM " + p.list(p.joined)
	}
	if p.accept("WHERE") {
		sql += " WHERE " + p.sql()
	}
	return &plan.Plan{Type: plan.Update, SQL: sql, Work: warehouse.Work{Table: t.kind, Op: warehouse.Write}}
}

func (p *parser) targetAlias() string {
	if p.accept("AS") || p.isIdentifier() {
		return " AS " + quote(short(p.identifier()))
	}
	return ""
}

// assignments reads SET's list; a table's name before a column is dropped.
func (p *parser) assignments(t *table) string {
	return p.list(func() string {
		column := p.identifier()
		for p.acceptSymbol(".") {
			column = p.anyIdentifier()
		}
		p.expectSymbol("=")
		return quote(short(column)) + " = " + p.assigned(t.column(column))
	})
}

// assigned reads a value for a column. What Postgres would take for the text of
// a type that is the stand-in's own is converted first.
func (p *parser) assigned(c columnMeta) string {
	if p.accept("DEFAULT") {
		return "DEFAULT"
	}
	e := p.expression()
	if e.kind == boundZoned && c.Type == "TIMESTAMP_TZ" {
		return "snowsim.to_timestamp_tz(" + e.text + "::text)"
	}
	if e.kind == stringConstant || e.kind == boundValue {
		switch c.Type {
		case "TIMESTAMP_TZ":
			return "snowsim.to_timestamp_tz(" + e.sql + "::text)"
		case "VARIANT", "OBJECT", "ARRAY":
			return "to_jsonb(" + e.sql + "::text)"
		}
	}
	return e.sql
}

// column returns a column by name, the zero value when there is none.
func (t *table) column(name string) columnMeta {
	for _, c := range t.Columns {
		if c.Name == name {
			return c
		}
	}
	return columnMeta{}
}

// delete reads DELETE FROM t [USING …] [WHERE …].
func (p *parser) delete() *plan.Plan {
	p.expect("DELETE", "FROM")
	t := p.target("DELETE")
	sql := "DELETE FROM " + t.name.postgres() + p.targetAlias()
	if p.accept("USING") {
		sql += " USING " + p.list(p.joined)
	}
	if p.accept("WHERE") {
		sql += " WHERE " + p.sql()
	}
	return &plan.Plan{Type: plan.Delete, SQL: sql, Work: warehouse.Work{Table: t.kind, Op: warehouse.Write}}
}

// merge reads MERGE INTO t USING s ON … WHEN …, which Postgres has too.
func (p *parser) merge() *plan.Plan {
	p.expect("MERGE", "INTO")
	t := p.target("MERGE")
	sql := "MERGE INTO " + t.name.postgres() + p.targetAlias()
	p.expect("USING")
	sql += " USING " + p.from()
	p.expect("ON")
	sql += " ON " + p.sql()
	for p.accept("WHEN") {
		sql += " WHEN"
		if p.accept("NOT") {
			sql += " NOT"
		}
		p.expect("MATCHED")
		sql += " MATCHED"
		if p.accept("AND") {
			sql += " AND " + p.sql()
		}
		p.expect("THEN")
		switch {
		case p.accept("UPDATE"):
			p.expect("SET")
			sql += " THEN UPDATE SET " + p.assignments(t)
		case p.accept("DELETE"):
			sql += " THEN DELETE"
		default:
			p.expect("INSERT")
			sql += " THEN INSERT"
			if p.isSymbol("(") {
				p.inParentheses(func() {
					sql += " (" + p.list(func() string {
						column := p.identifier()
						for p.acceptSymbol(".") {
							column = p.anyIdentifier()
						}
						return quote(short(column))
					}) + ")"
				})
			}
			p.expect("VALUES")
			p.inParentheses(func() { sql += " VALUES (" + p.list(p.sql) + ")" })
		}
	}
	return &plan.Plan{Type: plan.Merge, SQL: sql, Work: warehouse.Work{Table: t.kind, Op: warehouse.Write}}
}

// truncate reads TRUNCATE [TABLE] [IF EXISTS] t.
func (p *parser) truncate() *plan.Plan {
	p.expect("TRUNCATE")
	p.accept("TABLE")
	ifExists := p.accept("IF", "EXISTS")
	n := p.name()
	if t, err := p.t.catalog.table(p.ctx, n); err != nil {
		p.fail(err)
	} else if t == nil && ifExists {
		return p.done("Statement executed successfully.")
	}
	t := p.resolve(n, "TRUNCATE")
	if t.kind == warehouse.Interactive {
		p.fail(plan.CompilationError("001422", "42601", "TRUNCATE is not supported on interactive table '%s'.",
			display(n.object)))
	}
	return p.ddl("Statement executed successfully.", func(ctx context.Context, conn *pgx.Conn) error {
		return execAll(ctx, conn, "TRUNCATE "+t.name.postgres())
	})
}

// done is a plan that only reports success.
func (p *parser) done(message string) *plan.Plan {
	return &plan.Plan{Type: plan.DDL,
		Local: func(context.Context) (*plan.Result, error) { return plan.Status(message), nil }}
}

// ddl is a plan that changes the catalog in a transaction of its own.
func (p *parser) ddl(message string, do step) *plan.Plan {
	p.volatile = true
	return &plan.Plan{Type: plan.DDL, DDL: true, Before: do, SQL: "SELECT " + literal(message) + "::text AS status",
		Columns: []plan.Column{plan.Text("status")},
		Params:  []plan.Param{}}
}
