package translate

import (
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
	"github.com/loadstone-db/loadstone/snowsim/warehouse"
)

// selectStatement reads [WITH …] SELECT … with its set operations, ORDER BY and LIMIT.
func (p *parser) selectStatement() (sql string) {
	p.nested(func() {
		common := len(p.common)
		with := p.with()
		sql = with + p.setOperations()
		if p.accept("ORDER", "BY") {
			sql += " ORDER BY " + p.list(p.ordering)
		}
		sql += p.limit()
		p.common = p.common[:common]
	})
	return sql
}

// with reads common table expressions, whose names hide tables from then on.
func (p *parser) with() string {
	if !p.accept("WITH") {
		return ""
	}
	if p.is("RECURSIVE") {
		p.fail(protocol.NotSimulated("WITH RECURSIVE"))
	}
	return "WITH " + p.list(func() string {
		name := p.identifier()
		item := quote(shortName(name))
		p.expect("AS")
		p.inParentheses(func() { item += " AS (" + p.selectStatement() + ")" })
		p.common = append(p.common, name)
		return item
	}) + " "
}

func (p *parser) setOperations() string {
	sql := p.selectCore()
	for p.accept("UNION") {
		sql += " UNION "
		if p.accept("ALL") {
			sql += "ALL "
		}
		sql += p.selectCore()
	}
	if p.isAny("INTERSECT", "EXCEPT", "MINUS") {
		p.fail(protocol.NotSimulated("%s", p.peek().text))
	}
	return sql
}

func (p *parser) limit() string {
	sql := ""
	for {
		switch {
		case p.accept("LIMIT"):
			sql += " LIMIT " + p.count()
		case p.accept("OFFSET"):
			sql += " OFFSET " + p.count()
		default:
			return sql
		}
	}
}

// count reads a number of rows: a constant or a bind.
func (p *parser) count() string {
	e := p.primary()
	switch e.kind {
	case exprNumber:
		if _, err := strconv.ParseUint(e.text, 10, 63); err != nil {
			p.failf("Invalid row count '%s' in limit clause", e.text)
		}
		return e.sql
	case exprBind:
		return "(" + e.sql + ")::bigint"
	}
	p.failf("Invalid row count in limit clause")
	return ""
}

// item is one expression of a SELECT's list.
type item struct {
	sql  string
	name string // of the column, as stored; empty for *
}

func (p *parser) selectCore() string {
	p.expect("SELECT")
	p.query = &scope{outer: p.query}
	head := "SELECT "
	if p.accept("DISTINCT") {
		head += "DISTINCT "
	}
	items := []item{p.item()}
	for p.acceptSymbol(",") {
		items = append(items, p.item())
	}
	rest := ""
	if p.accept("FROM") {
		rest += " FROM " + p.list(p.joined)
	}
	if p.accept("WHERE") {
		rest += " WHERE " + p.sql()
	}
	rest += p.grouping()
	if p.accept("HAVING") {
		rest += " HAVING " + p.sql()
	}
	qualify := ""
	if p.accept("QUALIFY") {
		qualify = p.sql()
	}
	all := make([]string, len(items))
	for i, it := range items {
		all[i] = it.sql
	}
	sql := head + strings.Join(all, ", ") + rest
	if qualify != "" {
		sql = p.qualified(head, items, all, rest, qualify)
	}
	sql = p.rowNumbers(sql)
	p.query = p.query.outer
	return sql
}

// grouping reads GROUP BY.
func (p *parser) grouping() string {
	if !p.accept("GROUP", "BY") {
		return ""
	}
	if p.isAny("ALL", "ROLLUP", "CUBE", "GROUPING") {
		p.fail(protocol.NotSimulated("GROUP BY %s", p.peek().text))
	}
	return " GROUP BY " + p.list(p.sql)
}

// item reads one item of a SELECT's list. A column without a name of its own is
// called what was written, in upper case, as in Snowflake.
func (p *parser) item() item {
	if p.acceptSymbol("*") {
		if p.isAny("EXCLUDE", "EXCEPT", "RENAME", "REPLACE", "ILIKE") {
			p.fail(protocol.NotSimulated("SELECT * %s", p.peek().text))
		}
		return item{sql: "*"}
	}
	from := p.position()
	e := p.expression()
	to := p.position()
	if e.text == "*" && strings.HasSuffix(e.sql, ".*") {
		return item{sql: e.sql}
	}
	var name string
	switch {
	case p.accept("AS"):
		name = p.anyIdentifier()
	case p.isIdentifier():
		name = p.identifier()
	case e.kind == exprColumn:
		return item{sql: e.sql, name: e.text}
	default:
		name = strings.ToUpper(p.source(from, to))
		p.account.rememberIdentifier(name)
	}
	return item{sql: e.sql + " AS " + quote(shortName(name)), name: name}
}

// qualified writes QUALIFY as a condition around the SELECT.
func (p *parser) qualified(head string, items []item, all []string, rest, condition string) string {
	keep := quote(p.uniqueName("qualify"))
	var names []string
	for _, it := range items {
		if it.name == "" {
			p.fail(protocol.NotSimulated("QUALIFY with *"))
		}
		names = append(names, quote(shortName(it.name)))
	}
	return "SELECT " + strings.Join(names, ", ") + " FROM (" + head + strings.Join(all, ", ") + ", " + condition + " AS " +
		keep + rest + ") AS " +
		quote(p.uniqueName("qualified")) + " WHERE " + keep
}

// rowNumbers replaces the markers of SEQ now that FROM is known.
func (p *parser) rowNumbers(sql string) string {
	if !strings.Contains(sql, rowMarker) {
		return sql
	}
	n := "(row_number() OVER () - 1)"
	if p.query.generator != "" {
		n = p.query.generator + "." + generatorColumn
	}
	return strings.ReplaceAll(sql, rowMarker, n)
}

const generatorColumn = `"generator~n"`

// joined reads one item of FROM with its joins.
func (p *parser) joined() string {
	sql := p.from()
	for {
		join := ""
		switch {
		case p.accept("INNER"):
			join = " INNER"
		case p.isAny("LEFT", "RIGHT", "FULL"):
			join = " " + p.next().text
			p.accept("OUTER")
		case p.isAny("NATURAL", "CROSS"):
			p.fail(protocol.NotSimulated("%s JOIN", p.peek().text))
		}
		if join == "" && !p.is("JOIN") {
			return sql
		}
		p.expect("JOIN")
		sql += join + " JOIN " + p.from()
		p.expect("ON")
		sql += " ON " + p.sql()
	}
}

// from reads one table, subquery or table function of FROM.
func (p *parser) from() (sql string) {
	switch {
	case p.isSymbol("("):
		p.inParentheses(func() { sql = "(" + p.selectStatement() + ")" })
		return sql + p.alias("subquery")
	case p.isAny("VALUES", "LATERAL"):
		p.fail(protocol.NotSimulated("FROM %s", p.peek().text))
	case p.is("TABLE") && p.peekAt(1).text == "(":
		p.advance(1)
		generates := false
		p.inParentheses(func() { sql, generates = p.tableFunction() })
		alias := p.uniqueName("function")
		if p.accept("AS") || p.isIdentifier() {
			alias = p.identifier()
		}
		sql += " AS " + quote(shortName(alias))
		if generates {
			sql += " (" + generatorColumn + ")"
			if p.query.generator == "" {
				p.query.generator = quote(shortName(alias))
			}
		}
		return sql
	}
	return p.tableReference()
}

// alias reads [AS] alias; Postgres 15 wants one for a subquery, which
// is then called what no statement can say.
func (p *parser) alias(prefix string) string {
	alias := ""
	if p.accept("AS") || p.isIdentifier() {
		alias = p.identifier()
	} else if prefix != "" {
		alias = p.uniqueName(prefix)
	}
	if alias == "" {
		return ""
	}
	return " AS " + quote(shortName(alias))
}

// tableReference reads a table by name.
func (p *parser) tableReference() string {
	parts := p.parts()
	if len(parts) == 1 {
		for _, c := range p.common {
			if c == parts[0] {
				return quote(shortName(parts[0])) + p.alias("")
			}
		}
	}
	if p.isAny("AT", "BEFORE") && p.peekAt(1).text == "(" {
		p.fail(protocol.NotSimulated("Time Travel"))
	}
	if view, ok := p.systemView(parts); ok {
		alias := parts[len(parts)-1]
		if p.accept("AS") || p.isIdentifier() {
			alias = p.identifier()
		}
		return view + " AS " + quote(shortName(alias))
	}
	t := p.resolve(p.qualify(parts), "SELECT")
	sampled := p.sample()
	alias := t.name.object
	named := p.accept("AS") || p.isIdentifier()
	if named {
		alias = p.identifier()
	}
	sql := t.name.postgres()
	if t.Kind == kindView {
		if sampled != "" {
			p.fail(protocol.NotSimulated("SAMPLE of a view"))
		}
		sql, named = p.view(t), true
	}
	if named {
		sql += " AS " + quote(shortName(alias))
	}
	return sql + sampled
}

// sample reads SAMPLE [BERNOULLI | SYSTEM] (percent) [SEED (n)].
func (p *parser) sample() string {
	if !p.accept("SAMPLE") {
		return ""
	}
	method := "BERNOULLI"
	if p.accept("SYSTEM") {
		method = "SYSTEM"
	} else {
		p.accept("BERNOULLI")
	}
	sql := ""
	p.inParentheses(func() {
		e := p.primary()
		if e.kind != exprNumber {
			p.unexpected()
		}
		sql = " TABLESAMPLE " + method + " ((" + e.sql + ")::float4)"
	})
	if p.accept("SEED") {
		p.inParentheses(func() { sql += " REPEATABLE (" + strconv.FormatInt(p.integer(), 10) + ")" })
	}
	return sql
}

// scope is what a SELECT's expressions may refer to. Its FROM comes after its
// list, so what depends on FROM is written as a marker and replaced at the end.
type scope struct {
	outer     *scope
	generator string // the alias of TABLE(GENERATOR(…)), quoted
}

// selectPlan is a statement that returns rows.
func (p *parser) selectPlan() *Plan {
	sql := p.selectStatement()
	return &Plan{Type: protocol.Select, SQL: sql, Work: p.work(warehouse.Scan)}
}
