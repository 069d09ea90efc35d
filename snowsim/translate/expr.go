package translate

import (
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/snowsim/plan"
)

// expr is an expression written in Postgres SQL, with what callers need to know of it.
type expr struct {
	sql  string
	kind exprKind
	// text is a constant's value, or a column's name.
	text string
}

type exprKind uint8

const (
	other exprKind = iota
	stringConstant
	numberConstant
	boundValue
	boundZoned // a bound TIMESTAMP_TZ as a moment; text is the parameter with its offset
	column
	path // a path into a VARIANT, of type jsonb
	null
)

// expression reads an expression.
func (p *parser) expression() expr {
	var e expr
	p.nested(func() { e = p.or() })
	return e
}

// sql reads an expression of which only the SQL matters.
func (p *parser) sql() string { return p.expression().sql }

func (p *parser) or() expr {
	e := p.and()
	for p.accept("OR") {
		e = expr{sql: "(" + e.sql + " OR " + p.and().sql + ")"}
	}
	return e
}

func (p *parser) and() expr {
	e := p.not()
	for p.accept("AND") {
		e = expr{sql: "(" + e.sql + " AND " + p.not().sql + ")"}
	}
	return e
}

func (p *parser) not() expr {
	if p.accept("NOT") {
		var e expr
		p.nested(func() { e = p.not() })
		return expr{sql: "(NOT " + e.sql + ")"}
	}
	return p.comparison()
}

var comparisons = map[string]string{"=": "=", "<>": "<>", "!=": "<>", "<": "<", ">": ">", "<=": "<=", ">=": ">=",
	"<=>": "IS NOT DISTINCT FROM"}

func (p *parser) comparison() expr {
	e := p.sum()
	for {
		if t := p.peek(); t.kind == symbol && comparisons[t.text] != "" {
			p.i++
			op := comparisons[t.text]
			if p.isAny("ANY", "ALL", "SOME") {
				op += " " + p.next().text
				p.inParentheses(func() { e = expr{sql: "(" + e.sql + " " + op + " (" + p.selectStatement() + "))"} })
				continue
			}
			right := p.sum()
			if op == "=" {
				p.equals(e, right)
			}
			e = expr{sql: "(" + p.comparable(e, right) + " " + op + " " + p.comparable(right, e) + ")"}
			continue
		}
		if p.accept("IS") {
			e = p.isWhat(e)
			continue
		}
		negated := ""
		if p.is("NOT") && isOneOf(p.peekAt(1), "IN", "LIKE", "ILIKE", "BETWEEN", "RLIKE", "REGEXP") {
			p.i++
			negated = "NOT "
		}
		switch {
		case p.accept("IN"):
			p.equals(e, expr{})
			e = expr{sql: "(" + e.sql + " " + negated + "IN (" + p.inList() + "))"}
		case p.accept("BETWEEN"):
			low := p.sum().sql
			p.expect("AND")
			e = expr{sql: "(" + e.sql + " " + negated + "BETWEEN " + low + " AND " + p.sum().sql + ")"}
		case p.isAny("LIKE", "ILIKE"):
			e = p.like(e, negated)
		case p.accept("RLIKE"), p.accept("REGEXP"):
			e = expr{sql: "(" + negated + "(" + e.sql + " ~ ('^(?:' || " + p.sum().sql + " || ')$')))"}
		default:
			return e
		}
	}
}

// equals notes a column that is compared with a value.
func (p *parser) equals(a, b expr) {
	if a.kind != column {
		a, b = b, a
	}
	if a.kind != column || b.kind == column {
		return
	}
	if p.equal == nil {
		p.equal = map[string]bool{}
	}
	p.equal[a.text] = true
}

// comparable writes one side of a comparison: a path becomes what the other side is.
// Times with an offset are compared by their moment.
func (p *parser) comparable(e, with expr) string {
	switch {
	case e.kind == column && p.isZoned(e.text):
		return "snowsim.moment(" + e.sql + ")"
	case with.kind == column && p.isZoned(with.text) && (e.kind == stringConstant || e.kind == boundValue):
		return e.sql + "::timestamptz"
	case e.kind != path || with.kind == path:
		return e.sql
	case with.kind == numberConstant:
		return numberOf(e)
	}
	return "(" + e.sql + " #>> '{}')"
}

// isZoned reports whether a column of a table that was named so far is a TIMESTAMP_TZ.
func (p *parser) isZoned(name string) bool {
	for _, t := range p.tables {
		if t.column(name).Type == "TIMESTAMP_TZ" {
			return true
		}
	}
	return false
}

func isOneOf(t token, words ...string) bool {
	if t.kind == word {
		for _, w := range words {
			if t.text == w {
				return true
			}
		}
	}
	return false
}

func (p *parser) isWhat(e expr) expr {
	not := ""
	if p.accept("NOT") {
		not = "NOT "
	}
	switch {
	case p.isAny("NULL", "TRUE", "FALSE"):
		return expr{sql: "(" + e.sql + " IS " + not + p.next().text + ")"}
	case p.accept("DISTINCT", "FROM"):
		return expr{sql: "(" + e.sql + " IS " + not + "DISTINCT FROM " + p.sum().sql + ")"}
	}
	p.unexpected()
	return expr{}
}

func (p *parser) inList() (sql string) {
	p.inParentheses(func() {
		if p.isAny("SELECT", "WITH") {
			sql = p.selectStatement()
			return
		}
		sql = p.list(p.sql)
	})
	return sql
}

// like reads LIKE and ILIKE. Snowflake has no escape character unless one is named.
func (p *parser) like(e expr, negated string) expr {
	op := negated + p.next().text
	if p.isAny("ANY", "ALL") {
		quantifier := p.next().text
		var sql string
		p.inParentheses(func() { sql = p.list(p.sql) })
		return expr{sql: "(" + e.sql + " " + op + " " + quantifier + " (ARRAY[" + sql + "]::text[]))"}
	}
	pattern := p.sum().sql
	escape := "''"
	if p.accept("ESCAPE") {
		escape = p.sum().sql
	}
	return expr{sql: "(" + e.sql + " " + op + " " + pattern + " ESCAPE " + escape + ")"}
}

func (p *parser) sum() expr {
	e := p.product()
	for {
		switch {
		case p.acceptSymbol("+"):
			e = expr{sql: "(" + numberOf(e) + " + " + numberOf(p.product()) + ")"}
		case p.acceptSymbol("-"):
			e = expr{sql: "(" + numberOf(e) + " - " + numberOf(p.product()) + ")"}
		case p.acceptSymbol("||"):
			e = expr{sql: "(" + textOf(e) + " || " + textOf(p.product()) + ")"}
		default:
			return e
		}
	}
}

// numberOf writes an operand of arithmetic; a path into a VARIANT is read as a number.
func numberOf(e expr) string {
	if e.kind == path {
		return "(" + e.sql + " #>> '{}')::numeric"
	}
	return e.sql
}

// textOf writes an operand of ||, which Snowflake takes of any type.
func textOf(e expr) string {
	switch e.kind {
	case stringConstant:
		return e.sql
	case boundValue, null:
		return e.sql + "::text"
	}
	return "snowsim.to_varchar(" + e.sql + ")"
}

func (p *parser) product() expr {
	e := p.unary()
	for {
		switch {
		case p.acceptSymbol("*"):
			e = expr{sql: "(" + numberOf(e) + " * " + numberOf(p.unary()) + ")"}
		case p.acceptSymbol("/"):
			e = expr{sql: "snowsim.div(" + numberOf(e) + ", " + numberOf(p.unary()) + ")"}
		case p.acceptSymbol("%"):
			e = expr{sql: "mod(" + e.sql + ", " + p.unary().sql + ")"}
		default:
			return e
		}
	}
}

func (p *parser) unary() expr {
	switch {
	case p.acceptSymbol("-"):
		var e expr
		p.nested(func() { e = p.unary() })
		if e.kind == numberConstant && !strings.HasPrefix(e.text, "-") {
			return expr{sql: "(-" + e.sql + ")", kind: numberConstant, text: "-" + e.text}
		}
		return expr{sql: "(- " + e.sql + ")"}
	case p.acceptSymbol("+"):
		var e expr
		p.nested(func() { e = p.unary() })
		return e
	}
	return p.postfix(p.primary())
}

// postfix reads casts, paths into VARIANTs and subscripts.
func (p *parser) postfix(e expr) expr {
	for {
		switch {
		case p.acceptSymbol("::"):
			e = cast(e, p.dataType())
		case p.isSymbol(":") && isPathStart(p.peekAt(1)) && (e.kind == column || e.kind == path):
			p.i++
			e = expr{sql: "(" + e.sql + " -> " + literal(p.pathKey()) + ")", kind: path}
		case p.isSymbol(".") && e.kind == path:
			p.i++
			e = expr{sql: "(" + e.sql + " -> " + literal(p.pathKey()) + ")", kind: path}
		case p.isSymbol("[") && (e.kind == column || e.kind == path):
			p.i++
			index := p.expression()
			p.expectSymbol("]")
			sql := "(" + index.sql + ")::int"
			if index.kind == stringConstant {
				sql = index.sql
			}
			e = expr{sql: "(" + e.sql + " -> " + sql + ")", kind: path}
		default:
			return e
		}
	}
}

func isPathStart(t token) bool { return t.kind == word || t.kind == quoted }

// pathKey reads a key of a path, which keeps its case.
func (p *parser) pathKey() string {
	t := p.next()
	if t.kind == word {
		return p.src[t.start:t.end]
	}
	if t.kind != quoted {
		p.i--
		p.unexpected()
	}
	return t.text
}

func (p *parser) primary() expr {
	t := p.peek()
	switch t.kind {
	case number:
		p.i++
		return expr{sql: t.text, kind: numberConstant, text: t.text}
	case text:
		p.i++
		return expr{sql: literal(t.text), kind: stringConstant, text: t.text}
	case mark:
		p.i++
		return p.bind(p.nextMark())
	case variable:
		p.i++
		if isDigit(t.text[0]) {
			return expr{sql: quote("COLUMN" + t.text), kind: column, text: "COLUMN" + t.text}
		}
		p.volatile = true
		value, ok := p.session.Parameters["$"+t.text]
		if !ok {
			p.fail(plan.CompilationError("002211", "02000", "Session variable '$%s' does not exist", t.text))
		}
		return expr{sql: literal(value), kind: stringConstant, text: value}
	case symbol:
		return p.symbolic()
	case quoted:
		return p.columnOrCall()
	case word:
		return p.word()
	}
	p.unexpected()
	return expr{}
}

func (p *parser) nextMark() int {
	p.marks++
	return p.marks - 1
}

// bind writes the bind with an index as a parameter.
func (p *parser) bind(i int) expr {
	if i >= len(p.binds) && p.session.DescribeOnly {
		p.volatile = true
		for len(p.binds) <= i {
			p.binds = append(p.binds, plan.Bind{Type: "text"})
		}
	}
	if i >= len(p.binds) {
		p.fail(plan.CompilationError("002049", "42601", "Bind variable ? not set."))
	}
	if p.inline {
		return p.inlined(p.binds[i])
	}
	for n, param := range p.params {
		if param.Bind == i && param.OID != oidText {
			return expr{sql: "$" + strconv.Itoa(n+1), kind: boundValue}
		}
	}
	p.params = append(p.params, plan.Param{Bind: i, OID: bindOID(p.binds[i].Type)})
	if p.binds[i].Type == "timestamp_tz" {
		n := "$" + strconv.Itoa(len(p.params))
		return expr{sql: n + "::timestamptz", kind: boundZoned, text: n}
	}
	return expr{sql: "$" + strconv.Itoa(len(p.params)), kind: boundValue}
}

// inlined writes a bind as a constant.
func (p *parser) inlined(b plan.Bind) expr {
	p.volatile = true
	if b.Value == nil {
		return expr{sql: "NULL", kind: null}
	}
	types := map[uint32]string{oidNumeric: "numeric", oidFloat8: "float8", oidBool: "boolean", oidDate: "date",
		oidTime: "time", oidTimestamp: "timestamp",
		oidTimestamptz: "timestamptz", oidBytea: "bytea"}
	if b.Type == "timestamp_tz" {
		return expr{sql: literal(*b.Value) + "::timestamptz", kind: boundZoned, text: literal(*b.Value)}
	}
	if to, ok := types[bindOID(b.Type)]; ok {
		return expr{sql: literal(*b.Value) + "::" + to}
	}
	return expr{sql: literal(*b.Value), kind: stringConstant, text: *b.Value}
}

// symbolic reads an expression that begins with a symbol.
func (p *parser) symbolic() expr {
	switch p.peek().text {
	case "(":
		return p.parenthesised()
	case ":":
		if n := p.peekAt(1); n.kind == number {
			i, err := strconv.Atoi(n.text)
			if err == nil && i > 0 {
				p.i += 2
				return p.bind(i - 1)
			}
		}
	case "[":
		p.i++
		if p.acceptSymbol("]") {
			return expr{sql: "'[]'::jsonb", kind: path}
		}
		items := p.list(p.sql)
		p.expectSymbol("]")
		return expr{sql: "jsonb_build_array(" + items + ")", kind: path}
	case "{":
		p.i++
		if p.acceptSymbol("}") {
			return expr{sql: "'{}'::jsonb", kind: path}
		}
		items := p.list(func() string {
			key := literal(p.constant())
			p.expectSymbol(":")
			return key + ", " + p.sql()
		})
		p.expectSymbol("}")
		return expr{sql: "jsonb_build_object(" + items + ")", kind: path}
	}
	p.unexpected()
	return expr{}
}

func (p *parser) parenthesised() (e expr) {
	p.inParentheses(func() {
		if p.isAny("SELECT", "WITH") {
			e = expr{sql: "(" + p.selectStatement() + ")"}
			return
		}
		e = p.expression()
		if p.isSymbol(",") {
			sql := e.sql
			for p.acceptSymbol(",") {
				sql += ", " + p.sql()
			}
			e = expr{sql: "(" + sql + ")"}
		} else if e.kind == other || e.kind == column {
			e.sql = "(" + e.sql + ")"
		}
	})
	return e
}

// word reads an expression that begins with a word.
func (p *parser) word() expr {
	call := p.peekAt(1).kind == symbol && p.peekAt(1).text == "("
	switch w := p.peek().text; {
	case w == "NULL":
		p.i++
		return expr{sql: "NULL", kind: null}
	case w == "TRUE" || w == "FALSE":
		p.i++
		return expr{sql: w}
	case w == "CASE":
		return p.caseWhen()
	case w == "EXISTS" && call:
		p.i++
		var sql string
		p.inParentheses(func() { sql = p.selectStatement() })
		return expr{sql: "EXISTS (" + sql + ")"}
	case (w == "CAST" || w == "TRY_CAST") && call:
		p.i++
		var e expr
		p.inParentheses(func() {
			e = p.expression()
			p.expect("AS")
			if to := p.dataType(); w == "CAST" {
				e = cast(e, to)
			} else {
				e = tryCast(e, to)
			}
		})
		return e
	case w == "INTERVAL" && p.peekAt(1).kind == text:
		p.i++
		return expr{sql: "interval " + literal(p.next().text)}
	case (w == "DATE" || w == "TIME" || strings.HasPrefix(w, "TIMESTAMP")) && p.peekAt(1).kind == text:
		to := p.dataType()
		return expr{sql: "'" + strings.ReplaceAll(p.next().text, "'", "''") + "'::" + to.postgres}
	case !call && contextFunctions[w]:
		p.i++
		return p.call(w, nil)
	case reserved[w] && (!call || w != "LEFT" && w != "RIGHT"):
		p.unexpected()
	}
	return p.columnOrCall()
}

func (p *parser) caseWhen() expr {
	p.expect("CASE")
	var b strings.Builder
	b.WriteString("CASE")
	if !p.is("WHEN") {
		b.WriteString(" " + p.sql())
	}
	for p.accept("WHEN") {
		b.WriteString(" WHEN " + p.sql())
		p.expect("THEN")
		b.WriteString(" THEN " + p.sql())
	}
	if p.accept("ELSE") {
		b.WriteString(" ELSE " + p.sql())
	}
	p.expect("END")
	return expr{sql: "(" + b.String() + " END)"}
}

// columnOrCall reads a.b.c, a.* and f(…).
func (p *parser) columnOrCall() expr {
	if n := p.peekAt(1); n.kind == symbol && n.text == "(" {
		if p.is("IDENTIFIER") {
			return p.columnOf(p.parts())
		}
		name := p.next().text
		return p.call(name, p.arguments(name))
	}
	parts := []string{p.anyIdentifier()}
	for p.isSymbol(".") {
		if n := p.peekAt(1); n.kind == symbol && n.text == "*" {
			p.i += 2
			return expr{sql: p.qualifier(parts) + ".*", text: "*"}
		}
		p.i++
		parts = append(parts, p.anyIdentifier())
	}
	if n := len(parts); n > 1 && p.isSymbol("(") { // SNOWFLAKE.CORE.F(…), db.schema.f(…)
		p.fail(plan.CompilationError("002140", "42601", "Unknown function %s", strings.Join(parts, ".")))
	}
	return p.columnOf(parts)
}

func (p *parser) columnOf(parts []string) expr {
	last := parts[len(parts)-1]
	if len(parts) == 1 {
		return expr{sql: quote(short(last)), kind: column, text: last}
	}
	return expr{sql: p.qualifier(parts[:len(parts)-1]) + "." + quote(short(last)), kind: column, text: last}
}

// qualifier writes what stands before a column: an alias, or a table's name.
func (p *parser) qualifier(parts []string) string {
	if len(parts) == 1 {
		return quote(short(parts[0]))
	}
	return p.complete(parts).postgres()
}
