package translate

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/snowsim/plan"
	"github.com/loadstone-db/loadstone/snowsim/warehouse"
)

// create reads CREATE ….
func (p *parser) create() *plan.Plan {
	p.expect("CREATE")
	replace := p.accept("OR", "REPLACE")
	switch {
	case p.accept("WAREHOUSE"):
		return p.createWarehouse(warehouse.TypeStandard, replace)
	case p.accept("INTERACTIVE", "WAREHOUSE"):
		return p.createWarehouse(warehouse.TypeInteractive, replace)
	case p.accept("DATABASE"), p.accept("TRANSIENT", "DATABASE"):
		return p.createDatabase(replace)
	case p.accept("SCHEMA"), p.accept("TRANSIENT", "SCHEMA"):
		return p.createSchema(replace)
	case p.accept("ROLE"):
		return p.createRole()
	case p.accept("INDEX"):
		return p.createIndex()
	}
	d := &tableDDL{replace: replace}
	d.Kind = warehouse.Standard.String()
	_ = p.accept("LOCAL") || p.accept("GLOBAL")
	if p.isAny("TEMP", "TEMPORARY", "VOLATILE", "TRANSIENT") {
		d.Temporary = "TEMPORARY"
		if p.next().text == "TRANSIENT" {
			d.Temporary = "TRANSIENT"
		}
	}
	switch {
	case p.accept("HYBRID"):
		d.Kind = warehouse.Hybrid.String()
	case p.accept("INTERACTIVE"):
		d.Kind = warehouse.Interactive.String()
	}
	if !p.accept("TABLE") {
		if p.isAny("VIEW", "SEQUENCE", "STAGE", "FUNCTION", "PROCEDURE", "STREAM", "TASK", "DYNAMIC", "ICEBERG", "EXTERNAL",
			"FILE", "USER", "MATERIALIZED", "SECURE", "PIPE") {
			p.fail(plan.Unsupported("CREATE %s", p.peek().text))
		}
		p.unexpected()
	}
	return p.createTable(d)
}

// tableDDL is what CREATE TABLE says.
type tableDDL struct {
	meta
	replace     bool
	ifNotExists bool
	definitions []string // columns and enforced constraints, for Postgres
	sequences   []string // of AUTOINCREMENT columns: CREATE and ALTER … OWNED BY
	owned       []string
	query       string // AS SELECT
	like        *table
}

func (p *parser) createTable(d *tableDDL) *plan.Plan {
	d.ifNotExists = p.accept("IF", "NOT", "EXISTS")
	n := p.name()
	d.Database, d.Schema, d.Table = n.database, n.schema, n.object
	d.Owner, d.CreatedOn = p.session.Role, p.t.host.Now().UTC()
	p.inline = true
	if p.isSymbol("(") {
		p.inParentheses(func() {
			p.definition(d)
			for p.acceptSymbol(",") {
				p.definition(d)
			}
		})
	}
	if p.accept("LIKE") {
		d.like = p.resolve(p.name(), "SELECT")
	}
	for p.tableOption(d) {
	}
	source := ""
	if p.accept("AS") {
		from := p.i
		d.query = p.selectStatement()
		source = p.source(from, p.i)
	} else if len(d.Columns) == 0 && d.like == nil {
		p.unexpected()
	}
	if d.TargetLag != "" {
		d.Query = source
	}
	p.checkTable(d)
	if ok, err := p.t.catalog.hasSchema(p.ctx, n.database, n.schema); err != nil {
		p.fail(err)
	} else if !ok {
		p.fail(noSchema(n))
	}
	if !p.may(creating(d.Kind), p.schemaObject(n)) {
		p.fail(insufficient("schema", display(n.schema)))
	}
	existing, err := p.t.catalog.table(p.ctx, n)
	if err != nil {
		p.fail(err)
	}
	if existing != nil {
		p.checkReplaced(existing, d)
	}
	if existing != nil && !d.replace {
		if d.ifNotExists {
			return p.done(n.object + " already exists, statement succeeded.")
		}
		p.fail(plan.CompilationError("002002", "42710", "Object '%s' already exists.", n))
	}
	made := p.ddl("Table "+n.object+" successfully created.",
		func(ctx context.Context, conn *pgx.Conn) error { return p.t.makeTable(ctx, conn, n, d) })
	made.Creates = true
	if d.query != "" {
		made.Work = warehouse.Work{Table: kindOf(d.Kind), Op: warehouse.Load}
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
func (p *parser) checkReplaced(existing *table, d *tableDDL) {
	switch {
	case !p.mayTable("", existing):
		p.fail(&plan.Error{Code: "003041", State: "42710", Message: fmt.Sprintf("SQL access control error:\nObject '%s' "+
			"already exists, but current role has no privileges on it. "+
			"If this is unexpected and you cannot resolve this problem, contact your system administrator. ACCOUNTADMIN role "+
			"may be required to manage the privileges on the object.", display(d.Table))})
	case d.replace && !p.mayTable("OWNERSHIP", existing):
		p.fail(insufficient("table", display(d.Table)))
	}
}

func noSchema(n name) *plan.Error {
	return plan.CompilationError("002003", "02000", "Schema '%s.%s' does not exist or not authorized.",
		display(n.database), display(n.schema))
}

// checkTable refuses what the type of table does not take.
func (p *parser) checkTable(d *tableDDL) {
	primary := slices.ContainsFunc(d.Keys, func(k keyMeta) bool { return k.Kind == "PRIMARY KEY" })
	switch d.Kind {
	case "hybrid":
		if !p.t.account.hybridTables() {
			p.fail(plan.Unsupported("HYBRID TABLE"))
		}
		if !primary {
			p.fail(plan.CompilationError("391420", "0A000", "Hybrid table '%s' must have a primary key.", display(d.Table)))
		}
		if d.ClusterBy != "" {
			p.fail(plan.CompilationError("391420", "0A000", "Clustering keys are not supported on hybrid tables."))
		}
		if d.Temporary != "" {
			p.fail(plan.CompilationError("391420", "0A000", "Hybrid tables cannot be temporary or transient."))
		}
	case "interactive":
		if d.ClusterBy == "" {
			p.fail(plan.CompilationError("001003", "42000", "Interactive table '%s' must have a CLUSTER BY clause.",
				display(d.Table)))
		}
		if d.TargetLag != "" && (d.Warehouse == "" || d.query == "") {
			p.fail(plan.CompilationError("001003", "42000", "An interactive table with TARGET_LAG needs WAREHOUSE and AS "+
				"<query>."))
		}
	}
	if d.Kind != "hybrid" && len(d.Indexes) > 0 {
		p.fail(plan.CompilationError("391420", "0A000", "Indexes are supported on hybrid tables only."))
	}
	seen := map[string]bool{}
	for _, c := range d.Columns {
		if seen[c.Name] {
			p.fail(plan.CompilationError("002025", "42S21", "duplicate column name '%s'", c.Name))
		}
		seen[c.Name] = true
	}
	check := func(columns []string) {
		for _, c := range columns {
			if len(d.Columns) > 0 && !seen[c] {
				p.fail(plan.CompilationError("000904", "42000", "invalid identifier '%s'", display(c)))
			}
		}
	}
	for _, k := range d.Keys {
		check(k.Columns)
		if k.Kind == "PRIMARY KEY" {
			for i := range d.Columns {
				if slices.Contains(k.Columns, d.Columns[i].Name) {
					d.Columns[i].Nullable, d.Columns[i].PrimaryKey = false, true
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
func (p *parser) checkIndex(i indexMeta, columns []columnMeta, others []indexMeta) {
	for _, c := range columns {
		if slices.Contains([]string{"VARIANT", "OBJECT", "ARRAY"}, c.Type) && slices.Contains(i.Columns, c.Name) {
			p.fail(plan.CompilationError("391420", "0A000", "Column '%s' of type %s cannot be indexed.", display(c.Name),
				c.Type))
		}
	}
	for _, other := range others {
		if other.Name == i.Name {
			p.fail(plan.CompilationError("002002", "42710", "Index '%s' already exists.", display(i.Name)))
		}
		if slices.Equal(other.Columns, i.Columns) {
			p.fail(plan.CompilationError("391420", "0A000", "The index '%s' has the same columns already.", display(other.Name)))
		}
	}
}

// definition reads a column or a constraint of CREATE TABLE.
func (p *parser) definition(d *tableDDL) {
	constraint := ""
	if p.accept("CONSTRAINT") {
		constraint = p.identifier()
	}
	switch {
	case p.is("PRIMARY", "KEY"), p.is("UNIQUE") && p.peekAt(1).text == "(", p.is("FOREIGN", "KEY"):
		p.key(d, constraint)
	case constraint == "" && (p.is("INDEX") || p.is("UNIQUE", "INDEX")) && p.peekAt(2).text != ",":
		p.indexDefinition(d)
	case constraint == "":
		p.column(d)
	default:
		p.unexpected()
	}
}

func (p *parser) columnList() (columns []string) {
	p.inParentheses(func() {
		columns = append(columns, p.identifier())
		for p.acceptSymbol(",") {
			columns = append(columns, p.identifier())
		}
	})
	return columns
}

func quoteAll(columns []string) string {
	all := make([]string, len(columns))
	for i, c := range columns {
		all[i] = quote(short(c))
	}
	return strings.Join(all, ", ")
}

// key reads an out-of-line key. Only hybrid tables enforce it.
func (p *parser) key(d *tableDDL, constraint string) {
	k := keyMeta{Name: constraint, Enforced: d.Kind == "hybrid"}
	switch {
	case p.accept("PRIMARY", "KEY"):
		k.Kind = "PRIMARY KEY"
	case p.accept("UNIQUE"):
		k.Kind = "UNIQUE"
	default:
		p.expect("FOREIGN", "KEY")
		k.Kind = "FOREIGN KEY"
	}
	k.Columns = p.columnList()
	sql := k.Kind + " (" + quoteAll(k.Columns) + ")"
	if k.Kind == "FOREIGN KEY" {
		sql += p.references(&k)
	}
	p.addKey(d, k, sql)
}

func (p *parser) references(k *keyMeta) string {
	p.expect("REFERENCES")
	n := p.name()
	k.References, k.Target = n.String(), []string{n.database, n.schema, n.object}
	sql := " REFERENCES " + n.postgres()
	if p.isSymbol("(") {
		sql += " (" + quoteAll(p.columnList()) + ")"
	}
	return sql
}

func (p *parser) addKey(d *tableDDL, k keyMeta, sql string) {
	if k.Name == "" {
		k.Name = fmt.Sprintf("SYS_CONSTRAINT_%s", strings.ToLower(short(d.Table+"_"+strings.Join(k.Columns, "_"))))
	}
	for p.isAny("ENFORCED", "NOT", "RELY", "NORELY", "DEFERRABLE", "INITIALLY", "ENABLE", "DISABLE", "VALIDATE",
		"NOVALIDATE", "ON", "MATCH") {
		if p.is("NOT") && !isOneOf(p.peekAt(1), "ENFORCED", "DEFERRABLE") {
			break
		}
		p.i++
		_ = p.accept("ENFORCED") || p.accept("DEFERRABLE") || p.accept("DEFERRED") || p.accept("IMMEDIATE") ||
			p.accept("FULL") ||
			p.accept("DELETE", "NO", "ACTION") || p.accept("UPDATE", "NO", "ACTION")
	}
	if k.Kind == "PRIMARY KEY" && slices.ContainsFunc(d.Keys, func(o keyMeta) bool { return o.Kind == k.Kind }) {
		p.failf("Table '%s' has more than one primary key.", display(d.Table))
	}
	d.Keys = append(d.Keys, k)
	if k.Enforced {
		d.definitions = append(d.definitions, sql)
	}
}

// indexDefinition reads INDEX name (columns) [INCLUDE (columns)].
func (p *parser) indexDefinition(d *tableDDL) {
	index := indexMeta{Unique: p.accept("UNIQUE")}
	p.expect("INDEX")
	p.accept("IF", "NOT", "EXISTS")
	index.Name = p.identifier()
	index.Columns = p.columnList()
	if p.accept("INCLUDE") {
		index.Include = p.columnList()
	}
	d.Indexes = append(d.Indexes, index)
}

// column reads a column.
func (p *parser) column(d *tableDDL) {
	name := p.identifier()
	ty := p.dataType()
	c := columnMeta{Name: name, Postgres: short(name), Type: ty.name, Precision: ty.precision, Scale: ty.scale,
		Length: ty.length, Nullable: true}
	if ty.name == "VARCHAR" && c.Length == 0 {
		c.Length = maxText
	}
	if ty.name == "BINARY" && c.Length == 0 {
		c.Length = 8388608
	}
	sql := quote(short(name)) + " " + ty.postgres
	own := func(kind string) keyMeta {
		return keyMeta{Kind: kind, Columns: []string{name}, Enforced: d.Kind == "hybrid"}
	}
	at := len(d.definitions)
	d.definitions = append(d.definitions, "")
	for {
		switch {
		case p.accept("NOT", "NULL"):
			c.Nullable = false
		case p.accept("NULL"):
		case p.accept("COLLATE"):
			p.constant()
		case p.accept("COMMENT"):
			c.Comment = p.constant()
		case p.accept("DEFAULT"):
			from := p.i
			p.inDefault = true
			sql += " DEFAULT " + p.sql()
			p.inDefault = false
			c.Default = p.source(from, p.i)
		case p.isAny("AUTOINCREMENT", "IDENTITY"):
			sql += p.identity(d, &c)
		case p.accept("PRIMARY", "KEY"):
			p.addKey(d, own("PRIMARY KEY"), "PRIMARY KEY ("+quote(short(name))+")")
		case p.accept("UNIQUE"):
			c.Unique = true
			p.addKey(d, own("UNIQUE"), "UNIQUE ("+quote(short(name))+")")
		case p.accept("FOREIGN", "KEY"), p.is("REFERENCES"):
			k := own("FOREIGN KEY")
			to := p.references(&k)
			p.addKey(d, k, "FOREIGN KEY ("+quote(short(name))+")"+to)
		case p.accept("CONSTRAINT"):
			p.identifier()
		default:
			if !c.Nullable {
				sql += " NOT NULL"
			}
			d.definitions[at] = sql
			d.Columns = append(d.Columns, c)
			return
		}
	}
}

// identity reads AUTOINCREMENT with its start and step, which a sequence serves:
// Postgres has no identity of type numeric.
func (p *parser) identity(d *tableDDL, c *columnMeta) string {
	p.next()
	c.Identity, c.Start, c.Increment = true, 1, 1
	if p.isSymbol("(") {
		p.inParentheses(func() {
			c.Start = p.integer()
			p.expectSymbol(",")
			c.Increment = p.integer()
		})
	}
	for {
		switch {
		case p.accept("START"):
			p.accept("WITH")
			p.acceptSymbol("=")
			c.Start = p.integer()
		case p.accept("INCREMENT"):
			p.accept("BY")
			p.acceptSymbol("=")
			c.Increment = p.integer()
		case p.accept("ORDER"), p.accept("NOORDER"):
		default:
			if c.Increment == 0 {
				p.failf("Increment of AUTOINCREMENT cannot be 0.")
			}
			sequence := quote(schemaName(d.Database, d.Schema)) + "." + quote(short(d.Table+"~"+c.Name+"~seq"))
			from := ""
			if c.Increment < 0 {
				from = " MINVALUE -9223372036854775807 MAXVALUE 9223372036854775807"
			} else if c.Start < 1 {
				from = " MINVALUE " + strconv.FormatInt(c.Start, 10)
			}
			d.sequences = append(d.sequences,
				fmt.Sprintf("CREATE SEQUENCE %s INCREMENT BY %d%s START WITH %d CACHE 100", sequence, c.Increment, from, c.Start))
			table := name{d.Database, d.Schema, d.Table}.postgres()
			d.owned = append(d.owned, "ALTER SEQUENCE "+sequence+" OWNED BY "+table+"."+quote(short(c.Name)))
			return " DEFAULT nextval(" + literal(sequence) + "::regclass)"
		}
	}
}

// tableOption reads one option behind the columns; false when there is none.
func (p *parser) tableOption(d *tableDDL) bool {
	switch {
	case p.accept("CLUSTER", "BY"):
		p.accept("LINEAR")
		from := p.i
		p.inParentheses(func() {
			for {
				if e := p.expression(); e.kind == column {
					d.ClusterKeys = append(d.ClusterKeys, e.text)
				}
				if !p.acceptSymbol(",") {
					return
				}
			}
		})
		d.ClusterBy = "LINEAR" + strings.ReplaceAll(p.source(from, p.i), " ", "")
	case p.accept("COMMENT"):
		p.acceptSymbol("=")
		d.Comment = p.constant()
	case p.accept("TARGET_LAG"):
		p.acceptSymbol("=")
		d.TargetLag = p.lag()
	case p.accept("WAREHOUSE"):
		p.acceptSymbol("=")
		d.Warehouse = p.identifier()
		if _, ok := p.t.host.Warehouses().Get(d.Warehouse); !ok {
			p.fail(plan.CompilationError("002003", "02000", "Warehouse '%s' does not exist or not authorized.",
				display(d.Warehouse)))
		}
	case p.accept("COPY", "GRANTS"):
	case p.isAny("DATA_RETENTION_TIME_IN_DAYS", "MAX_DATA_EXTENSION_TIME_IN_DAYS", "CHANGE_TRACKING",
		"ENABLE_SCHEMA_EVOLUTION", "DEFAULT_DDL_COLLATION", "AUTO_REFRESH", "REFRESH_MODE", "INITIALIZE"):
		p.next()
		p.expectSymbol("=")
		p.next()
	default:
		return false
	}
	return true
}

// lag reads '<n> seconds|minutes|hours|days'.
func (p *parser) lag() string {
	s := p.constant()
	fields := strings.Fields(s)
	if len(fields) == 2 {
		n, err := strconv.Atoi(fields[0])
		unit := strings.TrimSuffix(strings.ToLower(fields[1]), "s")
		if err == nil && n > 0 && (unit == "second" || unit == "minute" || unit == "hour" || unit == "day") {
			return s
		}
	}
	p.failf("Invalid value '%s' for TARGET_LAG.", s)
	return ""
}

// makeTable creates a table in the transaction of conn.
func (t *Translator) makeTable(ctx context.Context, conn *pgx.Conn, n name, d *tableDDL) error {
	table := &table{name: n, kind: kindOf(d.Kind), meta: d.meta}
	var statements []string
	if d.replace {
		statements = append(statements, "DROP TABLE IF EXISTS "+n.postgres()+" CASCADE")
	}
	statements = append(statements, d.sequences...)
	switch {
	case d.like != nil:
		table.Columns, table.Keys = d.like.Columns, d.like.Keys
		statements = append(statements, "CREATE TABLE "+n.postgres()+" (LIKE "+d.like.name.postgres()+" INCLUDING DEFAULTS)")
	case len(d.definitions) > 0:
		statements = append(statements, "CREATE TABLE "+n.postgres()+" ("+strings.Join(d.definitions, ", ")+")")
	default:
		statements = append(statements, "CREATE TABLE "+n.postgres()+" AS "+d.query+" WITH NO DATA")
	}
	if err := execAll(ctx, conn, append(statements, d.owned...)...); err != nil {
		return err
	}
	if err := table.fillColumns(ctx, conn, t.display); err != nil {
		return Error(err)
	}
	var after []string
	for i, c := range table.Columns {
		if c.Nullable && slices.ContainsFunc(table.Keys, func(k keyMeta) bool {
			return k.Kind == "PRIMARY KEY" &&
				slices.Contains(k.Columns, c.Name)
		}) {
			table.Columns[i].Nullable = false // the one half of a primary key that every table enforces
			after = append(after, "ALTER TABLE "+n.postgres()+" ALTER COLUMN "+quote(c.Postgres)+" SET NOT NULL")
		}
		if d.query != "" && c.Type == "NUMBER" && c.Scale == 0 &&
			c.Precision == 38 { // integers of Postgres become NUMBER(38,0), as bound numbers are
			after = append(after, "ALTER TABLE "+n.postgres()+" ALTER COLUMN "+quote(c.Postgres)+" TYPE numeric(38,0)")
		}
	}
	if d.query != "" {
		after = append(after, "INSERT INTO "+n.postgres()+" "+d.query)
	}
	after = append(after, indexes(table)...)
	if err := execAll(ctx, conn, after...); err != nil {
		return err
	}
	if err := writeTable(ctx, conn, table); err != nil {
		return Error(err)
	}
	t.catalog.put(table)
	return nil
}

// indexes returns the Postgres indexes of a table: those of a hybrid table, and
// for others one that stands for the pruning of micro-partitions.
func indexes(t *table) []string {
	var all []string
	add := func(name string, unique bool, columns, include []string) {
		sql := "CREATE "
		if unique {
			sql += "UNIQUE "
		}
		sql += "INDEX " + quote(short(t.name.object+"~"+name)) + " ON " + t.name.postgres() + " (" + quoteAll(columns) + ")"
		if len(include) > 0 {
			sql += " INCLUDE (" + quoteAll(include) + ")"
		}
		all = append(all, sql)
	}
	for _, i := range t.Indexes {
		add(i.Name, i.Unique, i.Columns, i.Include)
	}
	indexable := func(columns []string) bool {
		return len(columns) > 0 && !slices.ContainsFunc(columns, func(name string) bool {
			return !slices.ContainsFunc(t.Columns, func(c columnMeta) bool {
				return c.Name == name && c.Type != "VARIANT" && c.Type != "OBJECT" && c.Type != "ARRAY" && c.Type != "BINARY"
			})
		})
	}
	if indexable(t.ClusterKeys) {
		add("cluster", false, t.ClusterKeys, nil)
	}
	for _, k := range t.Keys {
		if k.Kind == "PRIMARY KEY" && !k.Enforced && indexable(k.Columns) && !slices.Equal(k.Columns, t.ClusterKeys) {
			add("key", false, k.Columns, nil)
		}
	}
	return all
}

// createIndex reads CREATE INDEX [IF NOT EXISTS] i ON t (columns) [INCLUDE (columns)].
func (p *parser) createIndex() *plan.Plan {
	p.accept("IF", "NOT", "EXISTS")
	index := indexMeta{Name: p.identifier()}
	p.expect("ON")
	t := p.resolve(p.name(), "OWNERSHIP")
	if t.kind != warehouse.Hybrid {
		p.fail(plan.CompilationError("391420", "0A000", "Indexes are supported on hybrid tables only."))
	}
	index.Columns = p.columnList()
	if p.accept("INCLUDE") {
		index.Include = p.columnList()
	}
	p.checkIndex(index, t.Columns, t.Indexes)
	changed := *t
	changed.Indexes = append(slices.Clone(t.Indexes), index)
	return p.ddl("Statement executed successfully.", func(ctx context.Context, conn *pgx.Conn) error {
		one := changed
		one.Indexes, one.Keys, one.ClusterKeys = []indexMeta{index}, nil, nil
		if err := execAll(ctx, conn, indexes(&one)...); err != nil {
			return err
		}
		return p.t.changeTable(ctx, conn, &changed)
	})
}

// changeTable writes a changed catalog entry.
func (t *Translator) changeTable(ctx context.Context, conn *pgx.Conn, changed *table) error {
	if err := writeTable(ctx, conn, changed); err != nil {
		return Error(err)
	}
	t.catalog.put(changed)
	return nil
}
