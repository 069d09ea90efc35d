package translate

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/snowsim/plan"
)

// Version is what CURRENT_VERSION() returns. Loadstone recognises the stand-in by it.
const Version = "10.0.0 snowsim"

// writer writes a call of a function that takes more than a template.
type writer func(p *parser, function string, a *arguments) expr

// specialFunctions returns the writers by function.
func specialFunctions() map[string]writer {
	special := map[string]writer{
		"RANDOM": random, "UNIFORM": uniform, "NORMAL": normal, "RANDSTR": randstr,
		"GREATEST": extreme, "LEAST": extreme, "CONCAT": concat, "CONCAT_WS": concatWS, "DECODE": decode,
		"DATE_TRUNC": dateTrunc, "TRUNC": trunc, "TRUNCATE": trunc,
		"TO_VARCHAR": toVarchar, "TO_CHAR": toVarchar,
		"LAST_QUERY_ID": lastQueryID, "IS_ROLE_IN_SESSION": isRoleInSession,
	}
	for _, f := range []string{"SEQ1", "SEQ2", "SEQ4", "SEQ8"} {
		special[f] = func(*parser, string, *arguments) expr { return expr{sql: rowMarker} }
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
}

// sessionFunctions tell of the session; nil is NULL.
var sessionFunctions = map[string]func(p *parser) any{
	"CURRENT_VERSION": func(*parser) any { return Version }, "CURRENT_CLIENT": func(*parser) any { return "snowsim" },
	"CURRENT_ACCOUNT":           func(p *parser) any { return orNull(p.session.Account) },
	"CURRENT_ACCOUNT_NAME":      func(p *parser) any { return orNull(p.session.Account) },
	"CURRENT_ORGANIZATION_NAME": func(*parser) any { return "SNOWSIM" },
	"CURRENT_REGION":            func(p *parser) any { return p.t.account.region() },
	"CURRENT_USER":              func(p *parser) any { return orNull(p.session.User) },
	"CURRENT_ROLE":              func(p *parser) any { return orNull(p.session.Role) },
	"CURRENT_ROLE_TYPE":         func(*parser) any { return "ROLE" },
	"CURRENT_SECONDARY_ROLES":   func(p *parser) any { return p.currentSecondaryRoles() },
	"CURRENT_AVAILABLE_ROLES":   func(p *parser) any { return jsonStrings(p.t.allRoles()) },
	"CURRENT_DATABASE":          func(p *parser) any { return orNull(p.session.Database) },
	"CURRENT_SCHEMA":            func(p *parser) any { return orNull(p.session.Schema) },
	"CURRENT_SCHEMAS": func(p *parser) any {
		return jsonStrings([]string{p.session.Database + "." + p.session.Schema})
	},
	"CURRENT_WAREHOUSE":  func(p *parser) any { return orNull(p.session.Warehouse) },
	"CURRENT_SESSION":    func(p *parser) any { return strconv.FormatInt(p.session.ID, 10) },
	"CURRENT_STATEMENT":  func(p *parser) any { return p.src },
	"CURRENT_IP_ADDRESS": func(*parser) any { return "127.0.0.1" },
	"CURRENT_TRANSACTION": func(p *parser) any {
		if p.session.Transaction {
			return strconv.FormatInt(p.session.ID, 10)
		}
		return nil
	},
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func jsonStrings(all []string) string {
	quotedAll := make([]string, len(all))
	for i, s := range all {
		quotedAll[i] = strconv.Quote(s)
	}
	return "[" + strings.Join(quotedAll, ",") + "]"
}

func sessionValue(p *parser, function string, _ *arguments) expr {
	p.volatile = true
	if value, ok := sessionFunctions[function](p).(string); ok {
		return expr{sql: literal(value) + "::text"}
	}
	return expr{sql: "NULL::text"}
}

// currentSecondaryRoles is JSON: the names, and what was chosen.
func (p *parser) currentSecondaryRoles() string {
	value := p.session.Parameters[secondaryRoles]
	if value == "NONE" {
		return `{"roles":"","value":""}`
	}
	if value == "" {
		value = "ALL"
	}
	names, err := json.Marshal(strings.Join(p.t.grants.secondary(p.session), ","))
	if err != nil { // a string is always marshalled
		panic(err)
	}
	return `{"roles":` + string(names) + `,"value":` + strconv.Quote(strings.ReplaceAll(value, "\x00", ",")) + `}`
}

// isRoleInSession writes IS_ROLE_IN_SESSION of a constant; those of columns are not had.
func isRoleInSession(p *parser, _ string, a *arguments) expr {
	p.volatile = true
	x := p.argument(a, 0)
	if x.kind != stringConstant {
		p.fail(plan.Unsupported("IS_ROLE_IN_SESSION of what is no constant"))
	}
	if p.t.RoleExists(x.text) && p.t.grants.inSession(p.session, x.text) {
		return expr{sql: "true"}
	}
	return expr{sql: "false"}
}

func lastQueryID(p *parser, _ string, _ *arguments) expr {
	p.volatile = true
	if p.session.LastQueryID == "" {
		return expr{sql: "NULL::text"}
	}
	return expr{sql: literal(p.session.LastQueryID) + "::text", kind: other, text: p.session.LastQueryID}
}

// clock writes the account's time, which is not Postgres's, as a constant.
func clock(p *parser, function string, _ *arguments) expr {
	if p.inDefault {
		return expr{sql: map[string]string{"SYSDATE": "(clock_timestamp() AT TIME ZONE 'UTC')",
			"CURRENT_DATE": "clock_timestamp()::date",
			"CURRENT_TIME": "clock_timestamp()::time", "LOCALTIME": "clock_timestamp()::time"}[function]}.or("clock_timestamp()")
	}
	p.volatile = true
	now := p.t.host.Now().UTC()
	const layout = "2006-01-02 15:04:05.000000"
	switch function {
	case "SYSDATE":
		return expr{sql: "timestamp '" + now.Format(layout) + "'"}
	case "CURRENT_DATE":
		return expr{sql: "(timestamptz '" + now.Format(layout) + "Z')::date"}
	case "CURRENT_TIME", "LOCALTIME":
		return expr{sql: "(timestamptz '" + now.Format(layout) + "Z')::time"}
	}
	return expr{sql: "timestamptz '" + now.Format(layout) + "Z'"}
}

func (e expr) or(sql string) expr {
	if e.sql == "" {
		e.sql = sql
	}
	return e
}

// random writes RANDOM([seed]): 64 bits, the same for the same seed and row.
func random(p *parser, _ string, a *arguments) expr {
	if len(a.list) == 0 {
		return expr{sql: "((random() - 0.5) * 1.8446744073709e19)::bigint"}
	}
	return expr{sql: "hashint8extended(" + rowMarker + ", (" + a.list[0].sql + ")::bigint)"}
}

func uniform(p *parser, _ string, a *arguments) expr {
	low, high, gen := p.argument(a, 0), p.argument(a, 1), p.argument(a, 2)
	if isInteger(low) && isInteger(high) {
		return expr{sql: "snowsim.uniform(" + low.sql + "::bigint, " + high.sql + "::bigint, (" + gen.sql + ")::bigint)"}
	}
	return expr{sql: "snowsim.uniform((" + low.sql + ")::float8, (" + high.sql + ")::float8, (" + gen.sql + ")::bigint)"}
}

func isInteger(e expr) bool {
	return e.kind == numberConstant && !strings.ContainsAny(e.text, ".eE") || e.kind == boundValue
}

func normal(p *parser, _ string, a *arguments) expr {
	return expr{sql: "snowsim.normal((" + p.argument(a, 0).sql + ")::float8, (" + p.argument(a, 1).sql + ")::float8, (" +
		p.argument(a, 2).sql + ")::bigint)"}
}

func randstr(p *parser, _ string, a *arguments) expr {
	return expr{sql: "snowsim.randstr((" + p.argument(a, 0).sql + ")::int, (" + p.argument(a, 1).sql + ")::bigint)"}
}

// extreme writes GREATEST and LEAST, which are NULL when an argument is.
func extreme(p *parser, function string, a *arguments) expr {
	p.argument(a, 0)
	var b strings.Builder
	for i, e := range a.list {
		if e.kind == numberConstant || e.kind == stringConstant {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(" OR ")
		}
		b.WriteString(a.list[i].sql + " IS NULL")
	}
	sql := strings.ToLower(function) + "(" + a.sql() + ")"
	if b.Len() > 0 {
		sql = "(CASE WHEN " + b.String() + " THEN NULL ELSE " + sql + " END)"
	}
	return expr{sql: sql}
}

func concat(p *parser, _ string, a *arguments) expr {
	p.argument(a, 0)
	all := make([]string, len(a.list))
	for i, e := range a.list {
		all[i] = textOf(e)
	}
	return expr{sql: "(" + strings.Join(all, " || ") + ")"}
}

func concatWS(p *parser, _ string, a *arguments) expr {
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
	return expr{sql: "(" + strings.Join(all, " || ") + ")"}
}

func decode(p *parser, _ string, a *arguments) expr {
	p.argument(a, 2)
	var b strings.Builder
	b.WriteString("(CASE")
	i := 1
	for ; i+1 < len(a.list); i += 2 {
		b.WriteString(" WHEN " + a.list[0].sql + " IS NOT DISTINCT FROM " + a.list[i].sql + " THEN " + a.list[i+1].sql)
	}
	if i < len(a.list) {
		b.WriteString(" ELSE " + a.list[i].sql)
	}
	return expr{sql: b.String() + " END)"}
}

// dateOperand writes a date or timestamp; text is read as a timestamp.
func dateOperand(e expr) string {
	if e.kind == stringConstant || e.kind == boundValue && e.text == "" {
		return e.sql + "::timestamp"
	}
	return e.sql
}

// intervals are the parts that DATEADD adds, as intervals.
var intervals = map[string]string{"year": "1 year", "quarter": "3 months", "month": "1 month", "week": "7 days",
	"weekiso": "7 days", "day": "1 day",
	"dow": "1 day", "doy": "1 day", "hour": "1 hour", "minute": "1 minute", "second": "1 second",
	"millisecond": "1 millisecond",
	"microsecond": "1 microsecond", "nanosecond": ""}

func dateAdd(p *parser, _ string, a *arguments) expr {
	part, n, at := p.argument(a, 0), p.argument(a, 1), p.argument(a, 2)
	unit, ok := intervals[part.text]
	if !ok {
		p.failf("'%s' is not a valid date/time component for DATEADD.", part.text)
	}
	function := "snowsim.date_add"
	switch part.text {
	case "hour", "minute", "second", "millisecond", "microsecond", "nanosecond":
		function = "snowsim.time_add"
	}
	amount := "round((" + n.sql + ")::numeric)::float8"
	if part.text == "nanosecond" {
		unit, amount = "1 microsecond", "("+amount+" / 1000)"
	}
	return expr{sql: function + "(" + dateOperandOf(p, at) + ", " + amount + " * interval '" + unit + "')"}
}

// dateOperandOf is dateOperand for any expression: a bind of unknown type is a timestamp.
func dateOperandOf(p *parser, e expr) string {
	if e.kind == boundValue && !p.untyped(e) {
		return e.sql
	}
	return dateOperand(e)
}

// untyped reports whether a bound value has the type of its context.
func (p *parser) untyped(e expr) bool {
	n, err := strconv.Atoi(strings.TrimPrefix(e.sql, "$"))
	return err != nil || n < 1 || n > len(p.params) || p.params[n-1].OID == 0
}

func dateDiff(p *parser, _ string, a *arguments) expr {
	part := p.argument(a, 0)
	return expr{sql: "snowsim.datediff(" + part.sql + ", " + dateOperandOf(p, p.argument(a, 1)) + "::timestamp, " +
		dateOperandOf(p, p.argument(a, 2)) + "::timestamp)"}
}

func dateTrunc(p *parser, _ string, a *arguments) expr {
	return truncated(p.argument(a, 0).text, dateOperandOf(p, p.argument(a, 1)))
}

func truncated(part, operand string) expr {
	if part == "weekiso" {
		part = "week"
	}
	return expr{sql: "snowsim.date_trunc('" + part + "', " + operand + ")"}
}

// trunc writes TRUNC of numbers, and of dates when a date part follows.
func trunc(p *parser, _ string, a *arguments) expr {
	x := p.argument(a, 0)
	if len(a.list) == 1 {
		return expr{sql: "trunc((" + x.sql + ")::numeric)"}
	}
	if by := a.list[1]; by.kind == stringConstant || by.kind == column {
		if part := dateParts[strings.ToUpper(by.text)]; part != "" {
			return truncated(part, dateOperandOf(p, x))
		}
	}
	return expr{sql: "trunc((" + x.sql + ")::numeric, (" + a.list[1].sql + ")::int)"}
}

func toVarchar(p *parser, _ string, a *arguments) expr {
	x := p.argument(a, 0)
	if len(a.list) == 1 {
		return expr{sql: textOf(x)}
	}
	return expr{sql: "to_char(" + x.sql + ", " + p.format(a.list[1]) + ")"}
}

// format writes a format of Snowflake's as Postgres has it.
func (p *parser) format(e expr) string {
	if e.kind != stringConstant {
		p.fail(plan.Unsupported("a format that is no constant"))
	}
	return literal(formats.Replace(strings.ToUpper(e.text)))
}

var formats = strings.NewReplacer("FF3", "MS", "FF6", "US", "FF9", "US", "FF", "US", "AUTO", "YYYY-MM-DD HH24:MI:SS",
	"TZHTZM", "TZHTZM",
	"TZH:TZM", "TZH:TZM", "HH24", "HH24", "MON", "Mon", "DY", "Dy", "\"T\"", "\"T\"")

// convert writes TO_… and TRY_TO_… functions.
func convert(to string, try bool) writer {
	return func(p *parser, function string, a *arguments) expr {
		x := p.argument(a, 0)
		target := dataType{name: to,
			postgres: map[string]string{"NUMBER": "numeric", "FLOAT": "double precision", "BOOLEAN": "boolean", "DATE": "date",
				"TIME": "time", "TIMESTAMP_NTZ": "timestamp", "TIMESTAMP_LTZ": "timestamptz",
				"TIMESTAMP_TZ": "snowsim.timestamp_tz",
				"BINARY":       "bytea"}[to]}
		rest := a.list[1:]
		if to == "NUMBER" {
			precision, scale := "38", "0"
			if len(rest) > 0 && rest[0].kind == stringConstant {
				x = expr{sql: "to_number(" + textOf(x) + ", " + p.format(rest[0]) + ")"}
				rest = rest[1:]
			}
			if len(rest) > 0 {
				precision = rest[0].text
			}
			if len(rest) > 1 {
				scale = rest[1].text
			}
			if _, err := strconv.ParseUint(precision+scale, 10, 32); err != nil {
				p.failf("Invalid precision or scale for function [%s].", function)
			}
			target.postgres = "numeric(" + precision + "," + scale + ")"
		}
		if try {
			return tryCast(x, target)
		}
		switch {
		case len(rest) > 0 && strings.HasPrefix(to, "TIMESTAMP") && rest[0].kind == numberConstant:
			scale, err := strconv.Atoi(rest[0].text)
			if err != nil || scale < 0 || scale > 9 {
				p.failf("Invalid scale for function [%s].", function)
			}
			x = expr{sql: "((" + x.sql + ")::numeric / 1e" + strconv.Itoa(scale) + ")"}
		case len(rest) > 0 && strings.HasPrefix(to, "TIMESTAMP"):
			x = expr{sql: "to_timestamp(" + textOf(x) + ", " + p.format(rest[0]) + ")"}
		case len(rest) > 0 && to == "DATE":
			return expr{sql: "to_date(" + textOf(x) + ", " + p.format(rest[0]) + ")"}
		}
		if x.kind == numberConstant && to != "NUMBER" && to != "FLOAT" {
			x = expr{sql: x.sql + "::numeric"}
		}
		if strings.HasPrefix(to, "TIMESTAMP") && (x.kind == stringConstant || x.kind == boundValue && p.untyped(x)) {
			x = expr{sql: x.sql + "::text"} // which may be a number of seconds
		} else if x.kind == boundValue && !p.untyped(x) {
			x = expr{sql: x.sql}
		}
		return cast(x, target)
	}
}
