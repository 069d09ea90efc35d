package translate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
	"github.com/loadstone-db/loadstone/snowsim/warehouse"
)

// create reads CREATE ….
func (p *parser) create() *Plan {
	p.expect("CREATE")
	replace := p.accept("OR", "REPLACE")
	alter := !replace && p.accept("OR", "ALTER")
	if alter && !p.is("TABLE") {
		p.fail(protocol.NotSimulated("CREATE OR ALTER %s", p.peek().text))
	}
	switch {
	case p.accept("WAREHOUSE"):
		return p.createWarehouse(warehouse.TypeStandard)
	case p.accept("INTERACTIVE", "WAREHOUSE"):
		return p.createWarehouse(warehouse.TypeInteractive)
	case p.accept("ROLE"):
		return p.createRole()
	case !replace && p.accept("SCHEMA"):
		return p.createSchema()
	case p.accept("VIEW"):
		return p.createView(replace)
	}
	d := &tableDDL{replace: replace, alter: alter}
	d.Kind = warehouse.Standard.String()
	if p.accept("TRANSIENT") {
		d.Temporary = "TRANSIENT"
	}
	switch {
	case p.accept("HYBRID"):
		d.Kind = warehouse.Hybrid.String()
	case p.accept("INTERACTIVE"):
		d.Kind = warehouse.Interactive.String()
	}
	if !p.accept("TABLE") {
		if p.isAny("DATABASE", "DYNAMIC", "EXTERNAL", "FILE", "FUNCTION", "ICEBERG", "INDEX", "MATERIALIZED", "PIPE",
			"PROCEDURE", "SCHEMA", "SECURE", "SEQUENCE", "STAGE", "STREAM", "TASK", "TEMP", "TEMPORARY", "USER", "VIEW") {
			p.fail(protocol.NotSimulated("CREATE %s", p.peek().text))
		}
		p.unexpected()
	}
	return p.createTable(d)
}

// tableDDL is a parsed CREATE TABLE.
type tableDDL struct {
	tableMeta
	replace     bool
	alter       bool // CREATE OR ALTER
	ifNotExists bool
	definitions []string // columns and enforced constraints, for Postgres
	sequences   []string // of AUTOINCREMENT columns: CREATE and ALTER … OWNED BY
	owned       []string
	query       string // AS SELECT
}

func (p *parser) createTable(d *tableDDL) *Plan {
	d.ifNotExists = p.accept("IF", "NOT", "EXISTS")
	n := p.name()
	d.Database, d.Schema, d.Table = n.database, n.schema, n.object
	d.Owner, d.CreatedOn = p.session.Role, p.account.host.Now().UTC()
	p.inline = true
	if p.isSymbol("(") {
		p.inParentheses(func() {
			p.definition(d)
			for p.acceptSymbol(",") {
				p.definition(d)
			}
		})
	}
	for p.tableOption(d) {
	}
	if p.accept("AS") {
		d.query = p.selectStatement()
	} else if len(d.Columns) == 0 {
		p.unexpected()
	}
	p.checkTable(d)
	if ok, err := p.account.tables.hasSchema(p.ctx, n.database, n.schema); err != nil {
		p.fail(err)
	} else if !ok {
		p.fail(noSchema(n))
	}
	if !p.hasPrivilege(creating(d.Kind), p.schemaObject(n)) {
		p.fail(insufficient("schema", displayName(n.schema)))
	}
	existing, err := p.account.tables.lookup(p.ctx, n)
	if err != nil {
		p.fail(err)
	}
	if existing != nil {
		p.checkReplaced(existing, d)
	}
	if existing != nil && d.replace && existing.Kind == kindView {
		p.fail(existsAs(n, "VIEW"))
	}
	if existing != nil && d.alter {
		return p.alterInto(existing, d)
	}
	if existing != nil && !d.replace {
		if d.ifNotExists {
			return p.statusPlan(n.object + " already exists, statement succeeded.")
		}
		p.fail(protocol.CompilationError("002002", "42710", "Object '%s' already exists.", n))
	}
	made := p.ddlPlan("Table "+n.object+" successfully created.",
		func(ctx context.Context, conn *pgx.Conn) error { return makeTable(ctx, p.account, conn, n, d) })
	made.Creates = true
	if d.query != "" {
		made.Work = warehouse.Work{Table: tableType(d.Kind), Op: warehouse.Load}
	}
	return made
}

// creating is the privilege on a schema that making a table of a kind needs.
func creating(kind string) string {
	if kind == "hybrid" || kind == "interactive" {
		return "CREATE " + strings.ToUpper(kind) + " TABLE"
	}
	return "CREATE TABLE"
}

// checkReplaced refuses to make a table where there is one that the session may not see, or not replace.
func (p *parser) checkReplaced(existing *tableEntry, d *tableDDL) {
	switch {
	case !p.hasTablePrivilege("", existing):
		p.fail(&protocol.Error{Code: "003041", State: "42710", Message: fmt.Sprintf("SQL access control error:\nObject '%s' "+
			"already exists, but current role has no privileges on it. "+
			"If this is unexpected and you cannot resolve this problem, contact your system administrator. ACCOUNTADMIN role "+
			"may be required to manage the privileges on the object.", displayName(d.Table))})
	case (d.replace || d.alter) && !p.hasTablePrivilege("OWNERSHIP", existing):
		p.fail(insufficient("table", displayName(d.Table)))
	}
}

// checkTable refuses what the type of table does not take.
func (p *parser) checkTable(d *tableDDL) {
	primary := slices.ContainsFunc(d.Keys, func(k keyMeta) bool { return k.Kind == "PRIMARY KEY" })
	switch d.Kind {
	case "hybrid":
		if !p.account.contract.HybridTables() {
			p.fail(protocol.Unsupported("HYBRID TABLE"))
		}
		if !primary {
			p.fail(protocol.CompilationError("391420", "0A000", "Hybrid table '%s' must have a primary key.",
				displayName(d.Table)))
		}
		if d.ClusterBy != "" {
			p.fail(protocol.CompilationError("391420", "0A000", "Clustering keys are not supported on hybrid tables."))
		}
		if d.Temporary != "" {
			p.fail(protocol.CompilationError("391420", "0A000", "Hybrid tables cannot be temporary or transient."))
		}
	case "interactive":
		if d.ClusterBy == "" {
			p.fail(protocol.CompilationError("001003", "42000", "Interactive table '%s' must have a CLUSTER BY clause.",
				displayName(d.Table)))
		}
	}
	if d.Kind != "hybrid" && len(d.Indexes) > 0 {
		p.fail(protocol.CompilationError("391420", "0A000", "Indexes are supported on hybrid tables only."))
	}
	seen := map[string]bool{}
	for _, c := range d.Columns {
		if seen[c.Name] {
			p.fail(protocol.CompilationError("002025", "42S21", "duplicate column name '%s'", c.Name))
		}
		seen[c.Name] = true
	}
	check := func(columns []string) {
		for _, c := range columns {
			if len(d.Columns) > 0 && !seen[c] {
				p.fail(protocol.CompilationError("000904", "42000", "invalid identifier '%s'", displayName(c)))
			}
		}
	}
	for _, k := range d.Keys {
		check(k.Columns)
		if k.Kind == "PRIMARY KEY" {
			for i := range d.Columns {
				if slices.Contains(k.Columns, d.Columns[i].Name) {
					d.Columns[i].Nullable = false
				}
			}
		}
	}
	for n, i := range d.Indexes {
		check(i.Columns)
		check(i.Include)
		p.checkIndex(i, d.Columns, d.Indexes[:n])
	}
}

// checkIndex refuses an index on columns that cannot be indexed, and a duplicate one.
func (p *parser) checkIndex(i indexMeta, columns []columnMeta, others []indexMeta) {
	for _, c := range columns {
		if slices.Contains([]string{"VARIANT", "OBJECT", "ARRAY"}, c.Type) && slices.Contains(i.Columns, c.Name) {
			p.fail(protocol.CompilationError("391420", "0A000", "Column '%s' of type %s cannot be indexed.", displayName(c.Name),
				c.Type))
		}
	}
	for _, other := range others {
		if other.Name == i.Name {
			p.fail(protocol.CompilationError("002002", "42710", "Index '%s' already exists.", displayName(i.Name)))
		}
		if slices.Equal(other.Columns, i.Columns) {
			p.fail(protocol.CompilationError("391420", "0A000", "The index '%s' has the same columns already.",
				displayName(other.Name)))
		}
	}
}

// tableOption reads one option behind the columns; false when there is none.
func (p *parser) tableOption(d *tableDDL) bool {
	switch {
	case p.accept("CLUSTER", "BY"):
		from := p.position()
		p.inParentheses(func() {
			for {
				if e := p.expression(); e.kind == exprColumn {
					d.ClusterKeys = append(d.ClusterKeys, e.text)
				}
				if !p.acceptSymbol(",") {
					return
				}
			}
		})
		d.ClusterBy = "LINEAR" + strings.ReplaceAll(p.source(from, p.position()), " ", "")
	case p.accept("COMMENT"):
		p.acceptSymbol("=")
		d.Comment = p.constant()
	case p.isAny("TARGET_LAG", "WAREHOUSE", "COPY", "DATA_RETENTION_TIME_IN_DAYS", "CHANGE_TRACKING", "LIKE", "CLONE"):
		p.fail(protocol.NotSimulated("CREATE TABLE … %s", p.peek().text))
	default:
		return false
	}
	return true
}
