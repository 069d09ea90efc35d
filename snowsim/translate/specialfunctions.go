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
type writer func(p *parser, function string, a *arguments) expr

// special are the writers by function.
var special = func() map[string]writer {
	special := map[string]writer{
		"RANDSTR": randstr, "GREATEST": extreme, "LEAST": extreme, "CONCAT_WS": concatWS,
		"DATEADD": dateAdd, "DATEDIFF": dateDiff,
		"TO_VARCHAR": toVarchar, "TO_CHAR": toVarchar,
		"IS_ROLE_IN_SESSION": isRoleInSession, "CURRENT_TIMESTAMP": currentTimestamp,
	}
	for _, f := range []string{"SEQ4", "SEQ8"} {
		special[f] = func(*parser, string, *arguments) expr { return expr{sql: rowMarker} }
	}
	for function, name := range map[string]string{"TO_NUMBER": "NUMBER", "TO_DATE": "DATE",
		"TO_TIMESTAMP": "TIMESTAMP_NTZ", "TO_TIMESTAMP_NTZ": "TIMESTAMP_NTZ", "TO_TIMESTAMP_LTZ": "TIMESTAMP_LTZ",
		"TO_TIMESTAMP_TZ": "TIMESTAMP_TZ"} {
		special[function] = convert(name)
	}
	for f := range sessionFunctions {
		special[f] = sessionValue
	}
	return special
}()

// sessionFunctions describe the session; nil is NULL.
var sessionFunctions = map[string]func(p *parser) any{
	"CURRENT_VERSION":         func(*parser) any { return Version },
	"CURRENT_ACCOUNT":         func(p *parser) any { return nullIfEmpty(p.session.Account) },
	"CURRENT_REGION":          func(p *parser) any { return p.account.contract.CurrentRegion() },
	"CURRENT_USER":            func(p *parser) any { return nullIfEmpty(p.session.User) },
	"CURRENT_ROLE":            func(p *parser) any { return nullIfEmpty(p.session.Role) },
	"CURRENT_SECONDARY_ROLES": func(p *parser) any { return p.currentSecondaryRoles() },
	"CURRENT_DATABASE":        func(p *parser) any { return nullIfEmpty(p.session.Database) },
	"CURRENT_SCHEMA":          func(p *parser) any { return nullIfEmpty(p.session.Schema) },
	"CURRENT_TRANSACTION": func(p *parser) any {
		if p.session.TransactionID == 0 {
			return nil
		}
		return strconv.FormatInt(p.session.TransactionID, 10)
	},
	"CURRENT_WAREHOUSE": func(p *parser) any { return nullIfEmpty(p.session.Warehouse) },
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
	value := p.session.Parameters[SecondaryRoles]
	if value == "NONE" {
		return `{"roles":"","value":""}`
	}
	if value == "" {
		value = "ALL"
	}
	names, err := json.Marshal(strings.Join(p.account.grants.secondaryRoles(p.session), ","))
	if err != nil { // a string is always marshalled
		panic(err)
	}
	return `{"roles":` + string(names) + `,"value":` + strconv.Quote(strings.ReplaceAll(value, "\x00", ",")) + `}`
}

// isRoleInSession writes IS_ROLE_IN_SESSION of a constant; those of columns are not had.
func isRoleInSession(p *parser, _ string, a *arguments) expr {
	p.volatile = true
	x := p.argument(a, 0)
	if x.kind != exprString {
		p.fail(protocol.NotSimulated("IS_ROLE_IN_SESSION of what is no constant"))
	}
	if p.account.RoleExists(x.text) && p.account.grants.inSession(p.session, x.text) {
		return expr{sql: "true"}
	}
	return expr{sql: "false"}
}

// currentTimestamp writes the account's time, which is not Postgres's, as a constant.
func currentTimestamp(p *parser, _ string, _ *arguments) expr {
	p.volatile = true
	return expr{sql: "timestamptz '" + p.account.host.Now().UTC().Format("2006-01-02 15:04:05.000000") + "Z'"}
}

func randstr(p *parser, _ string, a *arguments) expr {
	return expr{sql: "snowsim.randstr((" + p.argument(a, 0).sql + ")::int, (" + p.argument(a, 1).sql + ")::bigint)"}
}

// extreme writes GREATEST and LEAST, which are NULL when an argument is.
func extreme(p *parser, function string, a *arguments) expr {
	p.argument(a, 0)
	var b strings.Builder
	for i, e := range a.list {
		if e.kind == exprNumber || e.kind == exprString {
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

// intervals are the parts that DATEADD adds, as intervals.
var intervals = map[string]string{"year": "1 year", "month": "1 month", "day": "1 day", "hour": "1 hour",
	"minute": "1 minute", "second": "1 second", "millisecond": "1 millisecond", "microsecond": "1 microsecond"}

func dateAdd(p *parser, _ string, a *arguments) expr {
	part, n, at := p.argument(a, 0), p.argument(a, 1), p.argument(a, 2)
	unit, ok := intervals[part.text]
	if !ok {
		p.failf("'%s' is not a valid date/time component for DATEADD.", part.text)
	}
	function := "snowsim.date_add"
	switch part.text {
	case "hour", "minute", "second", "millisecond", "microsecond":
		function = "snowsim.time_add"
	}
	return expr{sql: function + "(" + p.dateOperand(at) + ", round((" + n.sql + ")::numeric)::float8 * interval '" +
		unit + "')"}
}

// dateOperand writes a date or timestamp; a text, and a bind of unknown type, is read as a timestamp.
func (p *parser) dateOperand(e expr) string {
	if e.kind == exprString || e.kind == exprBind && p.untyped(e) {
		return e.sql + "::timestamp"
	}
	return e.sql
}

// untyped reports whether a bound value has the type of its context.
func (p *parser) untyped(e expr) bool {
	n, err := strconv.Atoi(strings.TrimPrefix(e.sql, "$"))
	return err != nil || n < 1 || n > len(p.params) || p.params[n-1].OID == 0
}

func dateDiff(p *parser, _ string, a *arguments) expr {
	part := p.argument(a, 0)
	return expr{sql: "snowsim.datediff(" + part.sql + ", " + p.dateOperand(p.argument(a, 1)) + "::timestamp, " +
		p.dateOperand(p.argument(a, 2)) + "::timestamp)"}
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
	if e.kind != exprString {
		p.fail(protocol.NotSimulated("a format that is no constant"))
	}
	return literal(formats.Replace(strings.ToUpper(e.text)))
}

var formats = strings.NewReplacer("FF3", "MS", "FF6", "US", "FF9", "US", "FF", "US", "AUTO", "YYYY-MM-DD HH24:MI:SS",
	"TZHTZM", "TZHTZM",
	"TZH:TZM", "TZH:TZM", "HH24", "HH24", "MON", "Mon", "DY", "Dy", "\"T\"", "\"T\"")

// convert writes TO_NUMBER, TO_DATE and TO_TIMESTAMP_….
func convert(to string) writer {
	return func(p *parser, function string, a *arguments) expr {
		x := p.argument(a, 0)
		target := dataType{name: to,
			postgres: map[string]string{"NUMBER": "numeric(38,0)", "DATE": "date", "TIMESTAMP_NTZ": "timestamp",
				"TIMESTAMP_LTZ": "timestamptz", "TIMESTAMP_TZ": "snowsim.timestamp_tz"}[to]}
		if rest := a.list[1:]; len(rest) > 0 {
			if !strings.HasPrefix(to, "TIMESTAMP") || rest[0].kind != exprNumber {
				p.fail(protocol.NotSimulated("%s with a format, precision or scale", function))
			}
			scale, err := strconv.Atoi(rest[0].text)
			if err != nil || scale < 0 || scale > 9 {
				p.failf("Invalid scale for function [%s].", function)
			}
			x = expr{sql: "((" + x.sql + ")::numeric / 1e" + strconv.Itoa(scale) + ")"}
		}
		if x.kind == exprNumber && to != "NUMBER" {
			x = expr{sql: x.sql + "::numeric"}
		}
		if p.inputFormat(to) != "" && p.isText(x) {
			return p.cast(x, target)
		}
		if strings.HasPrefix(to, "TIMESTAMP") && (x.kind == exprString || x.kind == exprBind && p.untyped(x)) {
			x = expr{sql: x.sql + "::text"} // which may be a number of seconds
		} else if x.kind == exprBind && !p.untyped(x) {
			x = expr{sql: x.sql}
		}
		return cast(x, target)
	}
}
