package translate

import (
	"maps"
	"strings"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// mostViews may select from one another.
const mostViews = 20

// view writes the query of a view, as a subquery: read in the schema of the view and with the rights of its owner.
func (p *Parser) view(t *Table) (sql string) {
	session := *p.Session
	session.Database, session.Schema, session.Role = t.Database, t.Schema, t.Owner
	session.Parameters = maps.Clone(session.Parameters)
	if session.Parameters == nil {
		session.Parameters = map[string]string{}
	}
	session.Parameters[SecondaryRoles] = "NONE"
	inner := &Parser{Context: p.Context, Account: p.Account, Session: &session}
	inner.views = p.views + 1
	err := Failing(func() {
		if inner.views > mostViews {
			p.Failf("More than %d views select from one another.", mostViews)
		}
		var err error
		if inner.Cursor, err = NewCursor(t.Query); err != nil {
			p.Fail(err)
		}
		sql = inner.selectStatement()
		inner.End()
	})
	if err != nil {
		p.Fail(protocol.CompilationError("002037", "42601", "Failure during expansion of view '%s': %v",
			Display(t.Name.Object), err))
	}
	p.Tables = append(p.Tables, inner.Tables...)
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = Quote(c.Postgres)
	}
	list := strings.Join(names, ", ")
	return "(SELECT " + list + " FROM (" + sql + ") AS " + Quote(p.Fresh("view")) + " (" + list + "))"
}
