package translate

import (
	"strconv"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// informationSchema are the views that a database has.
var informationSchema = Words("TABLES COLUMNS")

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
		p.Fail(protocol.NotSimulated("INFORMATION_SCHEMA.%s", parts[n-1]))
	}
	if exists, err := p.Account.Tables.HasSchema(p.Context, database, ""); err != nil {
		p.Fail(err)
	} else if !exists {
		p.Fail(protocol.CompilationError("002003", "02000", "Database '%s' does not exist or not authorized.",
			Display(database)))
	}
	where := "\"TABLE_CATALOG\" = " + Literal(database)
	if unseen := p.Unseen(`"TABLE_CATALOG"`, `"TABLE_SCHEMA"`, `"TABLE_NAME"`); unseen != "" {
		where += " AND " + unseen
	}
	return "(SELECT * FROM snowsim." + Quote("INFORMATION_SCHEMA."+parts[n-1]) + " WHERE " + where + ")", true
}

// tableFunction reads what stands in TABLE(…), without an alias; generates tells
// a generator.
func (p *Parser) tableFunction() (sql string, generates bool) {
	if p.Is("GENERATOR") {
		return p.generator(), true
	}
	if p.IsAny("FLATTEN", "RESULT_SCAN") || p.Peek().Kind == Text {
		p.Fail(protocol.NotSimulated("TABLE(%s)", p.Peek().Text))
	}
	return p.historyFunction(), false
}

// generator reads GENERATOR(ROWCOUNT => n).
func (p *Parser) generator() string {
	p.Next()
	rows := "0"
	p.InParentheses(func() {
		if p.Is("TIMELIMIT") {
			p.Fail(protocol.NotSimulated("GENERATOR(TIMELIMIT => …)"))
		}
		p.Expect("ROWCOUNT")
		p.ExpectSymbol("=>")
		rows = strconv.FormatInt(p.Integer(), 10)
	})
	return "generate_series(0::bigint, " + rows + "::bigint - 1)"
}
