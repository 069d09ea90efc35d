package snowflake

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/loadstone-db/loadstone/plugins/adapters/snowflake/dialect"
	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

// surrogateKey is the key of a hybrid table whose workload declares none: a
// hybrid table must have one.
const surrogateKey = "LOADSTONE_KEY"

// stageSuffix ends the name of the table through which an interactive one is
// filled. No table of a user's has it: it is replaced if it is there.
const stageSuffix = "__LOADSTONE_STAGE"

// logicalTable reads and checks the table to make.
func logicalTable(req *jsondoc.Value) (sdk.LogicalTable, error) {
	t := sdk.ReadLogicalTable(req.Get("logical"))
	if len(t.Columns) == 0 {
		return t, errors.New("the workload declares no columns for its table, so it cannot be created")
	}
	for _, c := range t.Columns {
		if c.Name == "" || utf8.RuneCountInString(c.Name) > dialect.MaxIdentifier || strings.IndexByte(c.Name, 0) >= 0 {
			return t, errors.New("the workload declares a column name that Snowflake does not take: " + strconv.Quote(c.Name))
		}
		if text := dbType(c); escapes(text) {
			return t, errors.New("the workload declares a type that is none: " + strconv.Quote(text))
		}
	}
	if text := t.Options[dialect.Key]; escapes(text) {
		return t, errors.New("the workload declares table options that are none: " + strconv.Quote(text))
	}
	keys := [][]string{t.Key}
	for _, x := range t.Indexes {
		if len(x.Columns) == 0 {
			return t, errors.New("the workload declares an index without columns")
		}
		keys = append(keys, x.Columns, x.Include)
	}
	for _, key := range keys {
		for _, k := range key {
			if logicalColumn(&t, k) == nil {
				return t, errors.New("the workload's key or index names a column that it does not declare: " + strconv.Quote(k))
			}
		}
	}
	return t, nil
}

// logicalColumn finds a column of a table to make, in any case of letters.
func logicalColumn(t *sdk.LogicalTable, name string) *sdk.LogicalColumn {
	for i := range t.Columns {
		if strings.EqualFold(t.Columns[i].Name, name) {
			return &t.Columns[i]
		}
	}
	return nil
}

// escapes reports that a piece of DDL could end the clause that it stands in.
func escapes(text string) bool {
	return strings.ContainsAny(text, ";\"'\\\x00") || strings.Contains(text, "--") || strings.Contains(text, "//") ||
		strings.Contains(text, "/*") ||
		strings.Count(text, "(") != strings.Count(text, ")")
}

func dbType(c sdk.LogicalColumn) string {
	if t := c.DBType[dialect.Key]; t != "" {
		return t
	}
	switch c.Type {
	case sdk.I64:
		return "NUMBER(19,0)"
	case sdk.F64:
		return "FLOAT"
	case sdk.Bytes:
		return "BINARY"
	case sdk.Bool:
		return "BOOLEAN"
	case sdk.Timestamp:
		return "TIMESTAMP_NTZ(6)"
	}
	return "VARCHAR"
}

// chosenColumns reads a parameter that names columns of the table to make.
func chosenColumns(t *sdk.LogicalTable, param string, names []string) (string, error) {
	var list, known []string
	for _, n := range names {
		c := logicalColumn(t, n)
		if c == nil {
			for _, c := range t.Columns {
				known = append(known, c.Name)
			}
			return "", &sdk.RefusalError{Field: "target.params." + param,
				Message: "the table " + t.Name + " has no column " + strconv.Quote(n),
				Hint:    "its columns are " + strings.Join(known, ", ")}
		}
		list = append(list, c.Name)
	}
	return dialect.PhysicalColumns(list), nil
}

// ddl writes how the table is made.
func (a Adapter) ddl(req *jsondoc.Value, w *jsondoc.Writer) error {
	t, err := logicalTable(req)
	if err != nil {
		return err
	}
	o, err := readOptions(req)
	if err != nil {
		return err
	}
	name, existing, done, err := a.target(req, w)
	if err != nil || !done {
		return err
	}
	if existing != nil && req.Get("recreate").Bool() && existing.kind != "BASE TABLE" {
		return dialect.BadName(name.SQL()+" is a "+strings.ToLower(existing.kind)+" and is not dropped",
			"choose another name, or prepare.if_exists: use")
	}
	m := ddlWriter{tableType: a.tableType, t: &t, o: &o, name: name, final: name}
	var drop *dropImpact
	if existing != nil && req.Get("recreate").Bool() {
		if drop = readDropImpact(req, w, existing); drop == nil {
			return nil
		}
		if err := drop.blockedReason(name); err != nil {
			return err
		}
		if m.replace = a.tableType == Interactive; !m.replace {
			m.name = stagingTable(name)
			// What an earlier process left behind when it was killed.
			m.before = append(m.before, "DROP TABLE IF EXISTS "+m.name.SQL())
		}
	}
	switch a.tableType {
	case Hybrid:
		err = m.hybrid()
	case Interactive:
		var requested bool
		if requested, err = m.interactive(req, w); requested {
			return nil
		}
	default:
		err = m.standard()
	}
	if err == nil && a.tableType != Interactive && o.loadWarehouse != "" {
		if m.throughStandard(req, w) {
			return nil
		}
	}
	if err != nil {
		return err
	}
	w.Object().Key("ddl").Strs(append(m.before, m.create...)).Key("after_load").Strs(m.after)
	if drop != nil {
		if a.tableType != Interactive {
			w.Key("swap").Strs(append(m.swap(missesAbility(req, noSwap)), m.finish...))
		}
		m.notes = append(m.notes, drop.sentence(name))
	}
	if len(m.notes) > 0 {
		w.Key("notes").Strs(m.notes)
	}
	w.EndObject()
	return nil
}

// target is the table that ddl and load speak of: the existing one, or the one
// that the name stands for. done is false while the host is being asked.
func (a Adapter) target(req *jsondoc.Value, w *jsondoc.Writer) (name dialect.TableName, existing *table, done bool,
	err error) {
	t, done, err := a.findTable(req, w)
	if err != nil || !done {
		return name, nil, false, err
	}
	if t != nil {
		return t.name, t, true, nil
	}
	if name, err = dialect.ParseName(req.Get("table_name").Str()); err != nil {
		return name, nil, false, err
	}
	// The name is complete, so that it does not depend on what the session uses.
	row := sdk.ResultOf(req, "where").Rows.At(0)
	if name.Database.Text == "" {
		name.Database = dialect.Exactly(row.At(0).Str())
	}
	if name.Schema.Text == "" {
		name.Schema = dialect.Exactly(row.At(1).Str())
	}
	return name, nil, true, nil
}

// ddlWriter writes the DDL of one table.
type ddlWriter struct {
	tableType TableType
	t         *sdk.LogicalTable
	o         *options
	// name is the table that is made, final the one that it is to be.
	name, final dialect.TableName
	// replace: an interactive table takes the place of one that is there.
	replace bool
	// before stands before the table is made, after follows the load, and finish the swap.
	before, create, after, finish, notes []string
}

// columns is the list of column definitions.
func (m *ddlWriter) columns() []string {
	var list []string
	for _, c := range m.t.Columns {
		text := dialect.Quoted(dialect.ColumnName(c.Name)) + " " + dbType(c)
		if !c.Nullable {
			text += " NOT NULL"
		}
		list = append(list, text)
	}
	return list
}

func (m *ddlWriter) options() string {
	if text := m.t.Options[dialect.Key]; text != "" {
		return " " + text
	}
	return ""
}

func (m *ddlWriter) clustering(columns string) string {
	if columns == "" {
		return ""
	}
	return " CLUSTER BY (" + columns + ")"
}

// searchable adds search optimization on the key.
func (m *ddlWriter) searchable() {
	if m.o.search && len(m.t.Key) > 0 {
		m.after = append(m.after, "ALTER TABLE "+m.name.SQL()+" ADD SEARCH OPTIMIZATION ON EQUALITY("+
			dialect.PhysicalColumns(m.t.Key)+")")
	}
}

// standard leaves NOT ENFORCED out of its keys: it is what they are by default.
func (m *ddlWriter) standard() error {
	by, err := chosenColumns(m.t, "cluster_by", m.o.clusterBy)
	if err != nil {
		return err
	}
	list := m.columns()
	if len(m.t.Key) > 0 {
		list = append(list, "PRIMARY KEY ("+dialect.PhysicalColumns(m.t.Key)+")")
	}
	for _, x := range m.t.Indexes {
		if x.Unique {
			list = append(list, "UNIQUE ("+dialect.PhysicalColumns(x.Columns)+")")
		}
	}
	kind := "TABLE "
	if m.o.transient {
		kind = "TRANSIENT TABLE "
	}
	m.create = []string{"CREATE " + kind + m.name.SQL() + " (" + strings.Join(list, ", ") + ")" +
		m.clustering(by) + m.options()}
	m.searchable()
	return nil
}

// hybrid makes the indexes with the table: building them later is slower, and
// unique constraints cannot be added by CREATE INDEX.
func (m *ddlWriter) hybrid() error {
	list := m.columns()
	if len(m.t.Key) > 0 {
		list = append(list, "PRIMARY KEY ("+dialect.PhysicalColumns(m.t.Key)+")")
	} else {
		list = append(list, dialect.Quoted(surrogateKey)+" NUMBER(38,0) NOT NULL AUTOINCREMENT",
			"PRIMARY KEY ("+dialect.Quoted(surrogateKey)+")")
		m.notes = append(m.notes, m.name.SQL()+" has the column "+surrogateKey+
			": a hybrid table must have a primary key, and the workload declares none.")
	}
	names := map[string]bool{}
	indexName := func(columns []string) string {
		base := []rune("IX_" + dialect.ColumnName(strings.Join(columns, "_")))
		name := string(base[:min(len(base), dialect.MaxIdentifier-4)])
		for n, first := 2, name; names[name]; n++ {
			name = first + "_" + strconv.Itoa(n)
		}
		names[name] = true
		return dialect.Quoted(name)
	}
	for _, x := range m.t.Indexes {
		if x.Unique {
			list = append(list, "UNIQUE ("+dialect.PhysicalColumns(x.Columns)+")")
			continue
		}
		text := "INDEX " + indexName(x.Columns) + " (" + dialect.PhysicalColumns(x.Columns) + ")"
		if len(x.Include) > 0 {
			text += " INCLUDE (" + dialect.PhysicalColumns(x.Include) + ")"
		}
		list = append(list, text)
	}
	for i, x := range m.o.indexes {
		param := "indexes[" + strconv.Itoa(i) + "]"
		columns, err := chosenColumns(m.t, param+".columns", x.columns)
		if err != nil {
			return err
		}
		include, err := chosenColumns(m.t, param+".include", x.include)
		if err != nil {
			return err
		}
		text := "INDEX " + indexName(x.columns) + " (" + columns + ")"
		if include != "" {
			text += " INCLUDE (" + include + ")"
		}
		list = append(list, text)
	}
	m.create = []string{"CREATE HYBRID TABLE " + m.name.SQL() + " (" + strings.Join(list, ", ") + ")" + m.options()}
	return nil
}

// interactive makes a standard table first, which takes rows in every way there
// is, and the interactive one of it when the rows are in: CREATE … AS SELECT is
// how static interactive tables are filled, and INSERT OVERWRITE the only DML that
// every release takes. It needs a standard warehouse.
func (m *ddlWriter) interactive(req *jsondoc.Value, w *jsondoc.Writer) (requested bool, err error) {
	names := m.o.clusterBy
	if len(names) == 0 {
		names = m.t.Key
	}
	if len(names) == 0 {
		names = []string{m.t.Columns[0].Name}
	}
	by, err := chosenColumns(m.t, "cluster_by", names)
	if err != nil {
		return false, err
	}
	serves, finish, requested := m.warehouses(req, w)
	if requested {
		return true, nil
	}
	if serves != "" && m.o.loadWarehouse == "" {
		return false, &sdk.RefusalError{Field: "target.params.load_warehouse",
			Message: "the warehouse " + serves +
				" is interactive, and an interactive table is made and filled by a standard one",
			Hint: "name a standard warehouse that the role may use"}
	}
	stage := m.name.Sibling(stageSuffix)
	m.create = []string{"CREATE OR REPLACE TRANSIENT TABLE " + stage.SQL() + " (" + strings.Join(m.columns(), ", ") + ")"}
	create := "CREATE INTERACTIVE TABLE "
	if m.replace {
		create = "CREATE OR REPLACE INTERACTIVE TABLE " // one step: until it is done the old one serves
	}
	m.after = []string{
		create + m.name.SQL() + m.clustering(by) + m.options() + " AS SELECT * FROM " + stage.SQL() + " ORDER BY " + by,
		"DROP TABLE " + stage.SQL(),
	}
	m.searchable()
	m.after = append(m.after, finish...)
	return false, nil
}

// throughStandard has a table that an interactive warehouse is to read made and
// filled by the standard one of target.params.load_warehouse.
func (m *ddlWriter) throughStandard(req *jsondoc.Value, w *jsondoc.Writer) (requested bool) {
	_, finish, requested := m.warehouses(req, w)
	if m.name != m.final {
		m.finish = finish // the warehouse is to hold the new table, not the one that goes
		return requested
	}
	m.after = append(m.after, finish...)
	return requested
}

// warehouses chooses the warehouse that makes the table. serves is the session's own
// when that is interactive, finish what goes back to it and adds the table to it.
func (m *ddlWriter) warehouses(req *jsondoc.Value, w *jsondoc.Writer) (serves string, finish []string, requested bool) {
	own := sdk.ResultOf(req, "where").Rows.At(0).At(2).Str()
	if r := sdk.ResultOf(req, "warehouse"); own != "" && !r.Asked {
		sdk.Ask(w, sdk.Query{ID: "warehouse", SQL: "SHOW WAREHOUSES LIKE " + dialect.Pattern(own)})
		return "", nil, true
	}
	if interactiveWarehouse(sdk.ResultOf(req, "warehouse"), own) {
		serves = own
		finish = append(finish, "ALTER WAREHOUSE "+dialect.Quoted(own)+" ADD TABLES ("+m.final.SQL()+")")
	}
	if m.o.loadWarehouse == "" {
		return serves, finish, false
	}
	load := dialect.NamePart{Text: m.o.loadWarehouse, Exact: !dialect.PlainName(m.o.loadWarehouse)}
	m.before = append(m.before, "USE WAREHOUSE "+dialect.Quoted(load.Name()))
	if own != "" {
		finish = append(finish, "USE WAREHOUSE "+dialect.Quoted(own))
	}
	return serves, finish, false
}

// interactiveWarehouse reads SHOW WAREHOUSES.
func interactiveWarehouse(r sdk.Result, name string) bool {
	for i := 0; i < r.Rows.Len(); i++ {
		if field(r, i, "name") == name {
			return strings.EqualFold(field(r, i, "type"), "INTERACTIVE")
		}
	}
	return false
}
