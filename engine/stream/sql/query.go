package sql

import "strings"

// reserved cannot be a name of a table or column without AS: it begins or ends something.
var reserved = map[string]bool{"SELECT": true, "FROM": true, "WHERE": true, "GROUP": true, "WINDOW": true,
	"HAVING": true, "INTO": true, "AS": true, "ON": true, "JOIN": true, "INNER": true, "LEFT": true, "RIGHT": true,
	"FULL": true, "CROSS": true, "OUTER": true, "AND": true, "OR": true, "NOT": true, "IS": true, "IN": true,
	"BETWEEN": true, "LIKE": true, "WHEN": true, "THEN": true, "ELSE": true, "END": true, "CASE": true, "UNION": true,
	"ORDER": true, "LIMIT": true, "OVER": true, "BY": true, "SET": true}

// clauses of a SELECT behind FROM.
var clauses = []string{"JOIN", "WHERE", "GROUP BY", "WINDOW", "HAVING", "INTO"}

// selectAfter reads a SELECT whose first word is behind it; at is where that stands.
func (p *parser) selectAfter(at int) (*Select, error) {
	if err := p.enter(at); err != nil {
		return nil, err
	}
	defer p.leave()
	s := &Select{At: at}
	for {
		item, err := p.item()
		if err != nil {
			return nil, err
		}
		s.Items = append(s.Items, item)
		if more, err := p.accept(","); err != nil {
			return nil, err
		} else if !more {
			break
		}
	}
	if err := p.expect("FROM"); err != nil {
		return nil, err
	}
	var err error
	if s.From, err = p.table(); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for p.token.kind != endOfInput && !p.is(";", ")") {
		clause, err := p.clause(s)
		if err != nil {
			return nil, err
		}
		if seen[clause] {
			return nil, p.errorf(p.token.at, "", "a SELECT has one %s", clause)
		}
		seen[clause] = true
	}
	return s, nil
}

// clause reads one of the clauses behind FROM, in whatever order, and returns its name.
func (p *parser) clause(s *Select) (string, error) {
	at := p.token.at
	name := strings.ToUpper(p.token.text)
	if !p.keyword(
		"JOIN",
		"INNER",
		"WHERE",
		"GROUP",
		"WINDOW",
		"HAVING",
		"INTO",
		"ON",
		"SET",
		"ORDER",
		"LIMIT",
		"UNION",
		"LEFT",
		"RIGHT",
		"FULL",
		"CROSS",
	) {
		return "", p.unexpected(append(clauses, "the end of the statement")...)
	}
	var err error
	if name == "SET" {
		if p.depth > 1 {
			return "", p.errorf(at, "write SET behind the outer SELECT", "a subquery has no settings")
		}
		s.Settings, err = p.settings()
		return name, err
	}
	if err := p.advance(); err != nil {
		return "", err
	}
	switch name {
	case "INNER":
		if err = p.expect("JOIN"); err == nil {
			s.Join, err = p.join(at)
		}
		name = "JOIN"
	case "JOIN":
		s.Join, err = p.join(at)
	case "WHERE":
		s.Where, err = p.expression()
	case "GROUP":
		if err = p.expect("BY"); err == nil {
			s.Group, err = p.group()
		}
		name = "GROUP BY"
	case "WINDOW":
		s.Window, err = p.window(at)
	case "HAVING":
		s.Having, err = p.expression()
	case "INTO":
		if p.depth > 1 {
			return "", p.errorf(at, "write INTO behind the outer SELECT", "a subquery has no sink")
		}
		s.Into, err = p.name("the name of a sink")
	case "ON":
		if err = p.expect("OVERFLOW"); err == nil {
			var how string
			how, err = p.oneOf("DROP", "WAIT")
			s.DropOnOverflow = how == "DROP"
		}
		name = "ON OVERFLOW"
	case "ORDER", "LIMIT":
		err = p.errorf(at, "windows come in the order of their time", "a stream has no end that %s could wait for", name)
	default:
		err = p.errorf(at, "INNER JOIN … ON … with a WINDOW is there", "%s is not supported", name)
	}
	return name, err
}

// enter and leave bound how deep things are nested.
func (p *parser) enter(at int) error {
	if p.depth++; p.depth > maxDepth {
		return p.errorf(at, "use a subquery or several queries", "this is nested deeper than %d", maxDepth)
	}
	return nil
}

func (p *parser) leave() { p.depth-- }

// item reads an expression with its name, * or table.*.
func (p *parser) item() (Item, error) {
	i := Item{At: p.token.at}
	if star, err := p.accept("*"); star || err != nil {
		return i, err
	}
	var err error
	if i.Expr, err = p.expression(); err != nil {
		return i, err
	}
	if c, ok := i.Expr.(*Column); ok && c.Name.Text == "*" {
		return Item{At: i.At, Table: c.Table}, nil
	}
	i.Alias, err = p.alias()
	return i, err
}

// alias reads [AS] name if it is there.
func (p *parser) alias() (Name, error) {
	if as, err := p.accept("AS"); err != nil {
		return Name{}, err
	} else if as {
		return p.name("a name")
	}
	if p.token.kind == quotedName || p.token.kind == word && !reserved[strings.ToUpper(p.token.text)] {
		return p.name("a name")
	}
	return Name{}, nil
}

// table reads the name of a source or a subquery.
func (p *parser) table() (Table, error) {
	at := p.token.at
	t := Table{}
	sub, err := p.accept("(")
	if err != nil {
		return t, err
	}
	if !sub {
		if p.token.kind == word && reserved[strings.ToUpper(p.token.text)] {
			return t, p.unexpected("a source")
		}
		if t.Name, err = p.name("a source"); err != nil {
			return t, err
		}
		return p.tableAlias(t)
	}
	if err := p.expect("SELECT"); err != nil {
		return t, err
	}
	if t.Query, err = p.selectAfter(at); err != nil {
		return t, err
	}
	if err := p.expect(")"); err != nil {
		return t, err
	}
	return p.tableAlias(t)
}

func (p *parser) tableAlias(t Table) (Table, error) {
	// A misspelt clause is not an alias.
	if p.token.kind == word && Suggest(p.token.text, "WHERE", "GROUP", "WINDOW", "HAVING", "INTO") != "" &&
		!reserved[strings.ToUpper(p.token.text)] && len(p.token.text) > 2 {
		return t, p.unexpected(clauses...)
	}
	var err error
	t.Alias, err = p.alias()
	return t, err
}

func (p *parser) join(at int) (*Join, error) {
	j := &Join{At: at}
	var err error
	if j.Table, err = p.table(); err != nil {
		return nil, err
	}
	if err = p.expect("ON"); err != nil {
		return nil, err
	}
	j.On, err = p.expression()
	return j, err
}

// group reads expressions, with or without parentheses around all of them.
func (p *parser) group() ([]Expr, error) {
	var list []Expr
	begin := p.token
	one := func() error {
		e, err := p.expression()
		list = append(list, e)
		return err
	}
	if p.is("(") {
		err := p.list(one)
		if err == nil && len(list) > 0 && !p.is(",", "+", "-", "*", "/", "%", "||", "::") {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		list = nil
		p.rewind(begin)
	}
	for {
		if err := one(); err != nil {
			return nil, err
		}
		if more, err := p.accept(","); err != nil || !more {
			return list, err
		}
	}
}

// window reads TUMBLING([time,] SIZE 5 SEC) or SLIDING([time,] SIZE 5 MINUTES, ADVANCE BY 1 SEC).
func (p *parser) window(at int) (*Window, error) {
	kind, err := p.oneOf("TUMBLING", "SLIDING")
	if err != nil {
		return nil, err
	}
	w := &Window{Sliding: kind == "SLIDING", At: at}
	given := map[string]bool{}
	open := p.token.at
	err = p.list(func() error {
		at := p.token
		name, err := p.name("SIZE, ADVANCE, LATENESS or the time of rows")
		if err != nil {
			return err
		}
		which := strings.ToUpper(name.Text)
		if p.is(",", ")", ".") {
			return p.windowTime(w, at)
		}
		if which == "SLIDE" {
			which = "ADVANCE"
		}
		if _, err := p.accept("BY"); err != nil {
			return err
		}
		if _, err := p.accept("="); err != nil {
			return err
		}
		if given[which] {
			return p.errorf(at.at, "", "%s is given twice", which)
		}
		given[which] = true
		switch which {
		case "SIZE":
			w.Size, err = p.duration()
		case "ADVANCE":
			w.Advance, err = p.duration()
		case "LATENESS":
			w.Lateness, err = p.duration()
		default:
			err = p.errorf(at.at, Suggest(name.Text, "SIZE", "ADVANCE", "LATENESS"),
				"expected SIZE, ADVANCE or LATENESS, found %s", name.Text)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	switch {
	case !given["SIZE"]:
		return nil, p.errorf(open, kind+"(ts, SIZE 5 SECONDS)", "a window needs its SIZE")
	case w.Sliding && !given["ADVANCE"]:
		return nil, p.errorf(open, "SLIDING(ts, SIZE 5 MINUTES, ADVANCE BY 1 SECOND)", "a sliding window needs ADVANCE")
	case !w.Sliding && given["ADVANCE"]:
		return nil, p.errorf(open, "did you mean SLIDING?", "a tumbling window advances by its size")
	case !w.Sliding:
		w.Advance = w.Size
	}
	return w, nil
}

// windowTime reads the column of a window's time, of which the first name was at a token.
func (p *parser) windowTime(w *Window, first token) error {
	if w.Time != nil {
		return p.errorf(first.at, "", "a window has one column of time")
	}
	w.Time = &Column{Name: Name{Text: first.text, At: first.at}}
	if more, err := p.accept("."); err != nil || !more {
		return err
	}
	w.Time.Table = w.Time.Name
	var err error
	w.Time.Name, err = p.name("a column")
	return err
}
