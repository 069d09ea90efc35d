package translate

import (
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// expr is an expression written in Postgres SQL, with what callers need to know of it.
type expr struct {
	sql  string
	kind exprKind
	// text is a constant's value, or a column's name.
	text string
}

// exprKind is what an expression is, as far as it decides how the expression is written.
type exprKind uint8

// What expressions are.
const (
	exprOther exprKind = iota
	exprString
	exprNumber
	exprBind
	exprColumn
	exprPath // a path into a VARIANT, of type jsonb
	exprNull
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

var comparisons = map[string]string{"=": "=", "<>": "<>", "!=": "<>", "<": "<", ">": ">", "<=": "<=", ">=": ">="}

func (p *parser) comparison() expr {
	e := p.sum()
	for {
		if t := p.peek(); t.kind == tokenSymbol && comparisons[t.text] != "" {
			p.advance(1)
			op := comparisons[t.text]
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
		if p.is("NOT") && isOneOf(p.peekAt(1), "IN", "LIKE", "ILIKE", "BETWEEN") {
			p.advance(1)
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
		default:
			return e
		}
	}
}

// equals notes a column that is compared with a value.
func (p *parser) equals(a, b expr) {
	if a.kind != exprColumn {
		a, b = b, a
	}
	if a.kind != exprColumn || b.kind == exprColumn {
		return
	}
	if p.equal == nil {
		p.equal = map[string]bool{}
	}
	p.equal[a.text] = true
}

// comparable writes one side of a comparison. Times with an offset are compared by their
// moment.
func (p *parser) comparable(e, with expr) string {
	switch {
	case e.kind == exprColumn && p.isZoned(e.text):
		return "snowsim.moment(" + e.sql + ")"
	case with.kind == exprColumn && p.isZoned(with.text) && (e.kind == exprString || e.kind == exprBind):
		return e.sql + "::timestamptz"
	}
	return e.sql
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

func (p *parser) isWhat(e expr) expr {
	not := ""
	if p.accept("NOT") {
		not = "NOT "
	}
	if !p.isAny("NULL", "TRUE", "FALSE") {
		p.unexpected()
	}
	return expr{sql: "(" + e.sql + " IS " + not + p.next().text + ")"}
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
			e = expr{sql: "(" + e.sql + " + " + p.product().sql + ")"}
		case p.acceptSymbol("-"):
			e = expr{sql: "(" + e.sql + " - " + p.product().sql + ")"}
		case p.acceptSymbol("||"):
			e = expr{sql: "(" + textOf(e) + " || " + textOf(p.product()) + ")"}
		default:
			return e
		}
	}
}

// textOf writes an operand of ||, which Snowflake takes of any type.
func textOf(e expr) string {
	switch e.kind {
	case exprString:
		return e.sql
	case exprBind, exprNull:
		return e.sql + "::text"
	}
	return "snowsim.to_varchar(" + e.sql + ")"
}

func (p *parser) product() expr {
	e := p.unary()
	for {
		switch {
		case p.acceptSymbol("*"):
			e = expr{sql: "(" + e.sql + " * " + p.unary().sql + ")"}
		case p.acceptSymbol("/"):
			e = expr{sql: "snowsim.div(" + e.sql + ", " + p.unary().sql + ")"}
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
		if e.kind == exprNumber && !strings.HasPrefix(e.text, "-") {
			return expr{sql: "(-" + e.sql + ")", kind: exprNumber, text: "-" + e.text}
		}
		return expr{sql: "(- " + e.sql + ")"}
	case p.acceptSymbol("+"):
		var e expr
		p.nested(func() { e = p.unary() })
		return e
	}
	return p.postfix(p.primary())
}

// postfix reads casts, and keys of VARIANTs: v:key.
func (p *parser) postfix(e expr) expr {
	for {
		switch {
		case p.acceptSymbol("::"):
			e = p.cast(e, p.dataType())
		case p.isSymbol(":") && e.kind == exprColumn:
			p.advance(1)
			e = expr{sql: "(" + e.sql + " -> " + literal(p.pathKey()) + ")", kind: exprPath}
		default:
			return e
		}
	}
}

// pathKey reads a key of a path, which keeps its case.
func (p *parser) pathKey() string {
	t := p.next()
	if t.kind == tokenWord {
		return p.sourceOf(t)
	}
	if t.kind != tokenQuoted {
		p.advance(-1)
		p.unexpected()
	}
	return t.text
}

// primary reads an operand: a constant, a bound value, a column, a call, or an expression in parentheses.
func (p *parser) primary() expr {
	t := p.peek()
	switch t.kind {
	case tokenNumber:
		p.advance(1)
		return expr{sql: t.text, kind: exprNumber, text: t.text}
	case tokenText:
		p.advance(1)
		return expr{sql: literal(t.text), kind: exprString, text: t.text}
	case tokenMark:
		p.advance(1)
		return p.bind(p.nextMark())
	case tokenSymbol:
		return p.parenthesised()
	case tokenQuoted:
		return p.columnOrCall()
	case tokenWord:
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
			p.binds = append(p.binds, protocol.Bind{Type: "text"})
		}
	}
	if i >= len(p.binds) {
		p.fail(protocol.CompilationError("002049", "42601", "Bind variable ? not set."))
	}
	if p.binds[i].Type == "timestamp_tz" {
		p.fail(protocol.NotSimulated("a bound TIMESTAMP_TZ"))
	}
	if p.inline {
		return p.inlined(p.binds[i])
	}
	p.params = append(p.params, protocol.Param{Bind: i, OID: bindOID(p.binds[i].Type)})
	return expr{sql: "$" + strconv.Itoa(len(p.params)), kind: exprBind}
}

// inlined writes a bind as a constant.
func (p *parser) inlined(b protocol.Bind) expr {
	p.volatile = true
	if b.Value == nil {
		return expr{sql: "NULL", kind: exprNull}
	}
	types := map[uint32]string{pgtype.NumericOID: "numeric", pgtype.Float8OID: "float8", pgtype.BoolOID: "boolean",
		pgtype.DateOID: "date",
		pgtype.TimeOID: "time", pgtype.TimestampOID: "timestamp",
		pgtype.TimestamptzOID: "timestamptz", pgtype.ByteaOID: "bytea"}
	if to, ok := types[bindOID(b.Type)]; ok {
		return expr{sql: literal(*b.Value) + "::" + to}
	}
	return expr{sql: literal(*b.Value), kind: exprString, text: *b.Value}
}

func (p *parser) parenthesised() (e expr) {
	p.inParentheses(func() {
		if p.isAny("SELECT", "WITH") {
			e = expr{sql: "(" + p.selectStatement() + ")"}
			return
		}
		e = p.expression()
		if e.kind == exprOther || e.kind == exprColumn {
			e.sql = "(" + e.sql + ")"
		}
	})
	return e
}

// word reads an expression that begins with a word.
func (p *parser) word() expr {
	call := p.peekAt(1).kind == tokenSymbol && p.peekAt(1).text == "("
	switch w := p.peek().text; {
	case w == "NULL":
		p.advance(1)
		return expr{sql: "NULL", kind: exprNull}
	case w == "TRUE" || w == "FALSE":
		p.advance(1)
		return expr{sql: w}
	case w == "CASE":
		return p.caseWhen()
	case w == "EXISTS" && call:
		p.advance(1)
		var sql string
		p.inParentheses(func() { sql = p.selectStatement() })
		return expr{sql: "EXISTS (" + sql + ")"}
	case w == "CAST" && call:
		p.advance(1)
		var e expr
		p.inParentheses(func() {
			e = p.expression()
			p.expect("AS")
			e = p.cast(e, p.dataType())
		})
		return e
	case (w == "DATE" || w == "TIME" || strings.HasPrefix(w, "TIMESTAMP")) && p.peekAt(1).kind == tokenText:
		to := p.dataType()
		if e := (expr{sql: literal(p.peek().text), kind: exprString}); p.inputFormat(to.name) != "" {
			p.advance(1)
			return p.cast(e, to)
		}
		return expr{sql: literal(p.next().text) + "::" + to.postgres}
	case !call && contextFunctions[w]:
		p.advance(1)
		return p.call(w, nil)
	case reservedWords[w] && (!call || w != "LEFT" && w != "RIGHT"):
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
	if n := p.peekAt(1); n.kind == tokenSymbol && n.text == "(" {
		name := p.next().text
		return p.call(name, p.arguments(name))
	}
	parts := []string{p.anyIdentifier()}
	for p.isSymbol(".") {
		if n := p.peekAt(1); n.kind == tokenSymbol && n.text == "*" {
			p.advance(2)
			return expr{sql: p.qualifier(parts) + ".*", text: "*"}
		}
		p.advance(1)
		parts = append(parts, p.anyIdentifier())
	}
	if n := len(parts); n > 1 && p.isSymbol("(") { // SNOWFLAKE.CORE.F(…), db.schema.f(…)
		p.fail(protocol.CompilationError("002140", "42601", "Unknown function %s", strings.Join(parts, ".")))
	}
	return p.columnOf(parts)
}

func (p *parser) columnOf(parts []string) expr {
	last := parts[len(parts)-1]
	if len(parts) == 1 {
		return expr{sql: quote(shortName(last)), kind: exprColumn, text: last}
	}
	return expr{sql: p.qualifier(parts[:len(parts)-1]) + "." + quote(shortName(last)), kind: exprColumn,
		text: last}
}

// qualifier writes the qualifier of a column: an alias, or a table's name.
func (p *parser) qualifier(parts []string) string {
	if len(parts) == 1 {
		return quote(shortName(parts[0]))
	}
	return p.qualify(parts).postgres()
}
