package translate

import (
	"context"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// informationSchema are the views that a database has.
var informationSchema = Words("DATABASES SCHEMATA TABLES VIEWS HYBRID_TABLES COLUMNS TABLE_CONSTRAINTS " +
	"KEY_COLUMN_USAGE " +
	"INDEXES INDEX_COLUMNS")

// systemView writes INFORMATION_SCHEMA.… and SNOWFLAKE.ACCOUNT_USAGE.….
func (p *Parser) systemView(parts []string) (sql string, ok bool) {
	database := p.Session.Database
	if len(parts) == 3 {
		database = parts[0]
	}
	n := len(parts)
	if n == 3 && parts[0] == "SNOWFLAKE" && parts[1] == "ACCOUNT_USAGE" {
		return p.accountUsage(parts[2]), true
	}
	if n < 2 || parts[n-2] != "INFORMATION_SCHEMA" {
		return "", false
	}
	if database == "" {
		p.Complete(parts[n-1:])
	}
	if !informationSchema[parts[n-1]] {
		p.Fail(protocol.DoesNotExist("Object", strings.Join(parts, ".")))
	}
	if exists, err := p.Account.Tables.HasSchema(p.Context, database, ""); err != nil {
		p.Fail(err)
	} else if !exists {
		p.Fail(protocol.CompilationError("002003", "02000", "Database '%s' does not exist or not authorized.",
			Display(database)))
	}
	where := "\"TABLE_CATALOG\" = " + Literal(database)
	if view := parts[n-1]; view == "TABLES" || view == "VIEWS" || view == "COLUMNS" {
		if unseen := p.Unseen(`"TABLE_CATALOG"`, `"TABLE_SCHEMA"`, `"TABLE_NAME"`); unseen != "" {
			where += " AND " + unseen
		}
	}
	return "(SELECT * FROM snowsim." + Quote("INFORMATION_SCHEMA."+parts[n-1]) + " WHERE " + where + ")", true
}

// tableFunction reads what stands in TABLE(…), without an alias; generates tells
// a generator.
func (p *Parser) tableFunction() (sql string, generates bool) {
	switch {
	case p.Is("GENERATOR"):
		return p.generator(), true
	case p.Peek().Kind == Text || p.Peek().Kind == Mark:
		parts, err := ParseName(p.Constant())
		if err != nil {
			p.Fail(err)
		}
		t := p.Resolve(p.Complete(parts), "SELECT")
		if t.Kind == View {
			return p.view(t), false
		}
		return t.Name.Postgres(), false
	}
	if p.Is("RESULT_SCAN") {
		return p.resultScan(), false
	}
	if p.Is("FLATTEN") {
		p.Fail(protocol.NotSimulated("FLATTEN"))
	}
	return p.historyFunction(), false
}

// generator reads GENERATOR(ROWCOUNT => n).
func (p *Parser) generator() string {
	p.Next()
	rows := "0"
	p.InParentheses(func() {
		for {
			switch key := p.Identifier(); key {
			case "ROWCOUNT":
				p.ExpectSymbol("=>")
				n := p.Integer()
				if n < 0 {
					p.Failf("Invalid ROWCOUNT %d of GENERATOR.", n)
				}
				rows = strconv.FormatInt(n, 10)
			case "TIMELIMIT":
				p.Fail(protocol.NotSimulated("GENERATOR(TIMELIMIT => …)"))
			default:
				p.Failf("Invalid argument '%s' of GENERATOR.", key)
			}
			if !p.AcceptSymbol(",") {
				return
			}
		}
	})
	return "generate_series(0::bigint, " + rows + "::bigint - 1)"
}

// resultScan reads RESULT_SCAN(id | LAST_QUERY_ID()), over what SHOW and DESCRIBE
// returned; it is asked for again, as it is now.
func (p *Parser) resultScan() (sql string) {
	p.Volatile = true
	p.Next()
	id := ""
	p.InParentheses(func() {
		if p.Peek().Kind == Mark {
			id = p.Constant()
			return
		}
		id = p.Expression().Text
	})
	made, ok := p.Results.Find(p.Session.ID, id)
	if !ok {
		p.Fail(&protocol.Error{Code: "000709", State: "02000", Message: "Statement " + id + " not found, or its result is not " +
			"one of SHOW or DESCRIBE."})
	}
	if made.Local == nil {
		return "(" + made.SQL + ")"
	}
	r, err := made.Local(p.Context)
	if err != nil {
		p.Fail(err)
	}
	all := make([]Column[[]any], len(r.Columns))
	for i, c := range r.Columns {
		to := map[string]string{"fixed": "numeric(38,0)", "timestamp_ltz": "timestamptz(3)", "boolean": "boolean",
			"real": "double precision"}[c.Type]
		if to == "" {
			to = "text"
		}
		all[i] = NewColumn(c.Name, to, func(row *[]any) any { return (*row)[i] })
	}
	return FromRows(p, "result", all,
		func(context.Context, *pgx.Conn) (func() (*[]any, bool), error) { return Each(r.Rows), nil })
}
