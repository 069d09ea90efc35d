package translate

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// Version is what CURRENT_VERSION() returns. Loadstone recognises the stand-in by it.
const Version = "10.0.0 snowsim"

// writer writes a call of a function that takes more than a template.
type writer func(p *Parser, function string, a *arguments) Expr

// special are the writers by function.
var special = func() map[string]writer {
	special := map[string]writer{
		"RANDOM": random, "UNIFORM": uniform, "NORMAL": normal, "RANDSTR": randstr,
		"GREATEST": extreme, "LEAST": extreme, "CONCAT": concat, "CONCAT_WS": concatWS, "DECODE": decode,
		"DATE_TRUNC": dateTrunc, "TRUNC": trunc, "TRUNCATE": trunc,
		"TO_VARCHAR": toVarchar, "TO_CHAR": toVarchar,
		"LAST_QUERY_ID": lastQueryID, "IS_ROLE_IN_SESSION": isRoleInSession,
	}
	for _, f := range []string{"SEQ1", "SEQ2", "SEQ4", "SEQ8"} {
		special[f] = func(*Parser, string, *arguments) Expr { return Expr{SQL: RowMarker} }
	}
	for _, f := range []string{"DATEADD", "TIMEADD", "TIMESTAMPADD"} {
		special[f] = dateAdd
	}
	for _, f := range []string{"DATEDIFF", "TIMEDIFF", "TIMESTAMPDIFF"} {
		special[f] = dateDiff
	}
	for function, name := range map[string]string{"TO_NUMBER": "NUMBER", "TO_DECIMAL": "NUMBER", "TO_NUMERIC": "NUMBER",
		"TO_DOUBLE":  "FLOAT",
		"TO_BOOLEAN": "BOOLEAN", "TO_DATE": "DATE", "DATE": "DATE", "TO_TIME": "TIME", "TIME": "TIME",
		"TO_TIMESTAMP":     "TIMESTAMP_NTZ",
		"TO_TIMESTAMP_NTZ": "TIMESTAMP_NTZ", "TO_TIMESTAMP_LTZ": "TIMESTAMP_LTZ", "TO_TIMESTAMP_TZ": "TIMESTAMP_TZ",
		"TO_BINARY": "BINARY"} {
		special[function] = convert(name, false)
		special["TRY_"+function] = convert(name, true)
	}
	for _, f := range []string{"CURRENT_TIMESTAMP", "SYSTIMESTAMP", "GETDATE", "LOCALTIMESTAMP", "SYSDATE", "CURRENT_DATE",
		"CURRENT_TIME", "LOCALTIME"} {
		special[f] = clock
	}
	for f := range sessionFunctions {
		special[f] = sessionValue
	}
	return special
}()

// sessionFunctions tell of the session; nil is NULL.
var sessionFunctions = map[string]func(p *Parser) any{
	"CURRENT_VERSION": func(*Parser) any { return Version }, "CURRENT_CLIENT": func(*Parser) any { return "snowsim" },
	"CURRENT_ACCOUNT":           func(p *Parser) any { return OrNull(p.Session.Account) },
	"CURRENT_ACCOUNT_NAME":      func(p *Parser) any { return OrNull(p.Session.Account) },
	"CURRENT_ORGANIZATION_NAME": func(*Parser) any { return "SNOWSIM" },
	"CURRENT_REGION":            func(p *Parser) any { return p.Account.Contract.CurrentRegion() },
	"CURRENT_USER":              func(p *Parser) any { return OrNull(p.Session.User) },
	"CURRENT_ROLE":              func(p *Parser) any { return OrNull(p.Session.Role) },
	"CURRENT_ROLE_TYPE":         func(*Parser) any { return "ROLE" },
	"CURRENT_SECONDARY_ROLES":   func(p *Parser) any { return p.currentSecondaryRoles() },
	"CURRENT_AVAILABLE_ROLES":   func(p *Parser) any { return jsonStrings(p.Account.AllRoles()) },
	"CURRENT_DATABASE":          func(p *Parser) any { return OrNull(p.Session.Database) },
	"CURRENT_SCHEMA":            func(p *Parser) any { return OrNull(p.Session.Schema) },
	"CURRENT_SCHEMAS": func(p *Parser) any {
		return jsonStrings([]string{p.Session.Database + "." + p.Session.Schema})
	},
	"CURRENT_WAREHOUSE":  func(p *Parser) any { return OrNull(p.Session.Warehouse) },
	"CURRENT_SESSION":    func(p *Parser) any { return strconv.FormatInt(p.Session.ID, 10) },
	"CURRENT_STATEMENT":  func(p *Parser) any { return p.Text },
	"CURRENT_IP_ADDRESS": func(*Parser) any { return "127.0.0.1" },
	"CURRENT_TRANSACTION": func(p *Parser) any {
		if p.Session.Transaction {
			return strconv.FormatInt(p.Session.ID, 10)
		}
		return nil
	},
}

func jsonStrings(all []string) string {
	quotedAll := make([]string, len(all))
	for i, s := range all {
		quotedAll[i] = strconv.Quote(s)
	}
	return "[" + strings.Join(quotedAll, ",") + "]"
}

func sessionValue(p *Parser, function string, _ *arguments) Expr {
	p.Volatile = true
	if value, ok := sessionFunctions[function](p).(string); ok {
		return Expr{SQL: Literal(value) + "::text"}
	}
	return Expr{SQL: "NULL::text"}
}

// currentSecondaryRoles is JSON: the names, and what was chosen.
func (p *Parser) currentSecondaryRoles() string {
	value := p.Session.Parameters[SecondaryRoles]
	if value == "NONE" {
		return `{"roles":"","value":""}`
	}
	if value == "" {
		value = "ALL"
	}
	names, err := json.Marshal(strings.Join(p.Account.Grants.Secondary(p.Session), ","))
	if err != nil { // a string is always marshalled
		panic(err)
	}
	return `{"roles":` + string(names) + `,"value":` + strconv.Quote(strings.ReplaceAll(value, "\x00", ",")) + `}`
}

// isRoleInSession writes IS_ROLE_IN_SESSION of a constant; those of columns are not had.
func isRoleInSession(p *Parser, _ string, a *arguments) Expr {
	p.Volatile = true
	x := p.argument(a, 0)
	if x.Kind != StringConstant {
		p.Fail(protocol.NotSimulated("IS_ROLE_IN_SESSION of what is no constant"))
	}
	if p.Account.RoleExists(x.Text) && p.Account.Grants.InSession(p.Session, x.Text) {
		return Expr{SQL: "true"}
	}
	return Expr{SQL: "false"}
}

func lastQueryID(p *Parser, _ string, _ *arguments) Expr {
	p.Volatile = true
	if p.Session.LastQueryID == "" {
		return Expr{SQL: "NULL::text"}
	}
	return Expr{SQL: Literal(p.Session.LastQueryID) + "::text", Kind: other, Text: p.Session.LastQueryID}
}

// clock writes the account's time, which is not Postgres's, as a constant.
func clock(p *Parser, function string, _ *arguments) Expr {
	if p.InDefault {
		return Expr{SQL: map[string]string{"SYSDATE": "(clock_timestamp() AT TIME ZONE 'UTC')",
			"CURRENT_DATE": "clock_timestamp()::date",
			"CURRENT_TIME": "clock_timestamp()::time", "LOCALTIME": "clock_timestamp()::time"}[function]}.or("clock_timestamp()")
	}
	p.Volatile = true
	now := p.Account.Host.Now().UTC()
	const layout = "2006-01-02 15:04:05.000000"
	switch function {
	case "SYSDATE":
		return Expr{SQL: "timestamp '" + now.Format(layout) + "'"}
	case "CURRENT_DATE":
		return Expr{SQL: "(timestamptz '" + now.Format(layout) + "Z')::date"}
	case "CURRENT_TIME", "LOCALTIME":
		return Expr{SQL: "(timestamptz '" + now.Format(layout) + "Z')::time"}
	}
	return Expr{SQL: "timestamptz '" + now.Format(layout) + "Z'"}
}

func (e Expr) or(sql string) Expr {
	if e.SQL == "" {
		e.SQL = sql
	}
	return e
}

// random writes RANDOM([seed]): 64 bits, the same for the same seed and row.
func random(p *Parser, _ string, a *arguments) Expr {
	if len(a.list) == 0 {
		return Expr{SQL: "((random() - 0.5) * 1.8446744073709e19)::bigint"}
	}
	return Expr{SQL: "hashint8extended(" + RowMarker + ", (" + a.list[0].SQL + ")::bigint)"}
}

func uniform(p *Parser, _ string, a *arguments) Expr {
	low, high, gen := p.argument(a, 0), p.argument(a, 1), p.argument(a, 2)
	if isInteger(low) && isInteger(high) {
		return Expr{SQL: "snowsim.uniform(" + low.SQL + "::bigint, " + high.SQL + "::bigint, (" + gen.SQL + ")::bigint)"}
	}
	return Expr{SQL: "snowsim.uniform((" + low.SQL + ")::float8, (" + high.SQL + ")::float8, (" + gen.SQL + ")::bigint)"}
}

func isInteger(e Expr) bool {
	return e.Kind == NumberConstant && !strings.ContainsAny(e.Text, ".eE") || e.Kind == BoundValue
}

func normal(p *Parser, _ string, a *arguments) Expr {
	return Expr{SQL: "snowsim.normal((" + p.argument(a, 0).SQL + ")::float8, (" + p.argument(a, 1).SQL + ")::float8, (" +
		p.argument(a, 2).SQL + ")::bigint)"}
}

func randstr(p *Parser, _ string, a *arguments) Expr {
	return Expr{SQL: "snowsim.randstr((" + p.argument(a, 0).SQL + ")::int, (" + p.argument(a, 1).SQL + ")::bigint)"}
}

// extreme writes GREATEST and LEAST, which are NULL when an argument is.
func extreme(p *Parser, function string, a *arguments) Expr {
	p.argument(a, 0)
	var b strings.Builder
	for i, e := range a.list {
		if e.Kind == NumberConstant || e.Kind == StringConstant {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(" OR ")
		}
		b.WriteString(a.list[i].SQL + " IS NULL")
	}
	sql := strings.ToLower(function) + "(" + a.sql() + ")"
	if b.Len() > 0 {
		sql = "(CASE WHEN " + b.String() + " THEN NULL ELSE " + sql + " END)"
	}
	return Expr{SQL: sql}
}

func concat(p *Parser, _ string, a *arguments) Expr {
	p.argument(a, 0)
	all := make([]string, len(a.list))
	for i, e := range a.list {
		all[i] = textOf(e)
	}
	return Expr{SQL: "(" + strings.Join(all, " || ") + ")"}
}

func concatWS(p *Parser, _ string, a *arguments) Expr {
	p.argument(a, 1)
	all := make([]string, 0, 2*len(a.list))
	for i, e := range a.list {
		if i > 1 {
			all = append(all, textOf(a.list[0]))
		}
		if i > 0 {
			all = append(all, textOf(e))
		}
	}
	return Expr{SQL: "(" + strings.Join(all, " || ") + ")"}
}

func decode(p *Parser, _ string, a *arguments) Expr {
	p.argument(a, 2)
	var b strings.Builder
	b.WriteString("(CASE")
	i := 1
	for ; i+1 < len(a.list); i += 2 {
		b.WriteString(" WHEN " + a.list[0].SQL + " IS NOT DISTINCT FROM " + a.list[i].SQL + " THEN " + a.list[i+1].SQL)
	}
	if i < len(a.list) {
		b.WriteString(" ELSE " + a.list[i].SQL)
	}
	return Expr{SQL: b.String() + " END)"}
}

// dateOperand writes a date or timestamp; text is read as a timestamp.
func dateOperand(e Expr) string {
	if e.Kind == StringConstant || e.Kind == BoundValue && e.Text == "" {
		return e.SQL + "::timestamp"
	}
	return e.SQL
}

// intervals are the parts that DATEADD adds, as intervals.
var intervals = map[string]string{"year": "1 year", "quarter": "3 months", "month": "1 month", "week": "7 days",
	"weekiso": "7 days", "day": "1 day",
	"dow": "1 day", "doy": "1 day", "hour": "1 hour", "minute": "1 minute", "second": "1 second",
	"millisecond": "1 millisecond",
	"microsecond": "1 microsecond", "nanosecond": ""}

func dateAdd(p *Parser, _ string, a *arguments) Expr {
	part, n, at := p.argument(a, 0), p.argument(a, 1), p.argument(a, 2)
	unit, ok := intervals[part.Text]
	if !ok {
		p.Failf("'%s' is not a valid date/time component for DATEADD.", part.Text)
	}
	function := "snowsim.date_add"
	switch part.Text {
	case "hour", "minute", "second", "millisecond", "microsecond", "nanosecond":
		function = "snowsim.time_add"
	}
	amount := "round((" + n.SQL + ")::numeric)::float8"
	if part.Text == "nanosecond" {
		unit, amount = "1 microsecond", "("+amount+" / 1000)"
	}
	return Expr{SQL: function + "(" + dateOperandOf(p, at) + ", " + amount + " * interval '" + unit + "')"}
}

// dateOperandOf is dateOperand for any expression: a bind of unknown type is a timestamp.
func dateOperandOf(p *Parser, e Expr) string {
	if e.Kind == BoundValue && !p.untyped(e) {
		return e.SQL
	}
	return dateOperand(e)
}

// untyped reports whether a bound value has the type of its context.
func (p *Parser) untyped(e Expr) bool {
	n, err := strconv.Atoi(strings.TrimPrefix(e.SQL, "$"))
	return err != nil || n < 1 || n > len(p.Params) || p.Params[n-1].OID == 0
}

func dateDiff(p *Parser, _ string, a *arguments) Expr {
	part := p.argument(a, 0)
	return Expr{SQL: "snowsim.datediff(" + part.SQL + ", " + dateOperandOf(p, p.argument(a, 1)) + "::timestamp, " +
		dateOperandOf(p, p.argument(a, 2)) + "::timestamp)"}
}

func dateTrunc(p *Parser, _ string, a *arguments) Expr {
	return truncated(p.argument(a, 0).Text, dateOperandOf(p, p.argument(a, 1)))
}

func truncated(part, operand string) Expr {
	if part == "weekiso" {
		part = "week"
	}
	return Expr{SQL: "snowsim.date_trunc('" + part + "', " + operand + ")"}
}

// trunc writes TRUNC of numbers, and of dates when a date part follows.
func trunc(p *Parser, _ string, a *arguments) Expr {
	x := p.argument(a, 0)
	if len(a.list) == 1 {
		return Expr{SQL: "trunc((" + x.SQL + ")::numeric)"}
	}
	if by := a.list[1]; by.Kind == StringConstant || by.Kind == ColumnReference {
		if part := dateParts[strings.ToUpper(by.Text)]; part != "" {
			return truncated(part, dateOperandOf(p, x))
		}
	}
	return Expr{SQL: "trunc((" + x.SQL + ")::numeric, (" + a.list[1].SQL + ")::int)"}
}

func toVarchar(p *Parser, _ string, a *arguments) Expr {
	x := p.argument(a, 0)
	if len(a.list) == 1 {
		return Expr{SQL: textOf(x)}
	}
	return Expr{SQL: "to_char(" + x.SQL + ", " + p.format(a.list[1]) + ")"}
}

// format writes a format of Snowflake's as Postgres has it.
func (p *Parser) format(e Expr) string {
	if e.Kind != StringConstant {
		p.Fail(protocol.NotSimulated("a format that is no constant"))
	}
	return Literal(formats.Replace(strings.ToUpper(e.Text)))
}

var formats = strings.NewReplacer("FF3", "MS", "FF6", "US", "FF9", "US", "FF", "US", "AUTO", "YYYY-MM-DD HH24:MI:SS",
	"TZHTZM", "TZHTZM",
	"TZH:TZM", "TZH:TZM", "HH24", "HH24", "MON", "Mon", "DY", "Dy", "\"T\"", "\"T\"")

// convert writes TO_… and TRY_TO_… functions.
func convert(to string, try bool) writer {
	return func(p *Parser, function string, a *arguments) Expr {
		x := p.argument(a, 0)
		target := Type{Name: to,
			Postgres: map[string]string{"NUMBER": "numeric", "FLOAT": "double precision", "BOOLEAN": "boolean", "DATE": "date",
				"TIME": "time", "TIMESTAMP_NTZ": "timestamp", "TIMESTAMP_LTZ": "timestamptz",
				"TIMESTAMP_TZ": "snowsim.timestamp_tz",
				"BINARY":       "bytea"}[to]}
		rest := a.list[1:]
		if to == "NUMBER" {
			precision, scale := "38", "0"
			if len(rest) > 0 && rest[0].Kind == StringConstant {
				x = Expr{SQL: "to_number(" + textOf(x) + ", " + p.format(rest[0]) + ")"}
				rest = rest[1:]
			}
			if len(rest) > 0 {
				precision = rest[0].Text
			}
			if len(rest) > 1 {
				scale = rest[1].Text
			}
			if _, err := strconv.ParseUint(precision+scale, 10, 32); err != nil {
				p.Failf("Invalid precision or scale for function [%s].", function)
			}
			target.Postgres = "numeric(" + precision + "," + scale + ")"
		}
		if try {
			return tryCast(x, target)
		}
		switch {
		case len(rest) > 0 && strings.HasPrefix(to, "TIMESTAMP") && rest[0].Kind == NumberConstant:
			scale, err := strconv.Atoi(rest[0].Text)
			if err != nil || scale < 0 || scale > 9 {
				p.Failf("Invalid scale for function [%s].", function)
			}
			x = Expr{SQL: "((" + x.SQL + ")::numeric / 1e" + strconv.Itoa(scale) + ")"}
		case len(rest) > 0 && strings.HasPrefix(to, "TIMESTAMP"):
			x = Expr{SQL: "to_timestamp(" + textOf(x) + ", " + p.format(rest[0]) + ")"}
		case len(rest) > 0 && to == "DATE":
			return Expr{SQL: "to_date(" + textOf(x) + ", " + p.format(rest[0]) + ")"}
		}
		if x.Kind == NumberConstant && to != "NUMBER" && to != "FLOAT" {
			x = Expr{SQL: x.SQL + "::numeric"}
		}
		if strings.HasPrefix(to, "TIMESTAMP") && (x.Kind == StringConstant || x.Kind == BoundValue && p.untyped(x)) {
			x = Expr{SQL: x.SQL + "::text"} // which may be a number of seconds
		} else if x.Kind == BoundValue && !p.untyped(x) {
			x = Expr{SQL: x.SQL}
		}
		return cast(x, target)
	}
}
