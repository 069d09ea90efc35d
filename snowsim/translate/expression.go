package translate

import (
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// Expr is an expression written in Postgres SQL, with what callers need to know of it.
type Expr struct {
	SQL  string
	Kind exprKind
	// Text is a constant's value, or a column's name.
	Text string
}

// exprKind is what an expression is, as far as it decides how the expression is written.
type exprKind uint8

// What expressions are.
const (
	other exprKind = iota
	StringConstant
	NumberConstant
	BoundValue
	ColumnReference
	path // a path into a VARIANT, of type jsonb
	Null
)

// Expression reads an expression.
func (p *Parser) Expression() Expr {
	var e Expr
	p.Nested(func() { e = p.or() })
	return e
}

// SQL reads an expression of which only the SQL matters.
func (p *Parser) SQL() string { return p.Expression().SQL }

func (p *Parser) or() Expr {
	e := p.and()
	for p.Accept("OR") {
		e = Expr{SQL: "(" + e.SQL + " OR " + p.and().SQL + ")"}
	}
	return e
}

func (p *Parser) and() Expr {
	e := p.not()
	for p.Accept("AND") {
		e = Expr{SQL: "(" + e.SQL + " AND " + p.not().SQL + ")"}
	}
	return e
}

func (p *Parser) not() Expr {
	if p.Accept("NOT") {
		var e Expr
		p.Nested(func() { e = p.not() })
		return Expr{SQL: "(NOT " + e.SQL + ")"}
	}
	return p.comparison()
}

var comparisons = map[string]string{"=": "=", "<>": "<>", "!=": "<>", "<": "<", ">": ">", "<=": "<=", ">=": ">="}

func (p *Parser) comparison() Expr {
	e := p.sum()
	for {
		if t := p.Peek(); t.Kind == Symbol && comparisons[t.Text] != "" {
			p.Advance(1)
			op := comparisons[t.Text]
			right := p.sum()
			if op == "=" {
				p.equals(e, right)
			}
			e = Expr{SQL: "(" + p.comparable(e, right) + " " + op + " " + p.comparable(right, e) + ")"}
			continue
		}
		if p.Accept("IS") {
			e = p.isWhat(e)
			continue
		}
		negated := ""
		if p.Is("NOT") && IsOneOf(p.PeekAt(1), "IN", "LIKE", "ILIKE", "BETWEEN") {
			p.Advance(1)
			negated = "NOT "
		}
		switch {
		case p.Accept("IN"):
			p.equals(e, Expr{})
			e = Expr{SQL: "(" + e.SQL + " " + negated + "IN (" + p.inList() + "))"}
		case p.Accept("BETWEEN"):
			low := p.sum().SQL
			p.Expect("AND")
			e = Expr{SQL: "(" + e.SQL + " " + negated + "BETWEEN " + low + " AND " + p.sum().SQL + ")"}
		case p.IsAny("LIKE", "ILIKE"):
			e = p.like(e, negated)
		default:
			return e
		}
	}
}

// equals notes a column that is compared with a value.
func (p *Parser) equals(a, b Expr) {
	if a.Kind != ColumnReference {
		a, b = b, a
	}
	if a.Kind != ColumnReference || b.Kind == ColumnReference {
		return
	}
	if p.equal == nil {
		p.equal = map[string]bool{}
	}
	p.equal[a.Text] = true
}

// comparable writes one side of a comparison. Times with an offset are compared by their
// moment.
func (p *Parser) comparable(e, with Expr) string {
	switch {
	case e.Kind == ColumnReference && p.isZoned(e.Text):
		return "snowsim.moment(" + e.SQL + ")"
	case with.Kind == ColumnReference && p.isZoned(with.Text) && (e.Kind == StringConstant || e.Kind == BoundValue):
		return e.SQL + "::timestamptz"
	}
	return e.SQL
}

// isZoned reports whether a column of a table that was named so far is a TIMESTAMP_TZ.
func (p *Parser) isZoned(name string) bool {
	for _, t := range p.Tables {
		if t.Column(name).Type == "TIMESTAMP_TZ" {
			return true
		}
	}
	return false
}

func (p *Parser) isWhat(e Expr) Expr {
	not := ""
	if p.Accept("NOT") {
		not = "NOT "
	}
	if !p.IsAny("NULL", "TRUE", "FALSE") {
		p.Unexpected()
	}
	return Expr{SQL: "(" + e.SQL + " IS " + not + p.Next().Text + ")"}
}

func (p *Parser) inList() (sql string) {
	p.InParentheses(func() {
		if p.IsAny("SELECT", "WITH") {
			sql = p.selectStatement()
			return
		}
		sql = p.List(p.SQL)
	})
	return sql
}

// like reads LIKE and ILIKE. Snowflake has no escape character unless one is named.
func (p *Parser) like(e Expr, negated string) Expr {
	op := negated + p.Next().Text
	pattern := p.sum().SQL
	escape := "''"
	if p.Accept("ESCAPE") {
		escape = p.sum().SQL
	}
	return Expr{SQL: "(" + e.SQL + " " + op + " " + pattern + " ESCAPE " + escape + ")"}
}

func (p *Parser) sum() Expr {
	e := p.product()
	for {
		switch {
		case p.AcceptSymbol("+"):
			e = Expr{SQL: "(" + e.SQL + " + " + p.product().SQL + ")"}
		case p.AcceptSymbol("-"):
			e = Expr{SQL: "(" + e.SQL + " - " + p.product().SQL + ")"}
		case p.AcceptSymbol("||"):
			e = Expr{SQL: "(" + textOf(e) + " || " + textOf(p.product()) + ")"}
		default:
			return e
		}
	}
}

// textOf writes an operand of ||, which Snowflake takes of any type.
func textOf(e Expr) string {
	switch e.Kind {
	case StringConstant:
		return e.SQL
	case BoundValue, Null:
		return e.SQL + "::text"
	}
	return "snowsim.to_varchar(" + e.SQL + ")"
}

func (p *Parser) product() Expr {
	e := p.unary()
	for {
		switch {
		case p.AcceptSymbol("*"):
			e = Expr{SQL: "(" + e.SQL + " * " + p.unary().SQL + ")"}
		case p.AcceptSymbol("/"):
			e = Expr{SQL: "snowsim.div(" + e.SQL + ", " + p.unary().SQL + ")"}
		case p.AcceptSymbol("%"):
			e = Expr{SQL: "mod(" + e.SQL + ", " + p.unary().SQL + ")"}
		default:
			return e
		}
	}
}

func (p *Parser) unary() Expr {
	switch {
	case p.AcceptSymbol("-"):
		var e Expr
		p.Nested(func() { e = p.unary() })
		if e.Kind == NumberConstant && !strings.HasPrefix(e.Text, "-") {
			return Expr{SQL: "(-" + e.SQL + ")", Kind: NumberConstant, Text: "-" + e.Text}
		}
		return Expr{SQL: "(- " + e.SQL + ")"}
	case p.AcceptSymbol("+"):
		var e Expr
		p.Nested(func() { e = p.unary() })
		return e
	}
	return p.postfix(p.Primary())
}

// postfix reads casts, and keys of VARIANTs: v:key.
func (p *Parser) postfix(e Expr) Expr {
	for {
		switch {
		case p.AcceptSymbol("::"):
			e = cast(e, p.DataType())
		case p.IsSymbol(":") && e.Kind == ColumnReference:
			p.Advance(1)
			e = Expr{SQL: "(" + e.SQL + " -> " + Literal(p.pathKey()) + ")", Kind: path}
		default:
			return e
		}
	}
}

// pathKey reads a key of a path, which keeps its case.
func (p *Parser) pathKey() string {
	t := p.Next()
	if t.Kind == Word {
		return p.Written(t)
	}
	if t.Kind != Quoted {
		p.Advance(-1)
		p.Unexpected()
	}
	return t.Text
}

// Primary reads an operand: a constant, a bound value, a column, a call, or an expression in parentheses.
func (p *Parser) Primary() Expr {
	t := p.Peek()
	switch t.Kind {
	case Number:
		p.Advance(1)
		return Expr{SQL: t.Text, Kind: NumberConstant, Text: t.Text}
	case Text:
		p.Advance(1)
		return Expr{SQL: Literal(t.Text), Kind: StringConstant, Text: t.Text}
	case Mark:
		p.Advance(1)
		return p.bind(p.nextMark())
	case Symbol:
		return p.parenthesised()
	case Quoted:
		return p.columnOrCall()
	case Word:
		return p.word()
	}
	p.Unexpected()
	return Expr{}
}

func (p *Parser) nextMark() int {
	p.marks++
	return p.marks - 1
}

// bind writes the bind with an index as a parameter.
func (p *Parser) bind(i int) Expr {
	if i >= len(p.Binds) && p.Session.DescribeOnly {
		p.Volatile = true
		for len(p.Binds) <= i {
			p.Binds = append(p.Binds, protocol.Bind{Type: "text"})
		}
	}
	if i >= len(p.Binds) {
		p.Fail(protocol.CompilationError("002049", "42601", "Bind variable ? not set."))
	}
	if p.Binds[i].Type == "timestamp_tz" {
		p.Fail(protocol.NotSimulated("a bound TIMESTAMP_TZ"))
	}
	if p.Inline {
		return p.inlined(p.Binds[i])
	}
	p.Params = append(p.Params, protocol.Param{Bind: i, OID: bindOID(p.Binds[i].Type)})
	return Expr{SQL: "$" + strconv.Itoa(len(p.Params)), Kind: BoundValue}
}

// inlined writes a bind as a constant.
func (p *Parser) inlined(b protocol.Bind) Expr {
	p.Volatile = true
	if b.Value == nil {
		return Expr{SQL: "NULL", Kind: Null}
	}
	types := map[uint32]string{pgtype.NumericOID: "numeric", pgtype.Float8OID: "float8", pgtype.BoolOID: "boolean",
		pgtype.DateOID: "date",
		pgtype.TimeOID: "time", pgtype.TimestampOID: "timestamp",
		pgtype.TimestamptzOID: "timestamptz", pgtype.ByteaOID: "bytea"}
	if to, ok := types[bindOID(b.Type)]; ok {
		return Expr{SQL: Literal(*b.Value) + "::" + to}
	}
	return Expr{SQL: Literal(*b.Value), Kind: StringConstant, Text: *b.Value}
}

func (p *Parser) parenthesised() (e Expr) {
	p.InParentheses(func() {
		if p.IsAny("SELECT", "WITH") {
			e = Expr{SQL: "(" + p.selectStatement() + ")"}
			return
		}
		e = p.Expression()
		if e.Kind == other || e.Kind == ColumnReference {
			e.SQL = "(" + e.SQL + ")"
		}
	})
	return e
}

// word reads an expression that begins with a word.
func (p *Parser) word() Expr {
	call := p.PeekAt(1).Kind == Symbol && p.PeekAt(1).Text == "("
	switch w := p.Peek().Text; {
	case w == "NULL":
		p.Advance(1)
		return Expr{SQL: "NULL", Kind: Null}
	case w == "TRUE" || w == "FALSE":
		p.Advance(1)
		return Expr{SQL: w}
	case w == "CASE":
		return p.caseWhen()
	case w == "EXISTS" && call:
		p.Advance(1)
		var sql string
		p.InParentheses(func() { sql = p.selectStatement() })
		return Expr{SQL: "EXISTS (" + sql + ")"}
	case w == "CAST" && call:
		p.Advance(1)
		var e Expr
		p.InParentheses(func() {
			e = p.Expression()
			p.Expect("AS")
			e = cast(e, p.DataType())
		})
		return e
	case (w == "DATE" || w == "TIME" || strings.HasPrefix(w, "TIMESTAMP")) && p.PeekAt(1).Kind == Text:
		to := p.DataType()
		return Expr{SQL: "'" + strings.ReplaceAll(p.Next().Text, "'", "''") + "'::" + to.Postgres}
	case !call && contextFunctions[w]:
		p.Advance(1)
		return p.call(w, nil)
	case Reserved[w] && (!call || w != "LEFT" && w != "RIGHT"):
		p.Unexpected()
	}
	return p.columnOrCall()
}

func (p *Parser) caseWhen() Expr {
	p.Expect("CASE")
	var b strings.Builder
	b.WriteString("CASE")
	if !p.Is("WHEN") {
		b.WriteString(" " + p.SQL())
	}
	for p.Accept("WHEN") {
		b.WriteString(" WHEN " + p.SQL())
		p.Expect("THEN")
		b.WriteString(" THEN " + p.SQL())
	}
	if p.Accept("ELSE") {
		b.WriteString(" ELSE " + p.SQL())
	}
	p.Expect("END")
	return Expr{SQL: "(" + b.String() + " END)"}
}

// columnOrCall reads a.b.c, a.* and f(…).
func (p *Parser) columnOrCall() Expr {
	if n := p.PeekAt(1); n.Kind == Symbol && n.Text == "(" {
		name := p.Next().Text
		return p.call(name, p.arguments(name))
	}
	parts := []string{p.AnyIdentifier()}
	for p.IsSymbol(".") {
		if n := p.PeekAt(1); n.Kind == Symbol && n.Text == "*" {
			p.Advance(2)
			return Expr{SQL: p.qualifier(parts) + ".*", Text: "*"}
		}
		p.Advance(1)
		parts = append(parts, p.AnyIdentifier())
	}
	if n := len(parts); n > 1 && p.IsSymbol("(") { // SNOWFLAKE.CORE.F(…), db.schema.f(…)
		p.Fail(protocol.CompilationError("002140", "42601", "Unknown function %s", strings.Join(parts, ".")))
	}
	return p.columnOf(parts)
}

func (p *Parser) columnOf(parts []string) Expr {
	last := parts[len(parts)-1]
	if len(parts) == 1 {
		return Expr{SQL: Quote(Short(last)), Kind: ColumnReference, Text: last}
	}
	return Expr{SQL: p.qualifier(parts[:len(parts)-1]) + "." + Quote(Short(last)), Kind: ColumnReference,
		Text: last}
}

// qualifier writes what stands before a column: an alias, or a table's name.
func (p *Parser) qualifier(parts []string) string {
	if len(parts) == 1 {
		return Quote(Short(parts[0]))
	}
	return p.Complete(parts).Postgres()
}
