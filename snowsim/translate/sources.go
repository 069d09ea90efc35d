package translate

import (
	"context"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/snowsim/plan"
)

// informationSchema are the views that a database has.
var informationSchema = setOf("DATABASES SCHEMATA TABLES HYBRID_TABLES COLUMNS TABLE_CONSTRAINTS KEY_COLUMN_USAGE " +
	"INDEXES INDEX_COLUMNS")

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
	where := "\"TABLE_CATALOG\" = " + literal(database)
	if view := parts[n-1]; view == "TABLES" || view == "COLUMNS" {
		if unseen := p.unseen(`"TABLE_CATALOG"`, `"TABLE_SCHEMA"`, `"TABLE_NAME"`); unseen != "" {
			where += " AND " + unseen
		}
	}
	return "(SELECT * FROM snowsim." + quote("INFORMATION_SCHEMA."+parts[n-1]) + " WHERE " + where + ")", true
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
	if p.is("RESULT_SCAN") {
		return p.resultScan(), false
	}
	if p.is("FLATTEN") {
		p.fail(plan.Unsupported("FLATTEN"))
	}
	return p.historyFunction(), false
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

// scanned is what RESULT_SCAN may be asked for: the statements of the session
// whose result can be had again.
type scanned struct {
	session int64
	made    *plan.Plan
}

// scanLimit is how many results RESULT_SCAN finds again.
const scanLimit = 1000

// keep remembers a SHOW or DESCRIBE, whose result RESULT_SCAN may be asked for.
func (t *Translator) keep(s *plan.Session, made *plan.Plan) {
	if s.QueryID == "" || made.Type != plan.Show && made.Type != plan.Describe {
		return
	}
	t.scansMu.Lock()
	defer t.scansMu.Unlock()
	if t.scans == nil || len(t.scans) >= scanLimit {
		t.scans = map[string]scanned{}
	}
	t.scans[s.QueryID] = scanned{s.ID, made}
}

// resultScan reads RESULT_SCAN(id | LAST_QUERY_ID()), over what SHOW and DESCRIBE
// returned; it is asked for again, as it is now.
func (p *parser) resultScan() (sql string) {
	p.volatile = true
	p.next()
	id := ""
	p.inParentheses(func() {
		if p.peek().kind == mark {
			id = p.constant()
			return
		}
		id = p.expression().text
	})
	p.t.scansMu.Lock()
	found, ok := p.t.scans[id]
	p.t.scansMu.Unlock()
	if !ok || found.session != p.session.ID {
		p.fail(&plan.Error{Code: "000709", State: "02000", Message: "Statement " + id + " not found, or its result is not " +
			"one of SHOW or DESCRIBE."})
	}
	if found.made.Local == nil {
		return "(" + found.made.SQL + ")"
	}
	r, err := found.made.Local(p.ctx)
	if err != nil {
		p.fail(err)
	}
	all := make([]historyColumn[[]any], len(r.Columns))
	for i, c := range r.Columns {
		to := map[string]string{"fixed": "numeric(38,0)", "timestamp_ltz": "timestamptz(3)", "boolean": "boolean",
			"real": "double precision"}[c.Type]
		if to == "" {
			to = "text"
		}
		all[i] = historyColumn[[]any]{c.Name, to, func(row *[]any) any { return (*row)[i] }}
	}
	return fromRows(p, "result", all,
		func(context.Context, *pgx.Conn) (func() (*[]any, bool), error) { return each(r.Rows), nil })
}
