package translate

import (
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
	"github.com/loadstone-db/loadstone/snowsim/warehouse"
)

// selectStatement reads [WITH …] SELECT … with its set operations, ORDER BY and LIMIT.
func (p *Parser) selectStatement() (sql string) {
	p.Nested(func() {
		common := len(p.common)
		with := p.with()
		sql = with + p.setOperations()
		if p.Accept("ORDER", "BY") {
			sql += " ORDER BY " + p.List(p.Ordering)
		}
		sql += p.limit()
		p.common = p.common[:common]
	})
	return sql
}

// with reads common table expressions, whose names hide tables from then on.
func (p *Parser) with() string {
	if !p.Accept("WITH") {
		return ""
	}
	if p.Is("RECURSIVE") {
		p.Fail(protocol.NotSimulated("WITH RECURSIVE"))
	}
	return "WITH " + p.List(func() string {
		name := p.Identifier()
		item := Quote(Short(name))
		p.Expect("AS")
		p.InParentheses(func() { item += " AS (" + p.selectStatement() + ")" })
		p.common = append(p.common, name)
		return item
	}) + " "
}

func (p *Parser) setOperations() string {
	sql := p.selectCore()
	for p.Accept("UNION") {
		sql += " UNION "
		if p.Accept("ALL") {
			sql += "ALL "
		}
		sql += p.selectCore()
	}
	if p.IsAny("INTERSECT", "EXCEPT", "MINUS") {
		p.Fail(protocol.NotSimulated("%s", p.Peek().Text))
	}
	return sql
}

func (p *Parser) limit() string {
	sql := ""
	for {
		switch {
		case p.Accept("LIMIT"):
			sql += " LIMIT " + p.count()
		case p.Accept("OFFSET"):
			sql += " OFFSET " + p.count()
		default:
			return sql
		}
	}
}

// count reads a number of rows: a constant or a bind.
func (p *Parser) count() string {
	e := p.Primary()
	switch e.Kind {
	case NumberConstant:
		if _, err := strconv.ParseUint(e.Text, 10, 63); err != nil {
			p.Failf("Invalid row count '%s' in limit clause", e.Text)
		}
		return e.SQL
	case BoundValue:
		return "(" + e.SQL + ")::bigint"
	}
	p.Failf("Invalid row count in limit clause")
	return ""
}

// item is one expression of a SELECT's list.
type item struct {
	sql  string
	name string // of the column, as stored; empty for *
}

func (p *Parser) selectCore() string {
	p.Expect("SELECT")
	p.query = &scope{outer: p.query}
	head := "SELECT "
	if p.Accept("DISTINCT") {
		head += "DISTINCT "
	}
	items := []item{p.item()}
	for p.AcceptSymbol(",") {
		items = append(items, p.item())
	}
	rest := ""
	if p.Accept("FROM") {
		rest += " FROM " + p.List(p.joined)
	}
	if p.Accept("WHERE") {
		rest += " WHERE " + p.SQL()
	}
	rest += p.grouping()
	if p.Accept("HAVING") {
		rest += " HAVING " + p.SQL()
	}
	qualify := ""
	if p.Accept("QUALIFY") {
		qualify = p.SQL()
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
func (p *Parser) grouping() string {
	if !p.Accept("GROUP", "BY") {
		return ""
	}
	if p.IsAny("ALL", "ROLLUP", "CUBE", "GROUPING") {
		p.Fail(protocol.NotSimulated("GROUP BY %s", p.Peek().Text))
	}
	return " GROUP BY " + p.List(p.SQL)
}

// item reads one item of a SELECT's list. A column without a name of its own is
// called what was written, in upper case, as in Snowflake.
func (p *Parser) item() item {
	if p.AcceptSymbol("*") {
		if p.IsAny("EXCLUDE", "EXCEPT", "RENAME", "REPLACE", "ILIKE") {
			p.Fail(protocol.NotSimulated("SELECT * %s", p.Peek().Text))
		}
		return item{sql: "*"}
	}
	from := p.At()
	e := p.Expression()
	to := p.At()
	if e.Text == "*" && strings.HasSuffix(e.SQL, ".*") {
		return item{sql: e.SQL}
	}
	var name string
	switch {
	case p.Accept("AS"):
		name = p.AnyIdentifier()
	case p.IsIdentifier():
		name = p.Identifier()
	case e.Kind == ColumnReference:
		return item{sql: e.SQL, name: e.Text}
	default:
		name = strings.ToUpper(p.Source(from, to))
		p.Account.Remember(name)
	}
	return item{sql: e.SQL + " AS " + Quote(Short(name)), name: name}
}

// qualified writes QUALIFY as a condition around the SELECT.
func (p *Parser) qualified(head string, items []item, all []string, rest, condition string) string {
	keep := Quote(p.Fresh("qualify"))
	var names []string
	for _, it := range items {
		if it.name == "" {
			p.Fail(protocol.NotSimulated("QUALIFY with *"))
		}
		names = append(names, Quote(Short(it.name)))
	}
	return "SELECT " + strings.Join(names, ", ") + " FROM (" + head + strings.Join(all, ", ") + ", " + condition + " AS " +
		keep + rest + ") AS " +
		Quote(p.Fresh("qualified")) + " WHERE " + keep
}

// rowNumbers replaces the markers of SEQ now that FROM is known.
func (p *Parser) rowNumbers(sql string) string {
	if !strings.Contains(sql, RowMarker) {
		return sql
	}
	n := "(row_number() OVER () - 1)"
	if p.query.generator != "" {
		n = p.query.generator + "." + generatorColumn
	}
	return strings.ReplaceAll(sql, RowMarker, n)
}

const generatorColumn = `"generator~n"`

// joined reads one item of FROM with its joins.
func (p *Parser) joined() string {
	sql := p.from()
	for {
		join := ""
		switch {
		case p.Accept("INNER"):
			join = " INNER"
		case p.IsAny("LEFT", "RIGHT", "FULL"):
			join = " " + p.Next().Text
			p.Accept("OUTER")
		case p.IsAny("NATURAL", "CROSS"):
			p.Fail(protocol.NotSimulated("%s JOIN", p.Peek().Text))
		}
		if join == "" && !p.Is("JOIN") {
			return sql
		}
		p.Expect("JOIN")
		sql += join + " JOIN " + p.from()
		p.Expect("ON")
		sql += " ON " + p.SQL()
	}
}

// from reads one table, subquery or table function of FROM.
func (p *Parser) from() (sql string) {
	switch {
	case p.IsSymbol("("):
		p.InParentheses(func() { sql = "(" + p.selectStatement() + ")" })
		return sql + p.alias("subquery")
	case p.IsAny("VALUES", "LATERAL"):
		p.Fail(protocol.NotSimulated("FROM %s", p.Peek().Text))
	case p.Is("TABLE") && p.PeekAt(1).Text == "(":
		p.Advance(1)
		generates := false
		p.InParentheses(func() { sql, generates = p.tableFunction() })
		alias := p.Fresh("function")
		if p.Accept("AS") || p.IsIdentifier() {
			alias = p.Identifier()
		}
		sql += " AS " + Quote(Short(alias))
		if generates {
			sql += " (" + generatorColumn + ")"
			if p.query.generator == "" {
				p.query.generator = Quote(Short(alias))
			}
		}
		return sql
	}
	return p.tableReference()
}

// alias reads [AS] alias; Postgres 15 wants one for a subquery, which
// is then called what no statement can say.
func (p *Parser) alias(prefix string) string {
	alias := ""
	if p.Accept("AS") || p.IsIdentifier() {
		alias = p.Identifier()
	} else if prefix != "" {
		alias = p.Fresh(prefix)
	}
	if alias == "" {
		return ""
	}
	return " AS " + Quote(Short(alias))
}

// tableReference reads a table by name.
func (p *Parser) tableReference() string {
	parts := p.Parts()
	if len(parts) == 1 {
		for _, c := range p.common {
			if c == parts[0] {
				return Quote(Short(parts[0])) + p.alias("")
			}
		}
	}
	if p.IsAny("AT", "BEFORE") && p.PeekAt(1).Text == "(" {
		p.Fail(protocol.NotSimulated("Time Travel"))
	}
	if view, ok := p.systemView(parts); ok {
		alias := parts[len(parts)-1]
		if p.Accept("AS") || p.IsIdentifier() {
			alias = p.Identifier()
		}
		return view + " AS " + Quote(Short(alias))
	}
	t := p.Resolve(p.Complete(parts), "SELECT")
	sampled := p.sample()
	alias := t.Name.Object
	named := p.Accept("AS") || p.IsIdentifier()
	if named {
		alias = p.Identifier()
	}
	sql := t.Name.Postgres()
	if t.Kind == View {
		if sampled != "" {
			p.Fail(protocol.NotSimulated("SAMPLE of a view"))
		}
		sql, named = p.view(t), true
	}
	if named {
		sql += " AS " + Quote(Short(alias))
	}
	return sql + sampled
}

// sample reads SAMPLE [BERNOULLI | SYSTEM] (percent) [SEED (n)].
func (p *Parser) sample() string {
	if !p.Accept("SAMPLE") {
		return ""
	}
	method := "BERNOULLI"
	if p.Accept("SYSTEM") {
		method = "SYSTEM"
	} else {
		p.Accept("BERNOULLI")
	}
	sql := ""
	p.InParentheses(func() {
		e := p.Primary()
		if e.Kind != NumberConstant {
			p.Unexpected()
		}
		sql = " TABLESAMPLE " + method + " ((" + e.SQL + ")::float4)"
	})
	if p.Accept("SEED") {
		p.InParentheses(func() { sql += " REPEATABLE (" + strconv.FormatInt(p.Integer(), 10) + ")" })
	}
	return sql
}

// scope is what a SELECT's expressions may refer to. Its FROM comes after its
// list, so what depends on FROM is written as a marker and replaced at the end.
type scope struct {
	outer     *scope
	generator string // the alias of TABLE(GENERATOR(…)), quoted
}

// Selection is a statement that returns rows.
func (p *Parser) Selection() *Plan {
	sql := p.selectStatement()
	return &Plan{Type: protocol.Select, SQL: sql, Work: p.Work(warehouse.Scan)}
}
