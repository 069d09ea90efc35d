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
	sql := "WITH "
	if p.Accept("RECURSIVE") {
		sql = "WITH RECURSIVE "
	}
	return sql + p.List(func() string {
		name := p.Identifier()
		item := Quote(Short(name))
		if p.IsSymbol("(") {
			p.InParentheses(func() {
				item += " (" + p.List(func() string { return Quote(Short(p.Identifier())) }) + ")"
			})
		}
		p.Expect("AS")
		if strings.HasPrefix(sql, "WITH RECURSIVE") {
			p.common = append(p.common, name)
		}
		p.InParentheses(func() { item += " AS (" + p.selectStatement() + ")" })
		p.common = append(p.common, name)
		return item
	}) + " "
}

func (p *Parser) setOperations() string {
	sql := p.operand()
	for {
		var op string
		switch {
		case p.Accept("UNION"):
			op = " UNION "
		case p.Accept("INTERSECT"):
			op = " INTERSECT "
		case p.Accept("EXCEPT"), p.Accept("MINUS"):
			op = " EXCEPT "
		default:
			return sql
		}
		if p.Accept("ALL") {
			op += "ALL "
		}
		sql += op + p.operand()
	}
}

func (p *Parser) operand() (sql string) {
	switch {
	case p.IsSymbol("("):
		p.InParentheses(func() { sql = "(" + p.selectStatement() + ")" })
		return sql
	case p.Is("VALUES"):
		return p.values()
	}
	return p.selectCore()
}

func (p *Parser) limit() string {
	sql := ""
	for {
		switch {
		case p.Accept("LIMIT"):
			sql += " LIMIT " + p.count()
		case p.Accept("OFFSET"):
			sql += " OFFSET " + p.count()
			_ = p.Accept("ROWS") || p.Accept("ROW")
		case p.Accept("FETCH"):
			_ = p.Accept("FIRST") || p.Accept("NEXT")
			sql += " LIMIT " + p.count()
			_ = p.Accept("ROWS") || p.Accept("ROW")
			p.Accept("ONLY")
		default:
			return sql
		}
	}
}

// count reads a number of rows: a constant, a bind or NULL.
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
	case Null:
		return "ALL"
	}
	p.Failf("Invalid row count in limit clause")
	return ""
}

// item is one expression of a SELECT's list.
type item struct {
	sql  string
	name string // of the column, as stored; empty for *
	// aggregate tells that an aggregate stands in it.
	aggregate bool
}

// countedItem is item that notes whether an aggregate was read.
func (p *Parser) countedItem() item {
	p.Aggregated = false
	it := p.item()
	it.aggregate = p.Aggregated
	return it
}

func (p *Parser) selectCore() string {
	p.Expect("SELECT")
	p.query = &scope{outer: p.query}
	inAggregate := p.Aggregated
	head := "SELECT "
	if p.Accept("DISTINCT") {
		head += "DISTINCT "
	} else {
		p.Accept("ALL")
	}
	top := ""
	if p.Is("TOP") && (p.PeekAt(1).Kind == Number || p.PeekAt(1).Kind == Mark) {
		p.Advance(1)
		top = " LIMIT " + p.count()
	}
	items := []item{p.countedItem()}
	for p.AcceptSymbol(",") {
		items = append(items, p.countedItem())
	}
	rest := ""
	if p.Accept("FROM") {
		rest += " FROM " + p.List(p.joined)
	}
	if p.Accept("WHERE") {
		rest += " WHERE " + p.SQL()
	}
	rest += p.grouping(items)
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
	p.query, p.Aggregated = p.query.outer, inAggregate
	return sql + top
}

// grouping reads GROUP BY.
func (p *Parser) grouping(items []item) string {
	if !p.Accept("GROUP", "BY") {
		return ""
	}
	if p.Accept("ALL") {
		var keys []string
		for i, it := range items {
			if !it.aggregate {
				keys = append(keys, strconv.Itoa(i+1))
			}
		}
		if len(keys) == 0 {
			return ""
		}
		return " GROUP BY " + strings.Join(keys, ", ")
	}
	return " GROUP BY " + p.List(func() string {
		switch {
		case p.Is("ROLLUP") || p.Is("CUBE"):
			word := p.Next().Text
			var sql string
			p.InParentheses(func() { sql = word + " (" + p.List(p.SQL) + ")" })
			return sql
		case p.Accept("GROUPING", "SETS"):
			var sql string
			p.InParentheses(func() {
				sql = "GROUPING SETS (" + p.List(func() string {
					if p.IsSymbol("(") && p.PeekAt(1).Kind == Symbol && p.PeekAt(1).Text == ")" {
						p.Advance(2)
						return "()"
					}
					return p.SQL()
				}) + ")"
			})
			return sql
		}
		return p.SQL()
	})
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
		if it.name != "" {
			names = append(names, Quote(Short(it.name)))
			continue
		}
		if it.sql != "*" || len(p.query.sources) != 1 || p.query.sources[0].table == nil {
			p.Fail(protocol.NotSimulated("QUALIFY with * over more than one table"))
		}
		for _, c := range p.query.sources[0].table.Columns {
			names = append(names, Quote(Short(c.Name)))
		}
	}
	return "SELECT " + strings.Join(names, ", ") + " FROM (" + head + strings.Join(all, ", ") + ", " + condition + " AS " +
		keep + rest + ") AS " +
		Quote(p.Fresh("qualified")) + " WHERE " + keep
}

// rowNumbers replaces the markers of RANDOM and SEQ now that FROM is known.
func (p *Parser) rowNumbers(sql string) string {
	if !strings.Contains(sql, RowMarker) {
		return sql
	}
	n := "(row_number() OVER () - 1)"
	if p.query.generator != "" {
		n = p.query.generator + "." + generatorColumn
	} else if len(p.query.sources) == 0 {
		n = "0::bigint"
	}
	return strings.ReplaceAll(sql, RowMarker, n)
}

const generatorColumn = `"generator~n"`

// values reads VALUES (…), (…).
func (p *Parser) values() string {
	p.Expect("VALUES")
	return "VALUES " + p.List(func() (row string) {
		p.InParentheses(func() { row = "(" + p.List(p.SQL) + ")" })
		return row
	})
}

// joined reads one item of FROM with its joins.
func (p *Parser) joined() string {
	sql := p.from()
	for {
		join := ""
		switch {
		case p.Accept("NATURAL"):
			join = " NATURAL"
			fallthrough
		default:
			switch {
			case p.Accept("INNER"):
				join += " INNER"
			case p.Accept("CROSS"):
				join += " CROSS"
			case p.IsAny("LEFT", "RIGHT", "FULL"):
				join += " " + p.Next().Text
				p.Accept("OUTER")
			}
			if join == "" && !p.Is("JOIN") {
				return sql
			}
			p.Expect("JOIN")
		}
		sql += join + " JOIN " + p.from()
		switch {
		case p.Accept("ON"):
			sql += " ON " + p.SQL()
		case p.Accept("USING"):
			p.InParentheses(func() {
				sql += " USING (" + p.List(func() string { return Quote(Short(p.Identifier())) }) + ")"
			})
		case !strings.Contains(join, "CROSS") && !strings.Contains(join, "NATURAL"):
			sql += " ON true" // Snowflake takes a join without a condition
		}
	}
}

// from reads one table, subquery or table function of FROM.
func (p *Parser) from() (sql string) {
	switch {
	case p.IsSymbol("("):
		columns := 0
		p.InParentheses(func() {
			switch {
			case p.Is("VALUES"):
				sql, columns = p.countedValues()
			case p.IsAny("SELECT", "WITH"), p.IsSymbol("(") && p.subqueryAhead():
				sql = "(" + p.selectStatement() + ")"
			default:
				sql = "(" + p.joined() + ")"
			}
		})
		if columns > 0 {
			return sql + p.valuesAlias(columns)
		}
		return sql + p.alias("subquery")
	case p.Is("VALUES"):
		rows, columns := p.countedValues()
		return rows + p.valuesAlias(columns)
	case p.Accept("LATERAL"):
		p.InParentheses(func() { sql = "LATERAL (" + p.selectStatement() + ")" })
		return sql + p.alias("subquery")
	case p.Is("TABLE") && p.PeekAt(1).Text == "(":
		p.Advance(1)
		generates := false
		p.InParentheses(func() { sql, generates = p.tableFunction() })
		alias := p.Fresh("function")
		if p.Accept("AS") || p.IsIdentifier() {
			alias = p.Identifier()
		}
		p.addSource(source{alias: alias})
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

// subqueryAhead reports whether parentheses open a SELECT rather than a join.
func (p *Parser) subqueryAhead() bool {
	for n := 0; ; n++ {
		t := p.PeekAt(n)
		if t.Kind == Symbol && t.Text == "(" {
			continue
		}
		return IsOneOf(t, "SELECT", "WITH")
	}
}

// countedValues reads VALUES … as a table and counts its columns: the commas of
// the first row at its own level tell.
func (p *Parser) countedValues() (sql string, columns int) {
	start := p.At()
	sql = "(" + p.values() + ")"
	columns = 1
	for i, depth := start, 0; i < p.At(); i++ {
		if t := p.Tokens[i]; t.Kind == Symbol {
			switch t.Text {
			case "(", "[", "{":
				depth++
			case ")", "]", "}":
				depth--
			case ",":
				if depth == 1 {
					columns++
				}
			}
		}
		if i > start+1 && depth == 0 {
			break
		}
	}
	return sql, columns
}

// valuesAlias reads an alias of VALUES, whose columns are COLUMN1, COLUMN2 …
// unless they are named.
func (p *Parser) valuesAlias(columns int) string {
	alias := p.Fresh("values")
	if p.Accept("AS") || p.IsIdentifier() {
		alias = p.Identifier()
	}
	p.addSource(source{alias: alias})
	sql := " AS " + Quote(Short(alias))
	if p.IsSymbol("(") {
		p.InParentheses(func() {
			sql += " (" + p.List(func() string { return Quote(Short(p.Identifier())) }) + ")"
		})
		return sql
	}
	names := make([]string, columns)
	for i := range names {
		names[i] = Quote("COLUMN" + strconv.Itoa(i+1))
	}
	return sql + " (" + strings.Join(names, ", ") + ")"
}

func (p *Parser) addSource(s source) {
	if p.query != nil {
		p.query.sources = append(p.query.sources, s)
	}
}

// alias reads [AS] alias [(columns)]; Postgres 15 wants one for a subquery, which
// is then called what no statement can say.
func (p *Parser) alias(prefix string) string {
	alias := ""
	if p.Accept("AS") || p.IsIdentifier() {
		alias = p.Identifier()
	} else if prefix != "" {
		alias = p.Fresh(prefix)
	}
	p.addSource(source{alias: alias})
	if alias == "" {
		return ""
	}
	sql := " AS " + Quote(Short(alias))
	if p.IsSymbol("(") {
		p.InParentheses(func() {
			sql += " (" + p.List(func() string { return Quote(Short(p.Identifier())) }) + ")"
		})
	}
	return sql
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
		p.addSource(source{alias: alias})
		return view + " AS " + Quote(Short(alias))
	}
	t := p.Resolve(p.Complete(parts), "SELECT")
	sampled := p.sample(t)
	alias := t.Name.Object
	named := p.Accept("AS") || p.IsIdentifier()
	if named {
		alias = p.Identifier()
	}
	if sampled == (sampling{}) {
		sampled = p.sample(t)
	}
	p.addSource(source{alias: alias, table: t})
	sql := t.Name.Postgres()
	if t.Kind == View {
		if sampled != (sampling{}) {
			p.Fail(protocol.NotSimulated("SAMPLE of a view"))
		}
		sql, named = p.view(t), true
	}
	if sampled.subquery != "" {
		sql, named = sampled.subquery, true
	}
	if named {
		sql += " AS " + Quote(Short(alias))
	}
	return sql + sampled.clause
}

// sampling is what SAMPLE becomes: a clause behind the table for a percentage,
// a subquery in its place for a number of rows.
type sampling struct{ clause, subquery string }

func (p *Parser) sample(t *Table) (s sampling) {
	if !p.Accept("SAMPLE") && !p.Accept("TABLESAMPLE") {
		return s
	}
	method := "BERNOULLI"
	switch {
	case p.Accept("BERNOULLI"), p.Accept("ROW"):
	case p.Accept("SYSTEM"), p.Accept("BLOCK"):
		method = "SYSTEM"
	}
	p.InParentheses(func() {
		e := p.Primary()
		if e.Kind != NumberConstant && e.Kind != BoundValue {
			p.Unexpected()
		}
		if p.Accept("ROWS") {
			s.subquery = "(SELECT * FROM " + t.Name.Postgres() + " ORDER BY random() LIMIT (" + e.SQL + ")::bigint)"
			return
		}
		s.clause = " TABLESAMPLE " + method + " ((" + e.SQL + ")::float4)"
	})
	if p.Accept("SEED") || p.Accept("REPEATABLE") {
		p.InParentheses(func() {
			if seed := strconv.FormatInt(p.Integer(), 10); s.clause != "" {
				s.clause += " REPEATABLE (" + seed + ")"
			}
		})
	}
	return s
}

// scope is what a SELECT's expressions may refer to. Its FROM comes after its
// list, so what depends on FROM is written as a marker and replaced at the end.
type scope struct {
	outer     *scope
	generator string // the alias of TABLE(GENERATOR(…)), quoted
	sources   []source
}

// source is one item of FROM, as far as its columns are known.
type source struct {
	alias string // as stored
	table *Table // nil for everything but tables
}

// Selection is a statement that returns rows.
func (p *Parser) Selection() *Plan {
	sql := p.selectStatement()
	return &Plan{Type: protocol.Select, SQL: sql, Work: p.Work(warehouse.Scan)}
}
