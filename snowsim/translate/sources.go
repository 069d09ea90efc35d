package translate

import (
	"strconv"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// informationSchema are the views that a database has.
var informationSchema = wordSet("TABLES COLUMNS")

// systemView writes INFORMATION_SCHEMA.… and SNOWFLAKE.ACCOUNT_USAGE.….
func (p *parser) systemView(parts []string) (sql string, ok bool) {
	database := p.session.Database
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
		p.qualify(parts[n-1:])
	}
	if !informationSchema[parts[n-1]] {
		p.fail(protocol.NotSimulated("INFORMATION_SCHEMA.%s", parts[n-1]))
	}
	if exists, err := p.account.tables.hasSchema(p.ctx, database, ""); err != nil {
		p.fail(err)
	} else if !exists {
		p.fail(protocol.CompilationError("002003", "02000", "Database '%s' does not exist or not authorized.",
			displayName(database)))
	}
	where := "\"TABLE_CATALOG\" = " + literal(database)
	if unseen := p.hiddenTables(`"TABLE_CATALOG"`, `"TABLE_SCHEMA"`, `"TABLE_NAME"`); unseen != "" {
		where += " AND " + unseen
	}
	return "(SELECT * FROM snowsim." + quote("INFORMATION_SCHEMA."+parts[n-1]) + " WHERE " + where + ")", true
}

// tableFunction reads the argument of TABLE(…), without an alias; generates reports
// a generator.
func (p *parser) tableFunction() (sql string, generates bool) {
	if p.is("GENERATOR") {
		return p.generator(), true
	}
	if p.is("FLATTEN") {
		return p.flatten(), false
	}
	if p.is("RESULT_SCAN") || p.peek().kind == tokenText {
		p.fail(protocol.NotSimulated("TABLE(%s)", p.peek().text))
	}
	return p.historyFunction(), false
}

// flatten reads FLATTEN([INPUT =>] array): a row for each element. Objects, PATH, OUTER, RECURSIVE and MODE are not
// simulated.
func (p *parser) flatten() string {
	p.next()
	var e expr
	p.inParentheses(func() {
		if p.accept("INPUT") {
			p.expectSymbol("=>")
		}
		e = p.expression()
		if p.isSymbol(",") {
			p.fail(protocol.NotSimulated("FLATTEN with more than INPUT"))
		}
	})
	return `(SELECT 1::bigint AS "SEQ", NULL::text AS "KEY", '[' || (n - 1) || ']' AS "PATH", n - 1 AS "INDEX", v AS "VALUE"
		FROM jsonb_array_elements(` + e.sql + `) WITH ORDINALITY AS e(v, n))`
}

// generator reads GENERATOR(ROWCOUNT => n).
func (p *parser) generator() string {
	p.next()
	rows := "0"
	p.inParentheses(func() {
		if p.is("TIMELIMIT") {
			p.fail(protocol.NotSimulated("GENERATOR(TIMELIMIT => …)"))
		}
		p.expect("ROWCOUNT")
		p.expectSymbol("=>")
		rows = strconv.FormatInt(p.integer(), 10)
	})
	return "generate_series(0::bigint, " + rows + "::bigint - 1)"
}
