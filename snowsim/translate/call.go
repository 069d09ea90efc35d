package translate

import (
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// arguments are a function's arguments.
type arguments struct {
	list     []expr
	distinct bool
	star     bool // f(*)
}

// sql returns all arguments with commas between.
func (a *arguments) sql() string {
	all := make([]string, len(a.list))
	for i, e := range a.list {
		all[i] = e.sql
	}
	return strings.Join(all, ", ")
}

// arguments reads "( … )" after a function's name.
func (p *parser) arguments(function string) *arguments {
	a := &arguments{}
	p.inParentheses(func() {
		switch {
		case p.isSymbol(")"):
			return
		case p.acceptSymbol("*"):
			a.star = true
			return
		case p.accept("DISTINCT"):
			a.distinct = true
		}
		for {
			if len(a.list) == 0 && datePartFirst[function] {
				a.list = append(a.list, p.datePart())
			} else {
				a.list = append(a.list, p.expression())
			}
			if !p.acceptSymbol(",") {
				return
			}
		}
	})
	return a
}

// datePartFirst are the functions whose first argument is a date part, which may
// be a bare word.
var datePartFirst = wordSet(
	"DATEADD DATEDIFF DATE_PART")

// dateParts are the spellings of date parts.
var dateParts = func() map[string]string {
	all := map[string]string{}
	for part, spellings := range map[string]string{
		"year": "YEAR YEARS", "quarter": "QUARTER QUARTERS", "month": "MONTH MONTHS", "week": "WEEK WEEKS",
		"day": "DAY DAYS", "hour": "HOUR HOURS", "minute": "MINUTE MINUTES", "second": "SECOND SECONDS",
		"millisecond": "MILLISECOND MS", "microsecond": "MICROSECOND US",
		"epoch": "EPOCH_SECOND", "epoch_millisecond": "EPOCH_MILLISECOND", "epoch_microsecond": "EPOCH_MICROSECOND"} {
		for _, s := range strings.Fields(spellings) {
			all[s] = part
		}
	}
	return all
}()

// datePart reads a date part, as a word or a string; its name is the text of a
// constant.
func (p *parser) datePart() expr {
	t := p.next()
	part := ""
	if t.kind == tokenWord || t.kind == tokenText || t.kind == tokenQuoted {
		part = dateParts[strings.ToUpper(t.text)]
	}
	if part == "" {
		p.advance(-1)
		p.fail(protocol.CompilationError("001076", "42601", "'%s' is not a valid date/time component.", p.sourceOf(t)))
	}
	return expr{sql: literal(part), kind: exprString, text: part}
}

// call writes a call of a function whose arguments were read, with what may follow them.
func (p *parser) call(function string, a *arguments) expr {
	if a == nil {
		a = &arguments{}
	}
	var e expr
	switch f := functions[function]; {
	case aggregates[function] != nil:
		e = p.aggregate(function, a)
	case windowFunctions[function] != "":
		sql := windowFunctions[function] + "(" + a.sql() + ")"
		if !p.is("OVER") && !p.is("IGNORE") {
			p.fail(
				protocol.CompilationError("002303", "42601", "Missing window specification for window function [%s].", function),
			)
		}
		e = expr{sql: sql}
	case special[function] != nil:
		e = special[function](p, function, a)
	case f != "":
		e = expr{sql: p.expand(function, f, a)}
		if function == "PARSE_JSON" {
			e.kind = exprPath
		}
	default:
		p.fail(protocol.CompilationError("002140", "42601", "Unknown function %s.", function))
	}
	return p.over(e)
}

// expand fills in a function's template: {1} is the first argument, {1t} the
// first as text, {1i} as integer, {1n} as number, {*} all of them. A template is
// chosen among those that bars separate by the number of arguments.
func (p *parser) expand(function, templates string, a *arguments) string {
	for _, t := range strings.Split(templates, " ¦ ") {
		want := 0
		for n := 1; n <= 6; n++ {
			if strings.Contains(t, "{"+strconv.Itoa(n)) {
				want = n
			}
		}
		if want != len(a.list) && (!strings.Contains(t, "{*}") || len(a.list) < max(want, 1)) || a.star || a.distinct {
			continue
		}
		var b strings.Builder
		for {
			open := strings.IndexByte(t, '{')
			if open < 0 {
				b.WriteString(t)
				return b.String()
			}
			b.WriteString(t[:open])
			end := open + strings.IndexByte(t[open:], '}')
			b.WriteString(fill(t[open+1:end], a))
			t = t[end+1:]
		}
	}
	if len(a.list) == 0 {
		p.fail(protocol.CompilationError("000938", "22023", "not enough arguments for function [%s]", function))
	}
	p.fail(protocol.CompilationError("000939", "22023", "wrong number of arguments for function [%s(%s)], got %d",
		function, strings.TrimSuffix(strings.Repeat("…, ", len(a.list)), ", "), len(a.list)))
	return ""
}

func fill(placeholder string, a *arguments) string {
	if placeholder == "*" {
		return a.sql()
	}
	e := a.list[placeholder[0]-'1']
	switch placeholder[1:] {
	case "t":
		return textOf(e)
	case "i":
		return "(" + e.sql + ")::int"
	case "n":
		return "(" + e.sql + ")::numeric"
	case "d": // a date or timestamp; text is read as a timestamp
		if e.kind == exprString {
			return e.sql + "::timestamp"
		}
		return e.sql
	}
	return e.sql
}

// over reads what may follow a call: IGNORE NULLS and OVER.
func (p *parser) over(e expr) expr {
	if p.is("IGNORE", "NULLS") {
		p.fail(protocol.NotSimulated("IGNORE NULLS"))
	}
	if !p.accept("OVER") {
		return e
	}
	sql := ""
	p.inParentheses(func() { sql = p.window() })
	return expr{sql: e.sql + " OVER (" + sql + ")"}
}

func (p *parser) window() string {
	var b strings.Builder
	if p.accept("PARTITION", "BY") {
		b.WriteString("PARTITION BY " + p.list(p.sql) + " ")
	}
	if p.accept("ORDER", "BY") {
		b.WriteString("ORDER BY " + p.list(p.ordering) + " ")
	}
	if p.isAny("ROWS", "RANGE") {
		p.fail(protocol.NotSimulated("the frame of a window"))
	}
	return b.String()
}

// ordering reads one item of ORDER BY.
func (p *parser) ordering() string {
	sql := p.sql()
	if p.isAny("ASC", "DESC") {
		sql += " " + p.next().text
	}
	if p.accept("NULLS") {
		if !p.isAny("FIRST", "LAST") {
			p.unexpected()
		}
		sql += " NULLS " + p.next().text
	}
	return sql
}

// aggregates write the SQL of an aggregate; order is its WITHIN GROUP.
var aggregates = map[string]func(p *parser, a *arguments, order string) string{
	"COUNT": func(_ *parser, a *arguments, _ string) string {
		if a.star {
			return "count(*)"
		}
		return "count(" + distinct(a) + a.sql() + ")"
	},
	"SUM": plainAggregate("sum"), "AVG": plainAggregate("avg"), "MIN": plainAggregate("min"), "MAX": plainAggregate("max"),
	"COUNT_IF": func(_ *parser, a *arguments, _ string) string {
		return "count(*) FILTER (WHERE " + a.sql() + ")"
	},
	"PERCENTILE_CONT": func(p *parser, a *arguments, order string) string {
		if order == "" {
			p.failf("Missing WITHIN GROUP (ORDER BY …) of function [PERCENTILE_CONT].")
		}
		return "percentile_cont((" + p.argument(a, 0).sql + ")::float8) WITHIN GROUP (" + order + ")"
	},
	"LISTAGG": func(p *parser, a *arguments, order string) string {
		separator := "''"
		if len(a.list) > 1 {
			separator = a.list[1].sql
		}
		value := textOf(p.argument(a, 0))
		return "coalesce(string_agg(" + distinct(a) + value + ", " + separator + order + "), '')"
	},
}

func plainAggregate(postgres string) func(*parser, *arguments, string) string {
	return func(_ *parser, a *arguments, _ string) string {
		return postgres + "(" + distinct(a) + a.sql() + ")"
	}
}

func distinct(a *arguments) string {
	if a.distinct {
		return "DISTINCT "
	}
	return ""
}

// argument returns an argument that must be there.
func (p *parser) argument(a *arguments, i int) expr {
	if i >= len(a.list) {
		p.fail(protocol.CompilationError("000938", "22023", "not enough arguments for function, got %d", len(a.list)))
	}
	return a.list[i]
}

func (p *parser) aggregate(function string, a *arguments) expr {
	if len(a.list) == 0 && !a.star {
		p.argument(a, 0)
	}
	if a.star && function != "COUNT" {
		p.failf("Function %s does not take *.", function)
	}
	order := ""
	if p.accept("WITHIN", "GROUP") {
		p.inParentheses(func() {
			p.expect("ORDER", "BY")
			order = " ORDER BY " + p.list(p.ordering)
		})
	}
	return expr{sql: aggregates[function](p, a, order)}
}
