package query

import (
	"maps"
	"strings"

	"github.com/loadstone-db/loadstone/snowsim/plan"
	"github.com/loadstone-db/loadstone/snowsim/translate/catalog"
	"github.com/loadstone-db/loadstone/snowsim/translate/expression"
	"github.com/loadstone-db/loadstone/snowsim/translate/syntax"
)

// mostViews may select from one another.
const mostViews = 20

// view writes the query of a view, as a subquery: read in the schema of the view and with the rights of its owner.
func (p *Reader) view(t *catalog.Table) (sql string) {
	session := *p.Session
	session.Database, session.Schema, session.Role = t.Database, t.Schema, t.Owner
	session.Parameters = maps.Clone(session.Parameters)
	if session.Parameters == nil {
		session.Parameters = map[string]string{}
	}
	session.Parameters[catalog.SecondaryRoles] = "NONE"
	inner := &expression.Parser{Context: p.Context, Account: p.Account, Results: p.Results, Histories: p.Histories,
		Session: &session}
	r := NewReader(inner)
	r.views = p.views + 1
	err := syntax.Failing(func() {
		if r.views > mostViews {
			p.Failf("More than %d views select from one another.", mostViews)
		}
		var err error
		if inner.Cursor, err = syntax.NewCursor(t.Query); err != nil {
			p.Fail(err)
		}
		sql = r.selectStatement()
		r.End()
	})
	if err != nil {
		p.Fail(plan.CompilationError("002037", "42601", "Failure during expansion of view '%s': %v",
			catalog.Display(t.Name.Object), err))
	}
	p.Tables = append(p.Tables, inner.Tables...)
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = catalog.Quote(c.Postgres)
	}
	list := strings.Join(names, ", ")
	return "(SELECT " + list + " FROM (" + sql + ") AS " + catalog.Quote(p.Fresh("view")) + " (" + list + "))"
}
