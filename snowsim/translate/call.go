package translate

import (
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/snowsim/plan"
)

// arguments are what stands between a function's parentheses.
type arguments struct {
	list     []expr
	named    map[string]expr // FILTER => …
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
		case function == "EXTRACT":
			a.list = append(a.list, p.datePart())
			p.expect("FROM")
			a.list = append(a.list, p.expression())
			return
		case p.accept("DISTINCT"):
			a.distinct = true
		case p.accept("ALL"):
		case p.isAny("SELECT", "WITH"):
			a.list = append(a.list, expr{sql: "(" + p.selectStatement() + ")"})
			return
		}
		for {
			if n := p.peekAt(1); n.kind == symbol && n.text == "=>" {
				key := p.anyIdentifier()
				p.i++
				if a.named == nil {
					a.named = map[string]expr{}
				}
				a.named[key] = p.expression()
			} else if len(a.list) == 0 && datePartFirst[function] {
				a.list = append(a.list, p.datePart())
			} else if function == "POSITION" && len(a.list) == 0 {
				a.list = append(a.list, p.sum())
				if p.accept("IN") {
					a.list = append(a.list, p.expression())
				}
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
var datePartFirst = setOf("DATEADD TIMEADD TIMESTAMPADD DATEDIFF TIMEDIFF TIMESTAMPDIFF DATE_TRUNC DATE_PART EXTRACT")

// dateParts are the spellings of date parts.
var dateParts = func() map[string]string {
	all := map[string]string{}
	for part, spellings := range map[string]string{
		"year": "YEAR Y YY YYY YYYY YR YEARS YRS", "quarter": "QUARTER Q QTR QTRS QUARTERS",
		"month": "MONTH MM MON MONS MONTHS",
		"week":  "WEEK W WK WEEKOFYEAR WOY WY WEEKS", "day": "DAY D DD DAYS DAYOFMONTH", "hour": "HOUR H HH HR HOURS HRS",
		"minute": "MINUTE M MI MIN MINUTES MINS", "second": "SECOND S SEC SECONDS SECS",
		"millisecond": "MILLISECOND MS MSEC MILLISECONDS", "microsecond": "MICROSECOND US USEC MICROSECONDS",
		"nanosecond": "NANOSECOND NS NSEC NANOSEC NSECOND NANOSECONDS NANOSECS NSECONDS",
		"epoch":      "EPOCH EPOCH_SECOND EPOCH_SECONDS", "epoch_millisecond": "EPOCH_MILLISECOND EPOCH_MILLISECONDS",
		"epoch_microsecond": "EPOCH_MICROSECOND EPOCH_MICROSECONDS", "epoch_nanosecond": "EPOCH_NANOSECOND EPOCH_NANOSECONDS",
		"dow": "DAYOFWEEK WEEKDAY DOW DW", "isodow": "DAYOFWEEKISO DOW_ISO DAYOFWEEK_ISO WEEKDAY_ISO DW_ISO",
		"doy":     "DAYOFYEAR YEARDAY DOY DY",
		"weekiso": "WEEKISO WEEK_ISO WEEKOFYEARISO WEEKOFYEAR_ISO", "yearofweek": "YEAROFWEEK YEAROFWEEKISO",
		"timezone_hour": "TIMEZONE_HOUR TZH", "timezone_minute": "TIMEZONE_MINUTE TZM"} {
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
	if t.kind == word || t.kind == text || t.kind == quoted {
		part = dateParts[strings.ToUpper(t.text)]
	}
	if part == "" {
		p.i--
		p.fail(plan.CompilationError("001076", "42601", "'%s' is not a valid date/time component.", p.src[t.start:t.end]))
	}
	return expr{sql: literal(part), kind: stringConstant, text: part}
}

// call writes a call of a function whose arguments were read, with what may follow them.
func (p *parser) call(function string, a *arguments) expr {
	if a == nil {
		a = &arguments{}
	}
	if len(a.named) > 0 {
		p.failf("Function %s does not take named arguments.", function)
	}
	var e expr
	switch f := functions[function]; {
	case aggregates[function] != nil:
		e = p.aggregate(function, a)
	case windowFunctions[function] != "":
		sql := windowFunctions[function] + "(" + a.sql() + ")"
		if !p.is("OVER") && !p.is("IGNORE") && !p.is("RESPECT") {
			p.fail(plan.CompilationError("002303", "42601", "Missing window specification for window function [%s].", function))
		}
		e = expr{sql: sql}
	case p.t.special[function] != nil:
		e = p.t.special[function](p, function, a)
	case f != "":
		e = expr{sql: p.expand(function, f, a)}
		if jsonFunctions[function] {
			e.kind = path
		}
	default:
		p.fail(plan.CompilationError("002140", "42601", "Unknown function %s.", function))
	}
	return p.over(function, e)
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
		p.fail(plan.CompilationError("000938", "22023", "not enough arguments for function [%s]", function))
	}
	p.fail(plan.CompilationError("000939", "22023", "wrong number of arguments for function [%s(%s)], got %d",
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
		if e.kind == numberConstant {
			return e.sql
		}
		return "(" + e.sql + ")::int"
	case "n":
		return "(" + e.sql + ")::numeric"
	case "d": // a date or timestamp; text is read as a timestamp
		if e.kind == stringConstant {
			return e.sql + "::timestamp"
		}
		return e.sql
	}
	return e.sql
}

// over reads what may follow a call: IGNORE NULLS and OVER.
func (p *parser) over(function string, e expr) expr {
	p.accept("RESPECT", "NULLS")
	if p.is("IGNORE", "NULLS") {
		p.fail(plan.Unsupported("IGNORE NULLS"))
	}
	if !p.accept("OVER") {
		return e
	}
	if p.query != nil {
		p.query.aggregate = false // over a window, it does not group
	}
	sql := ""
	p.inParentheses(func() { sql = p.window(function) })
	return expr{sql: e.sql + " OVER (" + sql + ")"}
}

func (p *parser) window(function string) string {
	var b strings.Builder
	if p.accept("PARTITION", "BY") {
		b.WriteString("PARTITION BY " + p.list(p.sql) + " ")
	}
	ordered := p.accept("ORDER", "BY")
	if ordered {
		b.WriteString("ORDER BY " + p.list(p.ordering) + " ")
	}
	switch {
	case p.isAny("ROWS", "RANGE"):
		b.WriteString(p.next().text + " ")
		if p.accept("BETWEEN") {
			b.WriteString("BETWEEN " + p.frameBound())
			p.expect("AND")
			b.WriteString(" AND " + p.frameBound())
		} else {
			b.WriteString(p.frameBound())
		}
	case ordered && (function == "FIRST_VALUE" || function == "LAST_VALUE" || function == "NTH_VALUE"):
		// Snowflake's frame of these is the whole partition.
		b.WriteString("ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING")
	}
	return b.String()
}

func (p *parser) frameBound() string {
	switch {
	case p.accept("CURRENT", "ROW"):
		return "CURRENT ROW"
	case p.accept("UNBOUNDED", "PRECEDING"):
		return "UNBOUNDED PRECEDING"
	case p.accept("UNBOUNDED", "FOLLOWING"):
		return "UNBOUNDED FOLLOWING"
	}
	n := strconv.FormatInt(p.integer(), 10)
	if p.accept("PRECEDING") {
		return n + " PRECEDING"
	}
	p.expect("FOLLOWING")
	return n + " FOLLOWING"
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

// aggregates write the SQL of an aggregate; order is what WITHIN GROUP says.
var aggregates = map[string]func(p *parser, a *arguments, order string) string{
	"COUNT": func(_ *parser, a *arguments, _ string) string {
		if a.star {
			return "count(*)"
		}
		if len(a.list) > 1 && a.distinct {
			return "count(DISTINCT (" + a.sql() + "))"
		}
		return "count(" + distinct(a) + a.sql() + ")"
	},
	"SUM": plainAggregate("sum"), "AVG": plainAggregate("avg"), "MIN": plainAggregate("min"), "MAX": plainAggregate("max"),
	"STDDEV": plainAggregate("stddev"), "STDDEV_SAMP": plainAggregate("stddev_samp"),
	"STDDEV_POP": plainAggregate("stddev_pop"),
	"VARIANCE":   plainAggregate("variance"), "VAR_SAMP": plainAggregate("var_samp"), "VAR_POP": plainAggregate("var_pop"),
	"CORR": plainAggregate("corr"), "BOOLAND_AGG": plainAggregate("bool_and"), "BOOLOR_AGG": plainAggregate("bool_or"),
	"COUNT_IF": func(_ *parser, a *arguments, _ string) string {
		return "count(*) FILTER (WHERE " + a.sql() + ")"
	},
	"APPROX_COUNT_DISTINCT": func(_ *parser, a *arguments, _ string) string { return "count(DISTINCT " + a.sql() + ")" },
	"HLL":                   func(_ *parser, a *arguments, _ string) string { return "count(DISTINCT " + a.sql() + ")" },
	"ANY_VALUE":             func(_ *parser, a *arguments, _ string) string { return "(array_agg(" + a.sql() + "))[1]" },
	"MEDIAN": func(_ *parser, a *arguments, _ string) string {
		return "percentile_cont(0.5) WITHIN GROUP (ORDER BY " + a.sql() + ")"
	},
	"MODE": func(_ *parser, a *arguments, _ string) string {
		return "mode() WITHIN GROUP (ORDER BY " + a.sql() + ")"
	},
	"APPROX_PERCENTILE": func(p *parser, a *arguments, _ string) string {
		return "percentile_cont((" + p.argument(a, 1).sql + ")::float8) WITHIN GROUP (ORDER BY " + a.list[0].sql + ")"
	},
	"PERCENTILE_CONT": withinGroup("percentile_cont"), "PERCENTILE_DISC": withinGroup("percentile_disc"),
	"LISTAGG": func(p *parser, a *arguments, order string) string {
		separator := "''"
		if len(a.list) > 1 {
			separator = a.list[1].sql
		}
		value := textOf(p.argument(a, 0))
		if a.distinct && order != "" { // Postgres orders distinct values by themselves only
			descending := strings.HasSuffix(order, " DESC")
			if order = " ORDER BY " + value; descending {
				order += " DESC"
			}
		}
		return "coalesce(string_agg(" + distinct(a) + value + ", " + separator + order + "), '')"
	},
	"ARRAY_AGG": func(p *parser, a *arguments, order string) string {
		return "coalesce(jsonb_agg(" + distinct(a) + p.argument(a, 0).sql + order + "), '[]')"
	},
	"OBJECT_AGG": func(_ *parser, a *arguments, _ string) string { return "jsonb_object_agg(" + a.sql() + ")" },
}

func plainAggregate(postgres string) func(*parser, *arguments, string) string {
	return func(_ *parser, a *arguments, _ string) string {
		if len(a.list) == 1 && a.list[0].kind == path && (postgres != "min" && postgres != "max") {
			return postgres + "(" + distinct(a) + numberOf(a.list[0]) + ")"
		}
		return postgres + "(" + distinct(a) + a.sql() + ")"
	}
}

func withinGroup(postgres string) func(*parser, *arguments, string) string {
	return func(p *parser, a *arguments, order string) string {
		if order == "" {
			p.failf("Missing WITHIN GROUP (ORDER BY …) of function [%s].", strings.ToUpper(postgres))
		}
		return postgres + "((" + p.argument(a, 0).sql + ")::float8) WITHIN GROUP (" + order + ")"
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
		p.fail(plan.CompilationError("000938", "22023", "not enough arguments for function, got %d", len(a.list)))
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
	if p.query != nil {
		p.query.aggregate = true
	}
	return expr{sql: aggregates[function](p, a, order)}
}
