package translate

import (
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// arguments are what stands between a function's parentheses.
type arguments struct {
	list     []Expr
	named    map[string]Expr // FILTER => …
	distinct bool
	star     bool // f(*)
}

// sql returns all arguments with commas between.
func (a *arguments) sql() string {
	all := make([]string, len(a.list))
	for i, e := range a.list {
		all[i] = e.SQL
	}
	return strings.Join(all, ", ")
}

// arguments reads "( … )" after a function's name.
func (p *Parser) arguments(function string) *arguments {
	a := &arguments{}
	p.InParentheses(func() {
		switch {
		case p.IsSymbol(")"):
			return
		case p.AcceptSymbol("*"):
			a.star = true
			return
		case function == "EXTRACT":
			a.list = append(a.list, p.datePart())
			p.Expect("FROM")
			a.list = append(a.list, p.Expression())
			return
		case p.Accept("DISTINCT"):
			a.distinct = true
		case p.Accept("ALL"):
		case p.IsAny("SELECT", "WITH"):
			a.list = append(a.list, Expr{SQL: "(" + p.selectStatement() + ")"})
			return
		}
		for {
			if n := p.PeekAt(1); n.Kind == Symbol && n.Text == "=>" {
				key := p.AnyIdentifier()
				p.Advance(1)
				if a.named == nil {
					a.named = map[string]Expr{}
				}
				a.named[key] = p.Expression()
			} else if len(a.list) == 0 && datePartFirst[function] {
				a.list = append(a.list, p.datePart())
			} else if function == "POSITION" && len(a.list) == 0 {
				a.list = append(a.list, p.sum())
				if p.Accept("IN") {
					a.list = append(a.list, p.Expression())
				}
			} else {
				a.list = append(a.list, p.Expression())
			}
			if !p.AcceptSymbol(",") {
				return
			}
		}
	})
	return a
}

// datePartFirst are the functions whose first argument is a date part, which may
// be a bare word.
var datePartFirst = Words(
	"DATEADD TIMEADD TIMESTAMPADD DATEDIFF TIMEDIFF TIMESTAMPDIFF DATE_TRUNC DATE_PART EXTRACT")

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
func (p *Parser) datePart() Expr {
	t := p.Next()
	part := ""
	if t.Kind == Word || t.Kind == Text || t.Kind == Quoted {
		part = dateParts[strings.ToUpper(t.Text)]
	}
	if part == "" {
		p.Advance(-1)
		p.Fail(protocol.CompilationError("001076", "42601", "'%s' is not a valid date/time component.", p.Written(t)))
	}
	return Expr{SQL: Literal(part), Kind: StringConstant, Text: part}
}

// call writes a call of a function whose arguments were read, with what may follow them.
func (p *Parser) call(function string, a *arguments) Expr {
	if a == nil {
		a = &arguments{}
	}
	if len(a.named) > 0 {
		p.Failf("Function %s does not take named arguments.", function)
	}
	var e Expr
	switch f := functions[function]; {
	case aggregates[function] != nil:
		e = p.aggregate(function, a)
	case windowFunctions[function] != "":
		sql := windowFunctions[function] + "(" + a.sql() + ")"
		if !p.Is("OVER") && !p.Is("IGNORE") && !p.Is("RESPECT") {
			p.Fail(protocol.CompilationError("002303", "42601", "Missing window specification for window function [%s].", function))
		}
		e = Expr{SQL: sql}
	case special[function] != nil:
		e = special[function](p, function, a)
	case f != "":
		e = Expr{SQL: p.expand(function, f, a)}
		if jsonFunctions[function] {
			e.Kind = path
		}
	default:
		p.Fail(protocol.CompilationError("002140", "42601", "Unknown function %s.", function))
	}
	return p.over(function, e)
}

// expand fills in a function's template: {1} is the first argument, {1t} the
// first as text, {1i} as integer, {1n} as number, {*} all of them. A template is
// chosen among those that bars separate by the number of arguments.
func (p *Parser) expand(function, templates string, a *arguments) string {
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
		p.Fail(protocol.CompilationError("000938", "22023", "not enough arguments for function [%s]", function))
	}
	p.Fail(protocol.CompilationError("000939", "22023", "wrong number of arguments for function [%s(%s)], got %d",
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
		if e.Kind == NumberConstant {
			return e.SQL
		}
		return "(" + e.SQL + ")::int"
	case "n":
		return "(" + e.SQL + ")::numeric"
	case "d": // a date or timestamp; text is read as a timestamp
		if e.Kind == StringConstant {
			return e.SQL + "::timestamp"
		}
		return e.SQL
	}
	return e.SQL
}

// over reads what may follow a call: IGNORE NULLS and OVER.
func (p *Parser) over(function string, e Expr) Expr {
	p.Accept("RESPECT", "NULLS")
	if p.Is("IGNORE", "NULLS") {
		p.Fail(protocol.NotSimulated("IGNORE NULLS"))
	}
	if !p.Accept("OVER") {
		return e
	}
	p.Aggregated = false // over a window, it does not group
	sql := ""
	p.InParentheses(func() { sql = p.window(function) })
	return Expr{SQL: e.SQL + " OVER (" + sql + ")"}
}

func (p *Parser) window(function string) string {
	var b strings.Builder
	if p.Accept("PARTITION", "BY") {
		b.WriteString("PARTITION BY " + p.List(p.SQL) + " ")
	}
	ordered := p.Accept("ORDER", "BY")
	if ordered {
		b.WriteString("ORDER BY " + p.List(p.Ordering) + " ")
	}
	switch {
	case p.IsAny("ROWS", "RANGE"):
		b.WriteString(p.Next().Text + " ")
		if p.Accept("BETWEEN") {
			b.WriteString("BETWEEN " + p.frameBound())
			p.Expect("AND")
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

func (p *Parser) frameBound() string {
	switch {
	case p.Accept("CURRENT", "ROW"):
		return "CURRENT ROW"
	case p.Accept("UNBOUNDED", "PRECEDING"):
		return "UNBOUNDED PRECEDING"
	case p.Accept("UNBOUNDED", "FOLLOWING"):
		return "UNBOUNDED FOLLOWING"
	}
	n := strconv.FormatInt(p.Integer(), 10)
	if p.Accept("PRECEDING") {
		return n + " PRECEDING"
	}
	p.Expect("FOLLOWING")
	return n + " FOLLOWING"
}

// Ordering reads one item of ORDER BY.
func (p *Parser) Ordering() string {
	sql := p.SQL()
	if p.IsAny("ASC", "DESC") {
		sql += " " + p.Next().Text
	}
	if p.Accept("NULLS") {
		if !p.IsAny("FIRST", "LAST") {
			p.Unexpected()
		}
		sql += " NULLS " + p.Next().Text
	}
	return sql
}

// aggregates write the SQL of an aggregate; order is what WITHIN GROUP says.
var aggregates = map[string]func(p *Parser, a *arguments, order string) string{
	"COUNT": func(_ *Parser, a *arguments, _ string) string {
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
	"COUNT_IF": func(_ *Parser, a *arguments, _ string) string {
		return "count(*) FILTER (WHERE " + a.sql() + ")"
	},
	"APPROX_COUNT_DISTINCT": func(_ *Parser, a *arguments, _ string) string { return "count(DISTINCT " + a.sql() + ")" },
	"HLL":                   func(_ *Parser, a *arguments, _ string) string { return "count(DISTINCT " + a.sql() + ")" },
	"ANY_VALUE":             func(_ *Parser, a *arguments, _ string) string { return "(array_agg(" + a.sql() + "))[1]" },
	"MEDIAN": func(_ *Parser, a *arguments, _ string) string {
		return "percentile_cont(0.5) WITHIN GROUP (ORDER BY " + a.sql() + ")"
	},
	"MODE": func(_ *Parser, a *arguments, _ string) string {
		return "mode() WITHIN GROUP (ORDER BY " + a.sql() + ")"
	},
	"APPROX_PERCENTILE": func(p *Parser, a *arguments, _ string) string {
		return "percentile_cont((" + p.argument(a, 1).SQL + ")::float8) WITHIN GROUP (ORDER BY " + a.list[0].SQL + ")"
	},
	"PERCENTILE_CONT": withinGroup("percentile_cont"), "PERCENTILE_DISC": withinGroup("percentile_disc"),
	"LISTAGG": func(p *Parser, a *arguments, order string) string {
		separator := "''"
		if len(a.list) > 1 {
			separator = a.list[1].SQL
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
	"ARRAY_AGG": func(p *Parser, a *arguments, order string) string {
		return "coalesce(jsonb_agg(" + distinct(a) + p.argument(a, 0).SQL + order + "), '[]')"
	},
	"OBJECT_AGG": func(_ *Parser, a *arguments, _ string) string { return "jsonb_object_agg(" + a.sql() + ")" },
}

func plainAggregate(postgres string) func(*Parser, *arguments, string) string {
	return func(_ *Parser, a *arguments, _ string) string {
		if len(a.list) == 1 && a.list[0].Kind == path && (postgres != "min" && postgres != "max") {
			return postgres + "(" + distinct(a) + numberOf(a.list[0]) + ")"
		}
		return postgres + "(" + distinct(a) + a.sql() + ")"
	}
}

func withinGroup(postgres string) func(*Parser, *arguments, string) string {
	return func(p *Parser, a *arguments, order string) string {
		if order == "" {
			p.Failf("Missing WITHIN GROUP (ORDER BY …) of function [%s].", strings.ToUpper(postgres))
		}
		return postgres + "((" + p.argument(a, 0).SQL + ")::float8) WITHIN GROUP (" + order + ")"
	}
}

func distinct(a *arguments) string {
	if a.distinct {
		return "DISTINCT "
	}
	return ""
}

// argument returns an argument that must be there.
func (p *Parser) argument(a *arguments, i int) Expr {
	if i >= len(a.list) {
		p.Fail(protocol.CompilationError("000938", "22023", "not enough arguments for function, got %d", len(a.list)))
	}
	return a.list[i]
}

func (p *Parser) aggregate(function string, a *arguments) Expr {
	if len(a.list) == 0 && !a.star {
		p.argument(a, 0)
	}
	if a.star && function != "COUNT" {
		p.Failf("Function %s does not take *.", function)
	}
	order := ""
	if p.Accept("WITHIN", "GROUP") {
		p.InParentheses(func() {
			p.Expect("ORDER", "BY")
			order = " ORDER BY " + p.List(p.Ordering)
		})
	}
	p.Aggregated = true
	return Expr{SQL: aggregates[function](p, a, order)}
}
