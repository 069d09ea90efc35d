package translate

import (
	"context"
	"maps"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// createView reads CREATE [OR REPLACE] VIEW v [COPY GRANTS] [COMMENT = '…'] AS query.
func (p *parser) createView(replace bool) *Plan {
	if p.is("IF", "NOT", "EXISTS") {
		p.fail(protocol.NotSimulated("CREATE VIEW IF NOT EXISTS"))
	}
	n := p.name()
	v := &tableEntry{name: n, tableMeta: tableMeta{Kind: kindView, Database: n.database, Schema: n.schema,
		Table: n.object, Owner: p.session.Role, CreatedOn: p.account.host.Now().UTC()}}
	if p.accept("COPY", "GRANTS") && !replace {
		p.fail(protocol.CompilationError("001003", "42000", "COPY GRANTS needs OR REPLACE."))
	}
	if p.accept("COMMENT") {
		p.acceptSymbol("=")
		v.Comment = p.constant()
	}
	if p.isSymbol("(") {
		p.fail(protocol.NotSimulated("a view with a list of columns"))
	}
	p.expect("AS")
	from := p.position()
	query := p.selectStatement()
	v.Query = p.source(from, p.position())
	for i := from; i < p.position(); i++ {
		if p.tokens[i].kind == tokenMark {
			p.fail(protocol.CompilationError("002210", "42601", "Bind variables not allowed in view and UDF definitions."))
		}
	}
	if len(p.before) > 0 || strings.Contains(query, rowMarker) {
		p.fail(protocol.NotSimulated("a view of the query history or of generated numbers"))
	}
	p.checkNewView(n, replace)
	for _, t := range p.tables {
		if t.name == n {
			p.fail(protocol.CompilationError("002037", "42601", "View definition for '%s' refers to view being defined", n))
		}
	}
	return p.ddlPlan("View "+n.object+" successfully created.",
		func(ctx context.Context, conn *pgx.Conn) error {
			return makeView(ctx, p.account, conn, v, query)
		})
}

// checkNewView refuses a view where the session may not make one, or where something is that it does not replace.
func (p *parser) checkNewView(n objectName, replace bool) {
	if ok, err := p.account.tables.hasSchema(p.ctx, n.database, n.schema); err != nil {
		p.fail(err)
	} else if !ok {
		p.fail(noSchema(n))
	}
	if !p.hasPrivilege("CREATE VIEW", p.schemaObject(n)) {
		p.fail(insufficient("schema", displayName(n.schema)))
	}
	existing, err := p.account.tables.lookup(p.ctx, n)
	switch {
	case err != nil:
		p.fail(err)
	case existing == nil:
	default:
		p.checkReplaced(existing, &tableDDL{replace: replace})
		if replace && existing.Kind != kindView {
			p.fail(existsAs(n, "TABLE"))
		}
		if !replace {
			p.fail(protocol.CompilationError("002002", "42710", "Object '%s' already exists.", n))
		}
	}
}

// existsAs refuses to replace what is of another kind.
func existsAs(n objectName, kind string) error {
	return protocol.CompilationError("001998", "42710", "Object '%s' already exists as %s", n, kind)
}

// makeView creates a view in the transaction of conn. In Postgres it has the columns and no query: what it selects from
// may be dropped and created again; it is resolved when the view is read.
func makeView(ctx context.Context, a *Account, conn *pgx.Conn, v *tableEntry, query string) error {
	at := v.name.postgres()
	if err := execAll(ctx, conn, "DROP VIEW IF EXISTS "+at, "CREATE VIEW "+at+" AS "+query); err != nil {
		return err
	}
	if err := v.fillColumns(ctx, conn, a.displayName); err != nil {
		return Error(err)
	}
	var stub string
	if err := conn.QueryRow(
		ctx,
		`SELECT string_agg(format('NULL::%s AS %I', format_type(atttypid, atttypmod), attname), ', '
		ORDER BY attnum) FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0`,
		at,
	).Scan(
		&stub,
	); err != nil {
		return Error(err)
	}
	if err := execAll(ctx, conn, "CREATE OR REPLACE VIEW "+at+" AS SELECT "+stub+" WHERE false"); err != nil {
		return err
	}
	return a.writeTable(ctx, conn, v)
}

// maxViewDepth may select from one another.
const maxViewDepth = 20

// view writes the query of a view, as a subquery: read in the schema of the view and with the rights of its owner.
func (p *parser) view(t *tableEntry) (sql string) {
	session := *p.session
	session.Database, session.Schema, session.Role = t.Database, t.Schema, t.Owner
	session.Parameters = maps.Clone(session.Parameters)
	if session.Parameters == nil {
		session.Parameters = map[string]string{}
	}
	session.Parameters[SecondaryRoles] = "NONE"
	inner := &parser{ctx: p.ctx, account: p.account, session: &session}
	inner.views = p.views + 1
	err := catchFailure(func() {
		if inner.views > maxViewDepth {
			p.failf("More than %d views select from one another.", maxViewDepth)
		}
		var err error
		if inner.cursor, err = newCursor(t.Query); err != nil {
			p.fail(err)
		}
		sql = inner.selectStatement()
		inner.end()
	})
	if err != nil {
		p.fail(protocol.CompilationError("002037", "42601", "Failure during expansion of view '%s': %v",
			displayName(t.name.object), err))
	}
	p.tables = append(p.tables, inner.tables...)
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = quote(c.Postgres)
	}
	list := strings.Join(names, ", ")
	return "(SELECT " + list + " FROM (" + sql + ") AS " + quote(p.uniqueName("view")) + " (" + list + "))"
}
