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
		"RANDSTR": randstr, "GREATEST": extreme, "LEAST": extreme, "CONCAT_WS": concatWS,
		"DATEADD": dateAdd, "DATEDIFF": dateDiff,
		"TO_VARCHAR": toVarchar, "TO_CHAR": toVarchar,
		"IS_ROLE_IN_SESSION": isRoleInSession, "CURRENT_TIMESTAMP": currentTimestamp,
	}
	for _, f := range []string{"SEQ4", "SEQ8"} {
		special[f] = func(*Parser, string, *arguments) Expr { return Expr{SQL: RowMarker} }
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

// sessionFunctions tell of the session; nil is NULL.
var sessionFunctions = map[string]func(p *Parser) any{
	"CURRENT_VERSION":         func(*Parser) any { return Version },
	"CURRENT_ACCOUNT":         func(p *Parser) any { return OrNull(p.Session.Account) },
	"CURRENT_REGION":          func(p *Parser) any { return p.Account.Contract.CurrentRegion() },
	"CURRENT_USER":            func(p *Parser) any { return OrNull(p.Session.User) },
	"CURRENT_ROLE":            func(p *Parser) any { return OrNull(p.Session.Role) },
	"CURRENT_SECONDARY_ROLES": func(p *Parser) any { return p.currentSecondaryRoles() },
	"CURRENT_DATABASE":        func(p *Parser) any { return OrNull(p.Session.Database) },
	"CURRENT_SCHEMA":          func(p *Parser) any { return OrNull(p.Session.Schema) },
	"CURRENT_WAREHOUSE":       func(p *Parser) any { return OrNull(p.Session.Warehouse) },
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

// currentTimestamp writes the account's time, which is not Postgres's, as a constant.
func currentTimestamp(p *Parser, _ string, _ *arguments) Expr {
	p.Volatile = true
	return Expr{SQL: "timestamptz '" + p.Account.Host.Now().UTC().Format("2006-01-02 15:04:05.000000") + "Z'"}
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

// intervals are the parts that DATEADD adds, as intervals.
var intervals = map[string]string{"year": "1 year", "month": "1 month", "day": "1 day", "hour": "1 hour",
	"minute": "1 minute", "second": "1 second", "millisecond": "1 millisecond", "microsecond": "1 microsecond"}

func dateAdd(p *Parser, _ string, a *arguments) Expr {
	part, n, at := p.argument(a, 0), p.argument(a, 1), p.argument(a, 2)
	unit, ok := intervals[part.Text]
	if !ok {
		p.Failf("'%s' is not a valid date/time component for DATEADD.", part.Text)
	}
	function := "snowsim.date_add"
	switch part.Text {
	case "hour", "minute", "second", "millisecond", "microsecond":
		function = "snowsim.time_add"
	}
	return Expr{SQL: function + "(" + p.dateOperand(at) + ", round((" + n.SQL + ")::numeric)::float8 * interval '" +
		unit + "')"}
}

// dateOperand writes a date or timestamp; a text, and a bind of unknown type, is read as a timestamp.
func (p *Parser) dateOperand(e Expr) string {
	if e.Kind == StringConstant || e.Kind == BoundValue && p.untyped(e) {
		return e.SQL + "::timestamp"
	}
	return e.SQL
}

// untyped reports whether a bound value has the type of its context.
func (p *Parser) untyped(e Expr) bool {
	n, err := strconv.Atoi(strings.TrimPrefix(e.SQL, "$"))
	return err != nil || n < 1 || n > len(p.Params) || p.Params[n-1].OID == 0
}

func dateDiff(p *Parser, _ string, a *arguments) Expr {
	part := p.argument(a, 0)
	return Expr{SQL: "snowsim.datediff(" + part.SQL + ", " + p.dateOperand(p.argument(a, 1)) + "::timestamp, " +
		p.dateOperand(p.argument(a, 2)) + "::timestamp)"}
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

// convert writes TO_NUMBER, TO_DATE and TO_TIMESTAMP_….
func convert(to string) writer {
	return func(p *Parser, function string, a *arguments) Expr {
		x := p.argument(a, 0)
		target := Type{Name: to,
			Postgres: map[string]string{"NUMBER": "numeric(38,0)", "DATE": "date", "TIMESTAMP_NTZ": "timestamp",
				"TIMESTAMP_LTZ": "timestamptz", "TIMESTAMP_TZ": "snowsim.timestamp_tz"}[to]}
		if rest := a.list[1:]; len(rest) > 0 {
			if !strings.HasPrefix(to, "TIMESTAMP") || rest[0].Kind != NumberConstant {
				p.Fail(protocol.NotSimulated("%s with a format, precision or scale", function))
			}
			scale, err := strconv.Atoi(rest[0].Text)
			if err != nil || scale < 0 || scale > 9 {
				p.Failf("Invalid scale for function [%s].", function)
			}
			x = Expr{SQL: "((" + x.SQL + ")::numeric / 1e" + strconv.Itoa(scale) + ")"}
		}
		if x.Kind == NumberConstant && to != "NUMBER" {
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
