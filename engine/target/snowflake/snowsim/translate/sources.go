package translate

import (
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/engine/target/snowflake/snowsim/plan"
)

// informationSchema are the views that a database has.
var informationSchema = setOf("DATABASES SCHEMATA TABLES HYBRID_TABLES COLUMNS TABLE_CONSTRAINTS KEY_COLUMN_USAGE INDEXES INDEX_COLUMNS")

// systemView writes INFORMATION_SCHEMA.… and SNOWFLAKE.ACCOUNT_USAGE.….
func (p *parser) systemView(parts []string) (sql string, ok bool) {
	database := p.session.Database
	if len(parts) == 3 {
		database = parts[0]
	}
	n := len(parts)
	if n < 2 || parts[n-2] != "INFORMATION_SCHEMA" {
		return "", false
	}
	if database == "" {
		p.complete(parts[n-1:])
	}
	if !informationSchema[parts[n-1]] {
		p.fail(plan.DoesNotExist("Object", strings.Join(parts, ".")))
	}
	if exists, err := p.t.catalog.hasSchema(p.ctx, database, ""); err != nil {
		p.fail(err)
	} else if !exists {
		p.fail(plan.CompilationError("002003", "02000", "Database '%s' does not exist or not authorized.", display(database)))
	}
	return "(SELECT * FROM snowsim." + quote("INFORMATION_SCHEMA."+parts[n-1]) + " WHERE \"TABLE_CATALOG\" = " + literal(database) + ")", true
}

// tableFunction reads what stands in TABLE(…), without an alias; generates tells
// a generator.
func (p *parser) tableFunction() (sql string, generates bool) {
	switch {
	case p.is("GENERATOR"):
		return p.generator(), true
	case p.peek().kind == text || p.peek().kind == mark:
		parts, err := parseName(p.constant())
		if err != nil {
			p.fail(err)
		}
		return p.resolve(p.complete(parts), "SELECT").name.postgres(), false
	}
	p.fail(plan.Unsupported("table function %s", p.peek().text))
	return "", false
}

// generator reads GENERATOR(ROWCOUNT => n).
func (p *parser) generator() string {
	p.next()
	rows := "0"
	p.inParentheses(func() {
		for {
			switch key := p.identifier(); key {
			case "ROWCOUNT":
				p.expectSymbol("=>")
				n := p.integer()
				if n < 0 {
					p.failf("Invalid ROWCOUNT %d of GENERATOR.", n)
				}
				rows = strconv.FormatInt(n, 10)
			case "TIMELIMIT":
				p.fail(plan.Unsupported("GENERATOR(TIMELIMIT => …)"))
			default:
				p.failf("Invalid argument '%s' of GENERATOR.", key)
			}
			if !p.acceptSymbol(",") {
				return
			}
		}
	})
	return "generate_series(0::bigint, " + rows + "::bigint - 1)"
}
