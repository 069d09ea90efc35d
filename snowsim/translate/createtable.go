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
func (p *Parser) create() *Plan {
	p.Expect("CREATE")
	replace := p.Accept("OR", "REPLACE")
	switch {
	case p.Accept("WAREHOUSE"):
		return p.createWarehouse(warehouse.TypeStandard)
	case p.Accept("INTERACTIVE", "WAREHOUSE"):
		return p.createWarehouse(warehouse.TypeInteractive)
	case p.Accept("ROLE"):
		return p.createRole()
	case p.Accept("VIEW"):
		return p.createView(replace)
	}
	d := &tableDDL{replace: replace}
	d.Kind = warehouse.Standard.String()
	if p.Accept("TRANSIENT") {
		d.Temporary = "TRANSIENT"
	}
	switch {
	case p.Accept("HYBRID"):
		d.Kind = warehouse.Hybrid.String()
	case p.Accept("INTERACTIVE"):
		d.Kind = warehouse.Interactive.String()
	}
	if !p.Accept("TABLE") {
		if p.IsAny("DATABASE", "DYNAMIC", "EXTERNAL", "FILE", "FUNCTION", "ICEBERG", "INDEX", "MATERIALIZED", "PIPE",
			"PROCEDURE", "SCHEMA", "SECURE", "SEQUENCE", "STAGE", "STREAM", "TASK", "TEMP", "TEMPORARY", "USER", "VIEW") {
			p.Fail(protocol.NotSimulated("CREATE %s", p.Peek().Text))
		}
		p.Unexpected()
	}
	return p.createTable(d)
}

// tableDDL is what CREATE TABLE says.
type tableDDL struct {
	Meta
	replace     bool
	ifNotExists bool
	definitions []string // columns and enforced constraints, for Postgres
	sequences   []string // of AUTOINCREMENT columns: CREATE and ALTER … OWNED BY
	owned       []string
	query       string // AS SELECT
}

func (p *Parser) createTable(d *tableDDL) *Plan {
	d.ifNotExists = p.Accept("IF", "NOT", "EXISTS")
	n := p.Name()
	d.Database, d.Schema, d.Table = n.Database, n.Schema, n.Object
	d.Owner, d.CreatedOn = p.Session.Role, p.Account.Host.Now().UTC()
	p.Inline = true
	if p.IsSymbol("(") {
		p.InParentheses(func() {
			p.definition(d)
			for p.AcceptSymbol(",") {
				p.definition(d)
			}
		})
	}
	for p.tableOption(d) {
	}
	if p.Accept("AS") {
		d.query = p.selectStatement()
	} else if len(d.Columns) == 0 {
		p.Unexpected()
	}
	p.checkTable(d)
	if ok, err := p.Account.Tables.HasSchema(p.Context, n.Database, n.Schema); err != nil {
		p.Fail(err)
	} else if !ok {
		p.Fail(NoSchema(n))
	}
	if !p.May(creating(d.Kind), p.SchemaObject(n)) {
		p.Fail(Insufficient("schema", Display(n.Schema)))
	}
	existing, err := p.Account.Tables.Table(p.Context, n)
	if err != nil {
		p.Fail(err)
	}
	if existing != nil {
		p.checkReplaced(existing, d)
	}
	if existing != nil && d.replace && existing.Kind == View {
		p.Fail(alreadyAs(n, "VIEW"))
	}
	if existing != nil && !d.replace {
		if d.ifNotExists {
			return p.Done(n.Object + " already exists, statement succeeded.")
		}
		p.Fail(protocol.CompilationError("002002", "42710", "Object '%s' already exists.", n))
	}
	made := p.DDL("Table "+n.Object+" successfully created.",
		func(ctx context.Context, conn *pgx.Conn) error { return makeTable(ctx, p.Account, conn, n, d) })
	made.Creates = true
	if d.query != "" {
		made.Work = warehouse.Work{Table: KindOf(d.Kind), Op: warehouse.Load}
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
func (p *Parser) checkReplaced(existing *Table, d *tableDDL) {
	switch {
	case !p.MayTable("", existing):
		p.Fail(&protocol.Error{Code: "003041", State: "42710", Message: fmt.Sprintf("SQL access control error:\nObject '%s' "+
			"already exists, but current role has no privileges on it. "+
			"If this is unexpected and you cannot resolve this problem, contact your system administrator. ACCOUNTADMIN role "+
			"may be required to manage the privileges on the object.", Display(d.Table))})
	case d.replace && !p.MayTable("OWNERSHIP", existing):
		p.Fail(Insufficient("table", Display(d.Table)))
	}
}

// checkTable refuses what the type of table does not take.
func (p *Parser) checkTable(d *tableDDL) {
	primary := slices.ContainsFunc(d.Keys, func(k KeyMeta) bool { return k.Kind == "PRIMARY KEY" })
	switch d.Kind {
	case "hybrid":
		if !p.Account.Contract.HybridTables() {
			p.Fail(protocol.Unsupported("HYBRID TABLE"))
		}
		if !primary {
			p.Fail(protocol.CompilationError("391420", "0A000", "Hybrid table '%s' must have a primary key.",
				Display(d.Table)))
		}
		if d.ClusterBy != "" {
			p.Fail(protocol.CompilationError("391420", "0A000", "Clustering keys are not supported on hybrid tables."))
		}
		if d.Temporary != "" {
			p.Fail(protocol.CompilationError("391420", "0A000", "Hybrid tables cannot be temporary or transient."))
		}
	case "interactive":
		if d.ClusterBy == "" {
			p.Fail(protocol.CompilationError("001003", "42000", "Interactive table '%s' must have a CLUSTER BY clause.",
				Display(d.Table)))
		}
	}
	if d.Kind != "hybrid" && len(d.Indexes) > 0 {
		p.Fail(protocol.CompilationError("391420", "0A000", "Indexes are supported on hybrid tables only."))
	}
	seen := map[string]bool{}
	for _, c := range d.Columns {
		if seen[c.Name] {
			p.Fail(protocol.CompilationError("002025", "42S21", "duplicate column name '%s'", c.Name))
		}
		seen[c.Name] = true
	}
	check := func(columns []string) {
		for _, c := range columns {
			if len(d.Columns) > 0 && !seen[c] {
				p.Fail(protocol.CompilationError("000904", "42000", "invalid identifier '%s'", Display(c)))
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

// checkIndex refuses an index on what cannot be indexed, and one that is there already.
func (p *Parser) checkIndex(i IndexMeta, columns []ColumnMeta, others []IndexMeta) {
	for _, c := range columns {
		if slices.Contains([]string{"VARIANT", "OBJECT", "ARRAY"}, c.Type) && slices.Contains(i.Columns, c.Name) {
			p.Fail(protocol.CompilationError("391420", "0A000", "Column '%s' of type %s cannot be indexed.", Display(c.Name),
				c.Type))
		}
	}
	for _, other := range others {
		if other.Name == i.Name {
			p.Fail(protocol.CompilationError("002002", "42710", "Index '%s' already exists.", Display(i.Name)))
		}
		if slices.Equal(other.Columns, i.Columns) {
			p.Fail(protocol.CompilationError("391420", "0A000", "The index '%s' has the same columns already.",
				Display(other.Name)))
		}
	}
}

// tableOption reads one option behind the columns; false when there is none.
func (p *Parser) tableOption(d *tableDDL) bool {
	switch {
	case p.Accept("CLUSTER", "BY"):
		from := p.At()
		p.InParentheses(func() {
			for {
				if e := p.Expression(); e.Kind == ColumnReference {
					d.ClusterKeys = append(d.ClusterKeys, e.Text)
				}
				if !p.AcceptSymbol(",") {
					return
				}
			}
		})
		d.ClusterBy = "LINEAR" + strings.ReplaceAll(p.Source(from, p.At()), " ", "")
	case p.Accept("COMMENT"):
		p.AcceptSymbol("=")
		d.Comment = p.Constant()
	case p.IsAny("TARGET_LAG", "WAREHOUSE", "COPY", "DATA_RETENTION_TIME_IN_DAYS", "CHANGE_TRACKING", "LIKE", "CLONE"):
		p.Fail(protocol.NotSimulated("CREATE TABLE … %s", p.Peek().Text))
	default:
		return false
	}
	return true
}
