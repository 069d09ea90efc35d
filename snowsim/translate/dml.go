package translate

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
	"github.com/loadstone-db/loadstone/snowsim/warehouse"
)

// target reads the table that a statement changes.
func (p *Parser) target(privilege string) *Table {
	t := p.Resolve(p.Name(), privilege)
	if t.Type == warehouse.Interactive && privilege != "INSERT" {
		p.Fail(protocol.CompilationError("001422", "42601", "%s is not supported on interactive table '%s'. Interactive "+
			"tables take INSERT and INSERT OVERWRITE only.",
			privilege, Display(t.Name.Object)))
	}
	return t
}

// Insert reads INSERT [OVERWRITE] INTO t [(columns)] VALUES … or a query.
func (p *Parser) Insert() *Plan {
	p.Expect("INSERT")
	overwrite := p.Accept("OVERWRITE")
	if p.IsAny("ALL", "FIRST") {
		p.Fail(protocol.NotSimulated("multi-table INSERT"))
	}
	p.Expect("INTO")
	p.Accept("TABLE")
	t := p.target("INSERT")
	sql := "INSERT INTO " + t.Name.Postgres()
	columns := t.Columns
	if p.IsSymbol("(") {
		columns = nil
		p.InParentheses(func() {
			sql += " (" + p.List(func() string {
				c := p.Identifier()
				columns = append(columns, t.Column(c))
				return Quote(Short(c))
			}) + ")"
		})
	}
	made := &Plan{Type: protocol.Insert, Work: warehouse.Work{Table: t.Type, Op: warehouse.Write}}
	rows := 1
	if p.Is("VALUES") {
		p.Next()
		sql += " VALUES " + p.List(func() (row string) {
			rows++
			i := 0
			p.InParentheses(func() {
				row = "(" + p.List(func() string {
					c := ColumnMeta{}
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
	if rows > 100 || len(p.Binds) > 0 && p.Binds[0].Array {
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
func (p *Parser) overwrite(t *Table, insert string) string {
	for _, read := range p.Tables[1:] {
		if read == t {
			p.Fail(protocol.NotSimulated("INSERT OVERWRITE from the table itself"))
		}
	}
	p.Before = append(p.Before, func(ctx context.Context, conn *pgx.Conn) error {
		return ExecAll(ctx, conn, "DELETE FROM "+t.Name.Postgres())
	})
	return insert
}

// Update reads UPDATE t SET … [FROM …] [WHERE …].
func (p *Parser) Update() *Plan {
	p.Expect("UPDATE")
	t := p.target("UPDATE")
	sql := "UPDATE " + t.Name.Postgres() + p.targetAlias()
	p.Expect("SET")
	sql += " SET " + p.assignments(t)
	if p.Accept("FROM") {
		sql += " FROM " + p.List(p.joined)
	}
	if p.Accept("WHERE") {
		sql += " WHERE " + p.SQL()
	}
	return &Plan{Type: protocol.Update, SQL: sql, Work: warehouse.Work{Table: t.Type, Op: warehouse.Write}}
}

func (p *Parser) targetAlias() string {
	if p.Accept("AS") || p.IsIdentifier() {
		return " AS " + Quote(Short(p.Identifier()))
	}
	return ""
}

// assignments reads SET's list; a table's name before a column is dropped.
func (p *Parser) assignments(t *Table) string {
	return p.List(func() string {
		column := p.Identifier()
		for p.AcceptSymbol(".") {
			column = p.AnyIdentifier()
		}
		p.ExpectSymbol("=")
		return Quote(Short(column)) + " = " + p.assigned(t.Column(column))
	})
}

// assigned reads a value for a column. What Postgres would take for the text of
// a type that is the stand-in's own is converted first.
func (p *Parser) assigned(c ColumnMeta) string {
	if p.Accept("DEFAULT") {
		return "DEFAULT"
	}
	e := p.Expression()
	if e.Kind == BoundZoned && c.Type == "TIMESTAMP_TZ" {
		return "snowsim.to_timestamp_tz(" + e.Text + "::text)"
	}
	if e.Kind == StringConstant || e.Kind == BoundValue {
		switch c.Type {
		case "TIMESTAMP_TZ":
			return "snowsim.to_timestamp_tz(" + e.SQL + "::text)"
		case "VARIANT", "OBJECT", "ARRAY":
			return "to_jsonb(" + e.SQL + "::text)"
		}
	}
	return e.SQL
}

// Delete reads DELETE FROM t [USING …] [WHERE …].
func (p *Parser) Delete() *Plan {
	p.Expect("DELETE", "FROM")
	t := p.target("DELETE")
	sql := "DELETE FROM " + t.Name.Postgres() + p.targetAlias()
	if p.Accept("USING") {
		sql += " USING " + p.List(p.joined)
	}
	if p.Accept("WHERE") {
		sql += " WHERE " + p.SQL()
	}
	return &Plan{Type: protocol.Delete, SQL: sql, Work: warehouse.Work{Table: t.Type, Op: warehouse.Write}}
}

// Merge reads MERGE INTO t USING s ON … WHEN …, which Postgres has too.
func (p *Parser) Merge() *Plan {
	p.Expect("MERGE", "INTO")
	t := p.target("MERGE")
	sql := "MERGE INTO " + t.Name.Postgres() + p.targetAlias()
	p.Expect("USING")
	sql += " USING " + p.from()
	p.Expect("ON")
	sql += " ON " + p.SQL()
	for p.Accept("WHEN") {
		sql += " WHEN"
		if p.Accept("NOT") {
			sql += " NOT"
		}
		p.Expect("MATCHED")
		sql += " MATCHED"
		if p.Accept("AND") {
			sql += " AND " + p.SQL()
		}
		p.Expect("THEN")
		switch {
		case p.Accept("UPDATE"):
			p.Expect("SET")
			sql += " THEN UPDATE SET " + p.assignments(t)
		case p.Accept("DELETE"):
			sql += " THEN DELETE"
		default:
			p.Expect("INSERT")
			sql += " THEN INSERT"
			if p.IsSymbol("(") {
				p.InParentheses(func() {
					sql += " (" + p.List(func() string {
						column := p.Identifier()
						for p.AcceptSymbol(".") {
							column = p.AnyIdentifier()
						}
						return Quote(Short(column))
					}) + ")"
				})
			}
			p.Expect("VALUES")
			p.InParentheses(func() { sql += " VALUES (" + p.List(p.SQL) + ")" })
		}
	}
	return &Plan{Type: protocol.Merge, SQL: sql, Work: warehouse.Work{Table: t.Type, Op: warehouse.Write}}
}

// Truncate reads TRUNCATE [TABLE] [IF EXISTS] t.
func (p *Parser) Truncate() *Plan {
	p.Expect("TRUNCATE")
	p.Accept("TABLE")
	ifExists := p.Accept("IF", "EXISTS")
	n := p.Name()
	if t, err := p.Account.Tables.Table(p.Context, n); err != nil {
		p.Fail(err)
	} else if t == nil && ifExists {
		return p.Done("Statement executed successfully.")
	}
	t := p.Resolve(n, "TRUNCATE")
	if t.Type == warehouse.Interactive {
		p.Fail(protocol.CompilationError("001422", "42601", "TRUNCATE is not supported on interactive table '%s'.",
			Display(n.Object)))
	}
	return p.DDL("Statement executed successfully.", func(ctx context.Context, conn *pgx.Conn) error {
		return ExecAll(ctx, conn, "TRUNCATE "+t.Name.Postgres())
	})
}
