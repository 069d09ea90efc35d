package translate

import (
	"context"
	"maps"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// createView reads CREATE [OR REPLACE] VIEW v [COMMENT = '…'] AS query.
func (p *Parser) createView(replace bool) *Plan {
	if p.Is("IF", "NOT", "EXISTS") {
		p.Fail(protocol.NotSimulated("CREATE VIEW IF NOT EXISTS"))
	}
	n := p.Name()
	v := &Table{Name: n, Meta: Meta{Kind: View, Database: n.Database, Schema: n.Schema,
		Table: n.Object, Owner: p.Session.Role, CreatedOn: p.Account.Host.Now().UTC()}}
	if p.Accept("COMMENT") {
		p.AcceptSymbol("=")
		v.Comment = p.Constant()
	}
	if p.IsSymbol("(") {
		p.Fail(protocol.NotSimulated("a view with a list of columns"))
	}
	p.Expect("AS")
	from := p.At()
	query := p.selectStatement()
	v.Query = p.Source(from, p.At())
	for i := from; i < p.At(); i++ {
		if p.Tokens[i].Kind == Mark {
			p.Fail(protocol.CompilationError("002210", "42601", "Bind variables not allowed in view and UDF definitions."))
		}
	}
	if len(p.Before) > 0 || strings.Contains(query, RowMarker) {
		p.Fail(protocol.NotSimulated("a view of the query history or of generated numbers"))
	}
	p.checkNewView(n, replace)
	for _, t := range p.Tables {
		if t.Name == n {
			p.Fail(protocol.CompilationError("002037", "42601", "View definition for '%s' refers to view being defined", n))
		}
	}
	return p.DDL("View "+n.Object+" successfully created.",
		func(ctx context.Context, conn *pgx.Conn) error {
			return makeView(ctx, p.Account, conn, v, query)
		})
}

// checkNewView refuses a view where the session may not make one, or where something is that it does not replace.
func (p *Parser) checkNewView(n Name, replace bool) {
	if ok, err := p.Account.Tables.HasSchema(p.Context, n.Database, n.Schema); err != nil {
		p.Fail(err)
	} else if !ok {
		p.Fail(NoSchema(n))
	}
	if !p.May("CREATE VIEW", p.SchemaObject(n)) {
		p.Fail(Insufficient("schema", Display(n.Schema)))
	}
	existing, err := p.Account.Tables.Table(p.Context, n)
	switch {
	case err != nil:
		p.Fail(err)
	case existing == nil:
	default:
		p.checkReplaced(existing, &tableDDL{replace: replace})
		if replace && existing.Kind != View {
			p.Fail(alreadyAs(n, "TABLE"))
		}
		if !replace {
			p.Fail(protocol.CompilationError("002002", "42710", "Object '%s' already exists.", n))
		}
	}
}

// alreadyAs refuses to replace what is of another kind.
func alreadyAs(n Name, kind string) error {
	return protocol.CompilationError("001998", "42710", "Object '%s' already exists as %s", n, kind)
}

// makeView creates a view in the transaction of conn. In Postgres it has the columns and no query: what it selects from
// may be dropped and created again; it is resolved when the view is read.
func makeView(ctx context.Context, a *Account, conn *pgx.Conn, v *Table, query string) error {
	at := v.Name.Postgres()
	if err := ExecAll(ctx, conn, "DROP VIEW IF EXISTS "+at, "CREATE VIEW "+at+" AS "+query); err != nil {
		return err
	}
	if err := v.FillColumns(ctx, conn, a.Display); err != nil {
		return Error(err)
	}
	var stub string
	if err := conn.QueryRow(ctx, `SELECT string_agg(format('NULL::%s AS %I', format_type(atttypid, atttypmod), attname), ', '
		ORDER BY attnum) FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0`, at).Scan(&stub); err != nil {
		return Error(err)
	}
	if err := ExecAll(ctx, conn, "CREATE OR REPLACE VIEW "+at+" AS SELECT "+stub+" WHERE false"); err != nil {
		return err
	}
	return a.ChangeTable(ctx, conn, v)
}

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
