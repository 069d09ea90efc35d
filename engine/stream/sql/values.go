package sql

import (
	"strconv"
	"strings"
	"time"
)

// settings reads SET(value AS path, …) if it is there.
func (p *parser) settings() ([]Setting, error) {
	if !p.keyword("SET") {
		return nil, nil
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	var list []Setting
	err := p.list(func() error {
		s := Setting{At: p.token.at}
		var err error
		if s.Value, err = p.value(); err != nil {
			return err
		}
		if err = p.expect("AS"); err != nil {
			return err
		}
		for {
			part, err := p.name("the name of a setting")
			if err != nil {
				return err
			}
			s.Path += strings.ToUpper(part.Text)
			if more, err := p.accept("."); err != nil || !more {
				list = append(list, s)
				return err
			}
			s.Path += "."
		}
	})
	return list, err
}

// list reads (item, item, …), which may be empty.
func (p *parser) list(item func() error) error {
	if err := p.expect("("); err != nil {
		return err
	}
	if ok, err := p.accept(")"); ok || err != nil {
		return err
	}
	for {
		if err := item(); err != nil {
			return err
		}
		if p.parts++; p.parts > maxParts {
			return p.errorf(p.token.at, "", "a statement has at most %d parts", maxParts)
		}
		if ok, err := p.accept(","); err != nil {
			return err
		} else if ok {
			continue
		}
		if !p.is(")") {
			return p.unexpected(",", ")")
		}
		return p.advance()
	}
}

// value reads the value of a setting.
func (p *parser) value() (any, error) {
	negative, err := p.accept("-")
	if err != nil {
		return nil, err
	}
	t := p.token
	switch {
	case negative && t.kind != number:
		return nil, p.unexpected("a number")
	case t.kind == text:
		return t.text, p.advance()
	case p.keyword("TRUE"), p.keyword("FALSE"):
		return p.keyword("TRUE"), p.advance()
	case t.kind == number:
		v, err := p.numeral(negative)
		if err != nil {
			return nil, err
		}
		return v, p.advance()
	case p.is("(") && p.depth == 0:
		p.depth++
		defer func() { p.depth-- }()
		values := []any{}
		err := p.list(func() error {
			v, err := p.value()
			values = append(values, v)
			return err
		})
		return values, err
	}
	return nil, p.unexpected("a text", "a number", "TRUE", "FALSE")
}

// numeral is the number that is looked at, an int64 or float64.
func (p *parser) numeral(negative bool) (any, error) {
	s := p.token.text
	if negative {
		s = "-" + s
	}
	if !strings.ContainsAny(s, ".eE") {
		if i, err := strconv.ParseInt(s, 10, 64); err == nil {
			return i, nil
		}
		return nil, p.errorf(p.token.at, "write it with a fraction: it becomes a FLOAT64",
			"whole numbers are between %d and %d", int64(-1<<63), int64(1<<63-1))
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil, p.errorf(p.token.at, "", "no FLOAT64 is as large as this")
	}
	return f, nil
}

// schema reads (name TYPE [NOT NULL], …).
func (p *parser) schema() ([]ColumnDefinition, error) {
	var columns []ColumnDefinition
	err := p.list(func() error {
		if p.is("...") {
			return p.errorf(p.token.at, "write name TYPE for each column, divided by commas",
				"... stands for columns that were left out")
		}
		c := ColumnDefinition{}
		var err error
		if c.Name, err = p.name("the name of a column"); err != nil {
			return err
		}
		if c.Type, err = p.typeName(); err != nil {
			return err
		}
		not, err := p.accept("NOT")
		if err == nil && not {
			c.NotNull, err = true, p.expect("NULL")
		}
		columns = append(columns, c)
		return err
	})
	return columns, err
}

// typeName reads a type with up to two numbers in parentheses.
func (p *parser) typeName() (TypeName, error) {
	n, err := p.name("a type")
	t := TypeName{Name: n}
	if err != nil || !p.is("(") {
		return t, err
	}
	err = p.list(func() error {
		v, err := p.value()
		if err != nil {
			return err
		}
		i, ok := v.(int64)
		if !ok || len(t.Args) == 2 {
			return p.errorf(n.At, "", "a type has one or two whole numbers in parentheses")
		}
		t.Args = append(t.Args, i)
		return nil
	})
	return t, err
}

// units of durations.
var units = map[string]time.Duration{
	"US": time.Microsecond, "MICROSECOND": time.Microsecond, "MS": time.Millisecond, "MILLISECOND": time.Millisecond,
	"S": time.Second, "SEC": time.Second, "SECOND": time.Second, "M": time.Minute, "MIN": time.Minute,
	"MINUTE": time.Minute, "H": time.Hour, "HOUR": time.Hour, "D": 24 * time.Hour, "DAY": 24 * time.Hour,
	"WEEK": 7 * 24 * time.Hour, "YEAR": 365 * 24 * time.Hour,
}

// duration reads a number and its unit, 5s or 5 MINUTES.
func (p *parser) duration() (time.Duration, error) {
	at := p.token
	if at.kind != number {
		return 0, p.unexpected("a duration as 5 SECONDS")
	}
	n, err := strconv.ParseFloat(at.text, 64)
	if err != nil || n < 0 {
		return 0, p.errorf(at.at, "", "this is no number of seconds, minutes or hours")
	}
	if err := p.advance(); err != nil {
		return 0, err
	}
	unit := strings.ToUpper(p.token.text)
	known := p.token.kind == word
	if known {
		if _, known = units[unit]; !known && len(unit) > 1 {
			unit = strings.TrimSuffix(unit, "S")
			_, known = units[unit]
		}
	}
	if !known {
		hint := "write 5 SECONDS, 5s or 5 MINUTES"
		if p.token.kind == word {
			if s := Suggest(p.token.text, "MS", "SECONDS", "MINUTES", "HOURS", "DAYS"); s != "" {
				hint = s
			}
		}
		return 0, p.errorf(p.token.at, hint, "expected a unit of time, found %s", p.found())
	}
	d := n * float64(units[unit])
	if d > float64(100*365*24*time.Hour) {
		return 0, p.errorf(at.at, "", "a duration is at most 100 years")
	}
	return time.Duration(d), p.advance()
}
