package sql

import "strings"

// What binds more tightly stands further down: OR, AND, NOT, comparisons, + - ||, * / %, unary -, ::.
func (p *parser) expression() (Expr, error) {
	if err := p.enter(p.token.at); err != nil {
		return nil, err
	}
	defer p.leave()
	return p.binary(p.conjunction, "OR")
}

func (p *parser) conjunction() (Expr, error) { return p.binary(p.negation, "AND") }

func (p *parser) sum() (Expr, error) { return p.binary(p.product, "+", "-", "||") }

func (p *parser) product() (Expr, error) { return p.binary(p.unary, "*", "/", "%") }

// part counts an expression.
func (p *parser) part(at int) error {
	if p.parts++; p.parts > maxParts {
		return p.errorf(at, "", "a statement has at most %d parts", maxParts)
	}
	return nil
}

// binary reads operands with operators of one rank between them, from left to right.
func (p *parser) binary(operand func() (Expr, error), operators ...string) (Expr, error) {
	l, err := operand()
	for err == nil {
		op := ""
		for _, o := range operators {
			if p.is(o) || p.keyword(o) {
				op = o
			}
		}
		if op == "" {
			return l, nil
		}
		at := p.token.at
		if err = p.part(at); err != nil {
			return nil, err
		}
		if err = p.advance(); err != nil {
			return nil, err
		}
		var r Expr
		if r, err = operand(); err == nil {
			l = &Binary{Op: op, L: l, R: r, At: at}
		}
	}
	return nil, err
}

// negation reads NOT, any number of times.
func (p *parser) negation() (Expr, error) {
	at := p.token.at
	if not, err := p.accept("NOT"); err != nil {
		return nil, err
	} else if not {
		if err := p.enter(at); err != nil {
			return nil, err
		}
		defer p.leave()
		x, err := p.negation()
		return &Unary{Op: "NOT", X: x, At: at}, err
	}
	return p.comparison()
}

// comparison reads a sum, and what it is compared with; a < b < c is none.
func (p *parser) comparison() (Expr, error) {
	l, err := p.sum()
	if err != nil {
		return nil, err
	}
	at := p.token.at
	if err := p.part(at); err != nil {
		return nil, err
	}
	op := p.token.text
	switch {
	case p.is("=", "==", "<>", "!=", "<", "<=", ">", ">="):
		if err := p.advance(); err != nil {
			return nil, err
		}
		r, err := p.sum()
		switch op {
		case "==":
			op = "="
		case "!=":
			op = "<>"
		}
		return &Binary{Op: op, L: l, R: r, At: at}, err
	case p.keyword("IS"):
		if err := p.advance(); err != nil {
			return nil, err
		}
		not, err := p.accept("NOT")
		if err == nil {
			err = p.expect("NULL")
		}
		return &IsNull{X: l, Not: not, At: at}, err
	}
	not, err := p.accept("NOT")
	if err != nil {
		return nil, err
	}
	e, err := p.among(l, at, not)
	if err == nil && e == nil {
		if not {
			return nil, p.unexpected("IN", "BETWEEN", "LIKE")
		}
		return l, nil
	}
	return e, err
}

// among reads IN, BETWEEN and LIKE; nil if none is there.
func (p *parser) among(l Expr, at int, not bool) (Expr, error) {
	var e Expr
	switch {
	case p.keyword("IN"):
		if err := p.advance(); err != nil {
			return nil, err
		}
		in := &In{X: l, Not: not, At: at}
		err := p.list(func() error {
			x, err := p.expression()
			in.List = append(in.List, x)
			return err
		})
		if err == nil && len(in.List) == 0 {
			err = p.errorf(at, "", "IN needs a value to compare with")
		}
		return in, err
	case p.keyword("BETWEEN"):
		if err := p.advance(); err != nil {
			return nil, err
		}
		low, err := p.sum()
		if err == nil {
			err = p.expect("AND")
		}
		if err != nil {
			return nil, err
		}
		high, err := p.sum()
		if err != nil {
			return nil, err
		}
		e = &Binary{Op: "AND", L: &Binary{Op: ">=", L: l, R: low, At: at},
			R: &Binary{Op: "<=", L: l, R: high, At: at}, At: at}
	case p.keyword("LIKE"):
		if err := p.advance(); err != nil {
			return nil, err
		}
		r, err := p.sum()
		if err != nil {
			return nil, err
		}
		e = &Binary{Op: "LIKE", L: l, R: r, At: at}
	default:
		return nil, nil
	}
	if not {
		e = &Unary{Op: "NOT", X: e, At: at}
	}
	return e, nil
}

// unary reads signs and casts with ::.
func (p *parser) unary() (Expr, error) {
	at := p.token.at
	if err := p.part(at); err != nil {
		return nil, err
	}
	if minus, err := p.accept("-"); err != nil {
		return nil, err
	} else if minus {
		if err := p.enter(at); err != nil {
			return nil, err
		}
		defer p.leave()
		if p.token.kind == number {
			v, err := p.numeral(true)
			if err != nil {
				return nil, err
			}
			if err := p.advance(); err != nil {
				return nil, err
			}
			return p.casts(&Literal{Value: v, At: at})
		}
		x, err := p.unary()
		return &Unary{Op: "-", X: x, At: at}, err
	}
	x, err := p.primary()
	if err != nil {
		return nil, err
	}
	return p.casts(x)
}

func (p *parser) casts(x Expr) (Expr, error) {
	for p.is("::") {
		at := p.token.at
		if err := p.part(at); err != nil {
			return nil, err
		}
		if err := p.advance(); err != nil {
			return nil, err
		}
		t, err := p.typeName()
		if err != nil {
			return nil, err
		}
		x = &Cast{X: x, Type: t, At: at}
	}
	return x, nil
}

// primary reads a literal, a column, a call, a CASE or what is in parentheses.
func (p *parser) primary() (Expr, error) {
	t := p.token
	switch {
	case t.kind == number:
		v, err := p.numeral(false)
		if err != nil {
			return nil, err
		}
		return &Literal{Value: v, At: t.at}, p.advance()
	case t.kind == text:
		return &Literal{Value: t.text, At: t.at}, p.advance()
	case p.is("("):
		if err := p.advance(); err != nil {
			return nil, err
		}
		x, err := p.expression()
		if err != nil {
			return nil, err
		}
		return x, p.expect(")")
	case p.keyword("TRUE"), p.keyword("FALSE"):
		return &Literal{Value: p.keyword("TRUE"), At: t.at}, p.advance()
	case p.keyword("NULL"):
		return &Literal{At: t.at}, p.advance()
	case p.keyword("CASE"):
		return p.caseOf()
	case t.kind == word && (reserved[strings.ToUpper(t.text)] && !p.keyword("END")):
		return nil, p.unexpected("an expression")
	case t.kind == word, t.kind == quotedName:
		return p.named()
	}
	return nil, p.unexpected("an expression")
}

// named reads what begins with a name: a column, a call, a cast.
func (p *parser) named() (Expr, error) {
	kind := p.token.kind
	n, err := p.name("a name")
	if err != nil {
		return nil, err
	}
	if p.is("(") {
		if kind == word && SameName(n.Text, "CAST") {
			return p.cast(n)
		}
		return p.call(n)
	}
	if kind == word && SameName(n.Text, "TIMESTAMP") && p.token.kind == text {
		x := &Literal{Value: p.token.text, At: p.token.at}
		return &Cast{X: x, Type: TypeName{Name: n}, At: n.At}, p.advance()
	}
	if more, err := p.accept("."); err != nil || !more {
		return &Column{Name: n}, err
	}
	if p.is("*") {
		return &Column{Table: n, Name: Name{Text: "*", At: p.token.at}}, p.advance()
	}
	c, err := p.name("a column")
	return &Column{Table: n, Name: c}, err
}

func (p *parser) cast(n Name) (Expr, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	x, err := p.expression()
	if err == nil {
		err = p.expect("AS")
	}
	if err != nil {
		return nil, err
	}
	t, err := p.typeName()
	if err != nil {
		return nil, err
	}
	return &Cast{X: x, Type: t, At: n.At}, p.expect(")")
}

// call reads the arguments of a function, and OVER.
func (p *parser) call(n Name) (Expr, error) {
	c := &Call{Name: n}
	err := p.list(func() error {
		if p.is("*") && len(c.Args) == 0 {
			c.Star = true
			return p.advance()
		}
		x, err := p.expression()
		c.Args = append(c.Args, x)
		return err
	})
	if err != nil {
		return nil, err
	}
	at := p.token.at
	if over, err := p.accept("OVER"); err != nil || !over {
		return c, err
	}
	c.Over = &Over{At: at}
	if err := p.expect("("); err != nil {
		return nil, err
	}
	if partition, err := p.accept("PARTITION"); err != nil {
		return nil, err
	} else if partition {
		if err := p.expect("BY"); err != nil {
			return nil, err
		}
		for {
			x, err := p.expression()
			if err != nil {
				return nil, err
			}
			c.Over.Partition = append(c.Over.Partition, x)
			if more, err := p.accept(","); err != nil {
				return nil, err
			} else if !more {
				break
			}
		}
	}
	if p.keyword("ORDER") {
		return nil, p.errorf(p.token.at, "leave ORDER BY out: the row before is the one that came before",
			"OVER has no ORDER BY")
	}
	return c, p.expect(")")
}

func (p *parser) caseOf() (Expr, error) {
	c := &Case{At: p.token.at}
	if err := p.advance(); err != nil {
		return nil, err
	}
	var err error
	if !p.keyword("WHEN") {
		if c.Operand, err = p.expression(); err != nil {
			return nil, err
		}
	}
	for p.keyword("WHEN") {
		if err := p.advance(); err != nil {
			return nil, err
		}
		var w When
		if w.If, err = p.expression(); err != nil {
			return nil, err
		}
		if err = p.expect("THEN"); err != nil {
			return nil, err
		}
		if w.Then, err = p.expression(); err != nil {
			return nil, err
		}
		c.When = append(c.When, w)
	}
	if len(c.When) == 0 {
		return nil, p.unexpected("WHEN")
	}
	if other, err := p.accept("ELSE"); err != nil {
		return nil, err
	} else if other {
		if c.Else, err = p.expression(); err != nil {
			return nil, err
		}
	}
	return c, p.expect("END")
}
