package translate

import (
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/snowsim/plan"
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
	sql := "WITH "
	if p.accept("RECURSIVE") {
		sql = "WITH RECURSIVE "
	}
	return sql + p.list(func() string {
		name := p.identifier()
		item := quote(short(name))
		if p.isSymbol("(") {
			p.inParentheses(func() { item += " (" + p.list(func() string { return quote(short(p.identifier())) }) + ")" })
		}
		p.expect("AS")
		if strings.HasPrefix(sql, "WITH RECURSIVE") {
			p.common = append(p.common, name)
		}
		p.inParentheses(func() { item += " AS (" + p.selectStatement() + ")" })
		p.common = append(p.common, name)
		return item
	}) + " "
}

func (p *parser) setOperations() string {
	sql := p.operand()
	for {
		var op string
		switch {
		case p.accept("UNION"):
			op = " UNION "
		case p.accept("INTERSECT"):
			op = " INTERSECT "
		case p.accept("EXCEPT"), p.accept("MINUS"):
			op = " EXCEPT "
		default:
			return sql
		}
		if p.accept("ALL") {
			op += "ALL "
		}
		sql += op + p.operand()
	}
}

func (p *parser) operand() (sql string) {
	switch {
	case p.isSymbol("("):
		p.inParentheses(func() { sql = "(" + p.selectStatement() + ")" })
		return sql
	case p.is("VALUES"):
		return p.values()
	}
	return p.selectCore()
}

func (p *parser) limit() string {
	sql := ""
	for {
		switch {
		case p.accept("LIMIT"):
			sql += " LIMIT " + p.count()
		case p.accept("OFFSET"):
			sql += " OFFSET " + p.count()
			_ = p.accept("ROWS") || p.accept("ROW")
		case p.accept("FETCH"):
			_ = p.accept("FIRST") || p.accept("NEXT")
			sql += " LIMIT " + p.count()
			_ = p.accept("ROWS") || p.accept("ROW")
			p.accept("ONLY")
		default:
			return sql
		}
	}
}

// count reads a number of rows: a constant, a bind or NULL.
func (p *parser) count() string {
	e := p.primary()
	switch e.kind {
	case numberConstant:
		if _, err := strconv.ParseUint(e.text, 10, 63); err != nil {
			p.failf("Invalid row count '%s' in limit clause", e.text)
		}
		return e.sql
	case boundValue:
		return "(" + e.sql + ")::bigint"
	case null:
		return "ALL"
	}
	p.failf("Invalid row count in limit clause")
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
func (p *parser) countedItem() item {
	p.query.aggregate = false
	it := p.item()
	it.aggregate = p.query.aggregate
	return it
}

func (p *parser) selectCore() string {
	p.expect("SELECT")
	p.query = &scope{outer: p.query}
	head := "SELECT "
	if p.accept("DISTINCT") {
		head += "DISTINCT "
	} else {
		p.accept("ALL")
	}
	top := ""
	if p.is("TOP") && (p.peekAt(1).kind == number || p.peekAt(1).kind == mark) {
		p.i++
		top = " LIMIT " + p.count()
	}
	items := []item{p.countedItem()}
	for p.acceptSymbol(",") {
		items = append(items, p.countedItem())
	}
	rest := ""
	if p.accept("FROM") {
		rest += " FROM " + p.list(p.joined)
	}
	if p.accept("WHERE") {
		rest += " WHERE " + p.sql()
	}
	rest += p.grouping(items)
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
	return sql + top
}

// grouping reads GROUP BY.
func (p *parser) grouping(items []item) string {
	if !p.accept("GROUP", "BY") {
		return ""
	}
	if p.accept("ALL") {
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
	return " GROUP BY " + p.list(func() string {
		switch {
		case p.is("ROLLUP") || p.is("CUBE"):
			word := p.next().text
			var sql string
			p.inParentheses(func() { sql = word + " (" + p.list(p.sql) + ")" })
			return sql
		case p.accept("GROUPING", "SETS"):
			var sql string
			p.inParentheses(func() {
				sql = "GROUPING SETS (" + p.list(func() string {
					if p.isSymbol("(") && p.peekAt(1).kind == symbol && p.peekAt(1).text == ")" {
						p.i += 2
						return "()"
					}
					return p.sql()
				}) + ")"
			})
			return sql
		}
		return p.sql()
	})
}

// item reads one item of a SELECT's list. A column without a name of its own is
// called what was written, in upper case, as in Snowflake.
func (p *parser) item() item {
	if p.acceptSymbol("*") {
		if p.isAny("EXCLUDE", "EXCEPT", "RENAME", "REPLACE", "ILIKE") {
			p.fail(plan.Unsupported("SELECT * %s", p.peek().text))
		}
		return item{sql: "*"}
	}
	from := p.i
	e := p.expression()
	to := p.i
	if e.text == "*" && strings.HasSuffix(e.sql, ".*") {
		return item{sql: e.sql}
	}
	var name string
	switch {
	case p.accept("AS"):
		name = p.anyIdentifier()
	case p.isIdentifier():
		name = p.identifier()
	case e.kind == column:
		return item{sql: e.sql, name: e.text}
	default:
		name = strings.ToUpper(p.source(from, to))
		p.t.remember(name)
	}
	return item{sql: e.sql + " AS " + quote(short(name)), name: name}
}

// qualified writes QUALIFY as a condition around the SELECT.
func (p *parser) qualified(head string, items []item, all []string, rest, condition string) string {
	keep := quote(p.fresh("qualify"))
	var names []string
	for _, it := range items {
		if it.name != "" {
			names = append(names, quote(short(it.name)))
			continue
		}
		if it.sql != "*" || len(p.query.sources) != 1 || p.query.sources[0].table == nil {
			p.fail(plan.Unsupported("QUALIFY with * over more than one table"))
		}
		for _, c := range p.query.sources[0].table.Columns {
			names = append(names, quote(short(c.Name)))
		}
	}
	return "SELECT " + strings.Join(names, ", ") + " FROM (" + head + strings.Join(all, ", ") + ", " + condition + " AS " +
		keep + rest + ") AS " +
		quote(p.fresh("qualified")) + " WHERE " + keep
}

// rowNumbers replaces the markers of RANDOM and SEQ now that FROM is known.
func (p *parser) rowNumbers(sql string) string {
	if !strings.Contains(sql, rowMarker) {
		return sql
	}
	n := "(row_number() OVER () - 1)"
	if p.query.generator != "" {
		n = p.query.generator + "." + generatorColumn
	} else if len(p.query.sources) == 0 {
		n = "0::bigint"
	}
	return strings.ReplaceAll(sql, rowMarker, n)
}

const generatorColumn = `"generator~n"`

// values reads VALUES (…), (…).
func (p *parser) values() string {
	p.expect("VALUES")
	return "VALUES " + p.list(func() (row string) {
		p.inParentheses(func() { row = "(" + p.list(p.sql) + ")" })
		return row
	})
}

// joined reads one item of FROM with its joins.
func (p *parser) joined() string {
	sql := p.from()
	for {
		join := ""
		switch {
		case p.accept("NATURAL"):
			join = " NATURAL"
			fallthrough
		default:
			switch {
			case p.accept("INNER"):
				join += " INNER"
			case p.accept("CROSS"):
				join += " CROSS"
			case p.isAny("LEFT", "RIGHT", "FULL"):
				join += " " + p.next().text
				p.accept("OUTER")
			}
			if join == "" && !p.is("JOIN") {
				return sql
			}
			p.expect("JOIN")
		}
		sql += join + " JOIN " + p.from()
		switch {
		case p.accept("ON"):
			sql += " ON " + p.sql()
		case p.accept("USING"):
			p.inParentheses(func() { sql += " USING (" + p.list(func() string { return quote(short(p.identifier())) }) + ")" })
		case !strings.Contains(join, "CROSS") && !strings.Contains(join, "NATURAL"):
			sql += " ON true" // Snowflake takes a join without a condition
		}
	}
}

// from reads one table, subquery or table function of FROM.
func (p *parser) from() (sql string) {
	switch {
	case p.isSymbol("("):
		columns := 0
		p.inParentheses(func() {
			switch {
			case p.is("VALUES"):
				sql, columns = p.countedValues()
			case p.isAny("SELECT", "WITH"), p.isSymbol("(") && p.subqueryAhead():
				sql = "(" + p.selectStatement() + ")"
			default:
				sql = "(" + p.joined() + ")"
			}
		})
		if columns > 0 {
			return sql + p.valuesAlias(columns)
		}
		return sql + p.alias("subquery")
	case p.is("VALUES"):
		rows, columns := p.countedValues()
		return rows + p.valuesAlias(columns)
	case p.accept("LATERAL"):
		p.inParentheses(func() { sql = "LATERAL (" + p.selectStatement() + ")" })
		return sql + p.alias("subquery")
	case p.is("TABLE") && p.peekAt(1).text == "(":
		p.i++
		generates := false
		p.inParentheses(func() { sql, generates = p.tableFunction() })
		alias := p.fresh("function")
		if p.accept("AS") || p.isIdentifier() {
			alias = p.identifier()
		}
		p.addSource(source{alias: alias})
		sql += " AS " + quote(short(alias))
		if generates {
			sql += " (" + generatorColumn + ")"
			if p.query.generator == "" {
				p.query.generator = quote(short(alias))
			}
		}
		return sql
	}
	return p.tableReference()
}

// subqueryAhead reports whether parentheses open a SELECT rather than a join.
func (p *parser) subqueryAhead() bool {
	for n := 0; ; n++ {
		t := p.peekAt(n)
		if t.kind == symbol && t.text == "(" {
			continue
		}
		return isOneOf(t, "SELECT", "WITH")
	}
}

// countedValues reads VALUES … as a table and counts its columns: the commas of
// the first row at its own level tell.
func (p *parser) countedValues() (sql string, columns int) {
	start := p.i
	sql = "(" + p.values() + ")"
	columns = 1
	for i, depth := start, 0; i < p.i; i++ {
		if t := p.tokens[i]; t.kind == symbol {
			switch t.text {
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
func (p *parser) valuesAlias(columns int) string {
	alias := p.fresh("values")
	if p.accept("AS") || p.isIdentifier() {
		alias = p.identifier()
	}
	p.addSource(source{alias: alias})
	sql := " AS " + quote(short(alias))
	if p.isSymbol("(") {
		p.inParentheses(func() { sql += " (" + p.list(func() string { return quote(short(p.identifier())) }) + ")" })
		return sql
	}
	names := make([]string, columns)
	for i := range names {
		names[i] = quote("COLUMN" + strconv.Itoa(i+1))
	}
	return sql + " (" + strings.Join(names, ", ") + ")"
}

func (p *parser) addSource(s source) {
	if p.query != nil {
		p.query.sources = append(p.query.sources, s)
	}
}

// alias reads [AS] alias [(columns)]; Postgres 15 wants one for a subquery, which
// is then called what no statement can say.
func (p *parser) alias(prefix string) string {
	alias := ""
	if p.accept("AS") || p.isIdentifier() {
		alias = p.identifier()
	} else if prefix != "" {
		alias = p.fresh(prefix)
	}
	p.addSource(source{alias: alias})
	if alias == "" {
		return ""
	}
	sql := " AS " + quote(short(alias))
	if p.isSymbol("(") {
		p.inParentheses(func() { sql += " (" + p.list(func() string { return quote(short(p.identifier())) }) + ")" })
	}
	return sql
}

// tableReference reads a table by name.
func (p *parser) tableReference() string {
	parts := p.parts()
	if len(parts) == 1 {
		for _, c := range p.common {
			if c == parts[0] {
				return quote(short(parts[0])) + p.alias("")
			}
		}
	}
	if p.isAny("AT", "BEFORE") && p.peekAt(1).text == "(" {
		p.fail(plan.Unsupported("Time Travel"))
	}
	if view, ok := p.systemView(parts); ok {
		alias := parts[len(parts)-1]
		if p.accept("AS") || p.isIdentifier() {
			alias = p.identifier()
		}
		p.addSource(source{alias: alias})
		return view + " AS " + quote(short(alias))
	}
	t := p.resolve(p.complete(parts), "SELECT")
	sampled := p.sample(t)
	alias := t.name.object
	named := p.accept("AS") || p.isIdentifier()
	if named {
		alias = p.identifier()
	}
	if sampled == (sampling{}) {
		sampled = p.sample(t)
	}
	p.addSource(source{alias: alias, table: t})
	sql := t.name.postgres()
	if sampled.subquery != "" {
		sql, named = sampled.subquery, true
	}
	if named {
		sql += " AS " + quote(short(alias))
	}
	return sql + sampled.clause
}

// sampling is what SAMPLE becomes: a clause behind the table for a percentage,
// a subquery in its place for a number of rows.
type sampling struct{ clause, subquery string }

func (p *parser) sample(t *table) (s sampling) {
	if !p.accept("SAMPLE") && !p.accept("TABLESAMPLE") {
		return s
	}
	method := "BERNOULLI"
	switch {
	case p.accept("BERNOULLI"), p.accept("ROW"):
	case p.accept("SYSTEM"), p.accept("BLOCK"):
		method = "SYSTEM"
	}
	p.inParentheses(func() {
		e := p.primary()
		if e.kind != numberConstant && e.kind != boundValue {
			p.unexpected()
		}
		if p.accept("ROWS") {
			s.subquery = "(SELECT * FROM " + t.name.postgres() + " ORDER BY random() LIMIT (" + e.sql + ")::bigint)"
			return
		}
		s.clause = " TABLESAMPLE " + method + " ((" + e.sql + ")::float4)"
	})
	if p.accept("SEED") || p.accept("REPEATABLE") {
		p.inParentheses(func() {
			if seed := strconv.FormatInt(p.integer(), 10); s.clause != "" {
				s.clause += " REPEATABLE (" + seed + ")"
			}
		})
	}
	return s
}

// resolve finds a table, notes that the statement uses it, and checks the privilege.
func (p *parser) resolve(n name, privilege string) *table {
	t, err := p.t.catalog.table(p.ctx, n)
	if err != nil {
		p.fail(err)
	}
	if t == nil || !p.mayTable("", t) {
		p.fail(plan.DoesNotExist("Object", display(n.object)))
	}
	if !p.mayTable(privilege, t) {
		p.fail(insufficient("table", display(n.object)))
	}
	p.tables = append(p.tables, t)
	return t
}

// work classifies what the statement asks of the warehouse.
func (p *parser) work(op warehouse.Op) warehouse.Work {
	w := warehouse.Work{Op: op}
	for _, t := range p.tables {
		w.Table = max(w.Table, t.kind)
	}
	if op == warehouse.Scan && len(p.tables) > 0 {
		for _, key := range p.tables[0].lookups() {
			if p.equal[key] {
				w.Op = warehouse.Lookup
			}
		}
	}
	return w
}
