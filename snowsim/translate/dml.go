package translate

import (
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

// Insert reads INSERT INTO t [(columns)] VALUES … or a query.
func (p *Parser) Insert() *Plan {
	p.Expect("INSERT")
	if p.IsAny("OVERWRITE", "ALL", "FIRST") {
		p.Fail(protocol.NotSimulated("INSERT %s", p.Peek().Text))
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
	made.SQL = sql
	return made
}

// Update reads UPDATE t SET … [WHERE …].
func (p *Parser) Update() *Plan {
	p.Expect("UPDATE")
	t := p.target("UPDATE")
	sql := "UPDATE " + t.Name.Postgres()
	p.Expect("SET")
	sql += " SET " + p.assignments(t)
	if p.Accept("WHERE") {
		sql += " WHERE " + p.SQL()
	}
	return &Plan{Type: protocol.Update, SQL: sql, Work: warehouse.Work{Table: t.Type, Op: warehouse.Write}}
}

// assignments reads SET's list.
func (p *Parser) assignments(t *Table) string {
	return p.List(func() string {
		column := p.Identifier()
		p.ExpectSymbol("=")
		return Quote(Short(column)) + " = " + p.assigned(t.Column(column))
	})
}

// assigned reads a value for a column. What Postgres would take for the text of
// a type that is the stand-in's own is converted first.
func (p *Parser) assigned(c ColumnMeta) string {
	e := p.Expression()
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

// Delete reads DELETE FROM t [WHERE …].
func (p *Parser) Delete() *Plan {
	p.Expect("DELETE", "FROM")
	t := p.target("DELETE")
	sql := "DELETE FROM " + t.Name.Postgres()
	if p.Accept("WHERE") {
		sql += " WHERE " + p.SQL()
	}
	return &Plan{Type: protocol.Delete, SQL: sql, Work: warehouse.Work{Table: t.Type, Op: warehouse.Write}}
}
