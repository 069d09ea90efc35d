package translate

import (
	"github.com/loadstone-db/loadstone/snowsim/protocol"
	"github.com/loadstone-db/loadstone/snowsim/warehouse"
)

// target reads the table that a statement changes.
func (p *parser) target(privilege string) *tableEntry {
	t := p.resolve(p.name(), privilege)
	if t.tableType == warehouse.Interactive && privilege != "INSERT" {
		p.fail(protocol.CompilationError("001422", "42601", "%s is not supported on interactive table '%s'. Interactive "+
			"tables take INSERT and INSERT OVERWRITE only.",
			privilege, displayName(t.name.object)))
	}
	return t
}

// insert reads INSERT INTO t [(columns)] VALUES … or a query.
func (p *parser) insert() *Plan {
	p.expect("INSERT")
	if p.isAny("OVERWRITE", "ALL", "FIRST") {
		p.fail(protocol.NotSimulated("INSERT %s", p.peek().text))
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
				return quote(shortName(c))
			}) + ")"
		})
	}
	made := &Plan{Type: protocol.Insert, Work: warehouse.Work{Table: t.tableType, Op: warehouse.Write}}
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
	made.SQL = sql
	return made
}

// update reads UPDATE t SET … [WHERE …].
func (p *parser) update() *Plan {
	p.expect("UPDATE")
	t := p.target("UPDATE")
	sql := "UPDATE " + t.name.postgres()
	p.expect("SET")
	sql += " SET " + p.assignments(t)
	if p.accept("WHERE") {
		sql += " WHERE " + p.sql()
	}
	return &Plan{Type: protocol.Update, SQL: sql, Work: warehouse.Work{Table: t.tableType, Op: warehouse.Write}}
}

// assignments reads SET's list.
func (p *parser) assignments(t *tableEntry) string {
	return p.list(func() string {
		column := p.identifier()
		p.expectSymbol("=")
		return quote(shortName(column)) + " = " + p.assigned(t.column(column))
	})
}

// assigned reads a value for a column. What Postgres would take for the text of
// a type that is the stand-in's own is converted first.
func (p *parser) assigned(c columnMeta) string {
	e := p.expression()
	if e.kind == exprString || e.kind == exprBind {
		switch c.Type {
		case "TIMESTAMP_TZ":
			return "snowsim.to_timestamp_tz(" + e.sql + "::text)"
		case "VARIANT", "OBJECT", "ARRAY":
			return "to_jsonb(" + e.sql + "::text)"
		}
	}
	return e.sql
}

// deleteRows reads DELETE FROM t [WHERE …].
func (p *parser) deleteRows() *Plan {
	p.expect("DELETE", "FROM")
	t := p.target("DELETE")
	sql := "DELETE FROM " + t.name.postgres()
	if p.accept("WHERE") {
		sql += " WHERE " + p.sql()
	}
	return &Plan{Type: protocol.Delete, SQL: sql, Work: warehouse.Work{Table: t.tableType, Op: warehouse.Write}}
}

// merge reads MERGE INTO t USING source ON condition WHEN …, which Postgres has too.
func (p *parser) merge() *Plan {
	p.expect("MERGE", "INTO")
	t := p.target("MERGE")
	sql := "MERGE INTO " + t.name.postgres() + p.alias("")
	p.expect("USING")
	sql += " USING " + p.from()
	p.expect("ON")
	sql += " ON " + p.sql()
	for p.accept("WHEN") {
		matched := !p.accept("NOT")
		p.expect("MATCHED")
		when := " WHEN MATCHED"
		if !matched {
			when = " WHEN NOT MATCHED"
		}
		if p.accept("AND") {
			when += " AND " + p.sql()
		}
		p.expect("THEN")
		switch {
		case matched && p.accept("UPDATE", "SET"):
			when += " THEN UPDATE SET " + p.assignments(t)
		case matched && p.accept("DELETE"):
			when += " THEN DELETE"
		default:
			when += " THEN " + p.mergeInsert(t)
		}
		sql += when
	}
	return &Plan{Type: protocol.Update, SQL: sql, Work: warehouse.Work{Table: t.tableType, Op: warehouse.Write}}
}

// mergeInsert reads INSERT [(columns)] VALUES (…) of a MERGE.
func (p *parser) mergeInsert(t *tableEntry) string {
	p.expect("INSERT")
	sql, columns := "INSERT", t.Columns
	if p.isSymbol("(") {
		columns = nil
		p.inParentheses(func() {
			sql += " (" + p.list(func() string {
				c := p.identifier()
				columns = append(columns, t.column(c))
				return quote(shortName(c))
			}) + ")"
		})
	}
	p.expect("VALUES")
	i := 0
	p.inParentheses(func() {
		sql += " VALUES (" + p.list(func() string {
			c := columnMeta{}
			if i < len(columns) {
				c = columns[i]
			}
			i++
			return p.assigned(c)
		}) + ")"
	})
	return sql
}
