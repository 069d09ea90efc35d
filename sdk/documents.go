package sdk

import "github.com/loadstone-db/loadstone/sdk/jsondoc"

// The operation kinds.
const (
	PointLookup = "POINT_LOOKUP"
	RangeScan   = "RANGE_SCAN"
	Insert      = "INSERT"
	Update      = "UPDATE"
	Delete      = "DELETE"
	GenericSQL  = "GENERIC_SQL"
)

// The value types.
const (
	I64       = "i64"
	F64       = "f64"
	Text      = "text"
	Bytes     = "bytes"
	Bool      = "bool"
	Timestamp = "timestamp"
)

// Manifest is what ls_describe answers. Name is lower case and stays the same
// over versions.
type Manifest struct {
	Name, Version, Title, Description, Author string
	// Parameters is a JSON Schema.
	Parameters string
	// Tables and Statements of a workload.
	Tables     []LogicalTable
	Statements []Statement
	// Driver, Dialect and supported Kinds (none means all) of an adapter.
	Driver, Dialect string
	Kinds           []string
	// Supports says more of the table type of an adapter; nil leaves it open.
	Supports *Supports
	// Sends is the SQL that an adapter may send; nil means that it reads, and makes the run's tables.
	Sends *Sends
	// Observes: the adapter answers "observe" with an Observation.
	Observes bool
	// Feed: a workload that issues the operations of the template's workload.feed, and none without.
	Feed bool
	// tablesVary: the workload is a TableLister.
	tablesVary bool
}

// LogicalTable is a table that a workload needs.
type LogicalTable struct {
	Name    string
	Columns []LogicalColumn
	Key     []string
	// Rows is how many rows the table begins with; 0 leaves it to the template's
	// target.prepare.rows, unless the table is Empty.
	Rows int64
	// Empty: the table begins without rows.
	Empty bool
	// SizedBy names the number among the parameters that Rows is proportional to.
	SizedBy string
	// Varies: runs add rows or delete some, so an existing table may hold any number.
	Varies bool
	// AnyShape: the workload adapts to the columns of an existing table.
	AnyShape bool
	// ComputedKeys: the workload needs no Pool of sampled keys.
	ComputedKeys bool
	// OwnKeys: the workload computes the keys of the rows that it has loaded, and takes from a Pool those of others only.
	OwnKeys bool
	// Inserts: the run inserts into the table as it is, with keys of rows that foreign keys refer to (Values, Free).
	Inserts bool
	// Indexes beside the key's.
	Indexes []Index
	// Options, by dialect, follow the columns when the table is created.
	Options map[string]string
}

// Index is a secondary index of a LogicalTable.
type Index struct {
	Columns []string
	Unique  bool
	// Include names columns that are kept in the index for reading, where the table type has that.
	Include []string
}

// LogicalColumn is a column of a LogicalTable.
type LogicalColumn struct {
	Name, Type string
	Nullable   bool
	// DBType is a type by dialect, instead of the adapter's choice.
	DBType map[string]string
	// Fill says how a database may make the column's sample values itself. Where all columns
	// of a table have one, rows need not be copied. Nil: only Rows knows the values.
	Fill *Fill
}

// Bind is one parameter of a statement.
type Bind struct {
	Name, Type string
	// Column is the table column the value is for or compared with, if any.
	Column string
}

// Statement is a statement that batches may name. Without SQL the adapter
// writes it from Kind and Binds: for POINT_LOOKUP, RANGE_SCAN (from that key on,
// in key order, Limit rows) and DELETE the binds are the key's columns; for INSERT
// the columns to fill; for UPDATE the columns to set, then the key's.
type Statement struct {
	ID, Kind, Table string
	Binds           []Bind
	// Columns names the result columns, in their order, where refs or the
	// generator use them.
	Columns []string
	Writes  bool
	Limit   int
	// Transaction names the transactions that begin with this statement in the
	// figures; without it they go by its ID.
	Transaction string
	// Param is the parameter that asks for this statement ("weights.UPDATE"), for the
	// refusal by a table type that does not support it.
	Param string
	// Note is a sentence for the run's notes, about what the statement leaves out.
	Note string
	// Hint is what a user can do when the database refuses the statement's values.
	Hint string
	// NoRowsHint says what a user can do when the statement finds no rows: a sentence without its point, which names the
	// parameter.
	NoRowsHint string
	// BindOrder, by dialect, says which of Binds each parameter of the SQL takes, where
	// parameters have no numbers (dialects with ?). Without it they are the binds in their order.
	BindOrder map[string][]int
	// SQL by dialect; {table} stands for the quoted name of the statement's table,
	// {table:stock} for that of the table stock.
	SQL map[string]string
}

// Column is a column of an existing table.
type Column struct {
	Name, Type, DBType              string
	Nullable, HasDefault, Generated bool
	// Unique columns need a new value in every row.
	Unique bool
	// Fresh: the column's default is another value in each row, such as a sequence's.
	Fresh bool
	// Top is the largest value of a unique column when HasTop, as a whole number (µs of times); the next one is free.
	HasTop bool
	Top    int64
	// MaxLength bounds text, in characters; 0 means unbounded.
	MaxLength int
}

// The kinds of constraints.
const (
	Check      = "check"
	ForeignKey = "foreign_key"
	Unique     = "unique"
	Exclusion  = "exclusion"
	Trigger    = "trigger"
	Partition  = "partition"
	Domain     = "domain"
	Referenced = "referenced"
	// PointedAt are columns that other rows refer to, which refuse another value.
	PointedAt = "pointed_at"
)

// Constraint is what binds the values of columns: those of one constraint belong together.
type Constraint struct {
	// Name is the database's, "" where it has none.
	Name, Kind string
	Columns    []string
	// Equal are the columns of an exclusion that are compared with =: a new value in one of them never collides.
	Equal []string
	// References is the other table of a foreign key; of Referenced, the table that refers to this one.
	References string
	// Self: a foreign key refers to its own table.
	Self bool
	// Partial: a unique index that holds for some of the rows. NullsEqual: NULLs collide as well.
	Partial, NullsEqual bool
	// Parents is how many rows a foreign key may refer to when ParentsKnown, as far as they were looked for.
	Parents      int64
	ParentsKnown bool
	// Left is how many combinations of values of other tables the columns of a unique constraint have left when
	// LeftKnown, as far as they were looked for: the OpenRequest has them among Free.
	Left      int64
	LeftKnown bool
}

// Table is an existing table, under its logical name.
type Table struct {
	Name, PhysicalName string
	Columns            []Column
	Key                []string
	Rows               int64
	// KeyMin and KeyMax are set when HasRange: the key is one integer column and the table is not empty.
	HasRange       bool
	KeyMin, KeyMax int64
	// Dense: every integer from KeyMin to KeyMax is a key.
	Dense bool
	// DenseMax: every integer from KeyMin to DenseMax is a key, though not all
	// up to KeyMax are. Below KeyMin when unknown.
	DenseMax int64
	// Dialect is that of the SQL which the table takes; "" when it is not known.
	Dialect string
	// Own: Loadstone made the table. A workload does not write to one of somebody else's
	// unless its parameters ask for it.
	Own bool
	// Constraints bind columns, as far as the adapter tells.
	Constraints []Constraint
	// Nonce is another number each time that the table is looked at, so that values of another run are others.
	Nonce int64
}

// Column returns the column of that name, or nil.
func (t *Table) Column(name string) *Column {
	for i := range t.Columns {
		if t.Columns[i].Name == name {
			return &t.Columns[i]
		}
	}
	return nil
}

// IsKey reports whether the column belongs to the key.
func (t *Table) IsKey(name string) bool {
	for _, k := range t.Key {
		if k == name {
			return true
		}
	}
	return false
}

// Pool holds sampled rows: keys where keys are not dense integers, and values
// of columns that a generator cannot invent.
type Pool struct {
	Table   string
	Columns []string
	// Rows is an array of arrays.
	Rows *jsondoc.Value
	// Keys are keys of the whole table, which the host holds: Batch.Key names them by their number.
	Keys KeyList
}

// KeyList says which keys the host holds of a table.
type KeyList struct {
	// Pool is the place of the pool among those of the request.
	Pool           uint8
	Columns, Types []string
	// Count is how many there are, in the order of the key; 0 where there are none.
	Count int64
}

// Column is the place of a column among those of the keys, or -1.
func (k *KeyList) Column(name string) int {
	for i, c := range k.Columns {
		if c == name {
			return i
		}
	}
	return -1
}

// OpenRequest is the document of ls_open.
type OpenRequest struct {
	Seed     int64
	KeySlot  int
	KeySlots int
	Params   *jsondoc.Value
	Tables   []Table
	Pools    []Pool
	// Values are samples of whole rows, with the columns that Constraints bind and those that cannot be invented.
	Values []Pool
	// Free are parts of rows that a table does not have yet.
	Free []FreePool
}

// FreePool holds parts of new rows of a table, for a unique constraint whose columns foreign keys bind.
type FreePool struct {
	Table string
	// Constraint are its columns.
	Constraint []string
	// Left and Right go together to a new row, each row of the one with each of the other, but for those that are taken.
	// Right has no columns where one foreign key binds all.
	Left, Right Pool
	// Taken has the bit l*Right.Rows.Len()+r for row l of Left and row r of Right.
	Taken []uint64
}

// IsTaken reports whether row l of Left and row r of Right are together in the table.
func (f *FreePool) IsTaken(l, r int64) bool {
	n := l*int64(max(f.Right.Rows.Len(), 1)) + r
	return n/64 < int64(len(f.Taken)) && f.Taken[n/64]>>(n%64)&1 == 1
}

// ReadOpenRequest reads the document of ls_open.
func ReadOpenRequest(doc *jsondoc.Value) OpenRequest {
	req := OpenRequest{Params: doc.Get("params"), Tables: ReadTables(doc.Get("tables"))}
	req.Seed, _ = doc.Get("seed").Int()
	slot, _ := doc.Get("key_slot").Int()
	slots, _ := doc.Get("key_slots").Int()
	req.KeySlots = int(max(slots, 1))
	req.KeySlot = int(slot)
	req.Pools, req.Values = readPools(doc.Get("pools")), readPools(doc.Get("values"))
	for i := 0; i < doc.Get("free").Len(); i++ {
		req.Free = append(req.Free, readFree(doc.Get("free").At(i)))
	}
	return req
}

// maxFree bounds the combinations of free rows.
const maxFree = 1 << 26

func readFree(doc *jsondoc.Value) FreePool {
	how, columns, rows := doc.Get("free"), doc.Get("columns").Strings(), doc.Get("rows")
	f := FreePool{Table: doc.Get("table").Str(), Constraint: how.Get("constraint").Strings()}
	split, _ := how.Get("columns").Int()
	left, _ := how.Get("left").Int()
	split, left = max(0, min(split, int64(len(columns)))), max(0, min(left, int64(rows.Len())))
	f.Left = Pool{Table: f.Table, Columns: columns[:split], Rows: rows.Slice(0, int(left))}
	f.Right = Pool{Table: f.Table, Columns: columns[split:], Rows: rows.Slice(int(left), rows.Len())}
	right := int64(f.Right.Rows.Len())
	if right == 0 || left > maxFree/right {
		return f
	}
	f.Taken = make([]uint64, (left*right+63)/64)
	for l := int64(0); l < left; l++ {
		for at, digit := range []byte(how.Get("taken").At(int(l)).Str()) {
			bits := int64(digit - '0')
			if digit >= 'a' {
				bits = int64(digit-'a') + 10
			}
			for bit := int64(0); bit < 4; bit++ {
				if r := 4*int64(at) + bit; bits>>bit&1 == 1 && r < right {
					f.Taken[(l*right+r)/64] |= 1 << ((l*right + r) % 64)
				}
			}
		}
	}
	return f
}

func readPools(doc *jsondoc.Value) []Pool {
	var list []Pool
	for i := 0; i < doc.Len(); i++ {
		p := doc.At(i)
		keys := KeyList{Pool: uint8(i), Columns: p.Get("keys").Get("columns").Strings(),
			Types: p.Get("keys").Get("types").Strings()}
		if i <= 255 {
			keys.Count, _ = p.Get("keys").Get("count").Int()
		}
		list = append(list,
			Pool{Table: p.Get("table").Str(), Columns: p.Get("columns").Strings(), Rows: p.Get("rows"), Keys: keys})
	}
	return list
}

// ReadTables reads an array of tables.
func ReadTables(doc *jsondoc.Value) []Table {
	var tables []Table
	for i := 0; i < doc.Len(); i++ {
		tables = append(tables, ReadTable(doc.At(i)))
	}
	return tables
}

// ReadTable reads one table.
func ReadTable(doc *jsondoc.Value) Table {
	t := Table{Name: doc.Get("name").Str(), PhysicalName: doc.Get("physical_name").Str(),
		Key: doc.Get("key").Strings(), Dense: doc.Get("dense").Bool(), Dialect: doc.Get("dialect").Str(),
		Own: doc.Get("own").Bool()}
	t.Rows, _ = doc.Get("rows").Int()
	var hasMin, hasMax, hasDense bool
	t.KeyMin, hasMin = doc.Get("key_min").Int()
	t.KeyMax, hasMax = doc.Get("key_max").Int()
	t.HasRange = hasMin && hasMax
	if t.DenseMax, hasDense = doc.Get("dense_max").Int(); !hasDense {
		t.DenseMax = t.KeyMin - 1
	}
	for i := 0; i < doc.Get("columns").Len(); i++ {
		c := doc.Get("columns").At(i)
		length, _ := c.Get("max_length").Int()
		top, hasTop := c.Get("top").Int()
		t.Columns = append(
			t.Columns,
			Column{
				Fresh:      c.Get("fresh").Bool(),
				Top:        top,
				HasTop:     hasTop,
				Name:       c.Get("name").Str(),
				Type:       c.Get("type").Str(),
				DBType:     c.Get("db_type").Str(),
				Nullable:   c.Get("nullable").Bool(),
				HasDefault: c.Get("has_default").Bool(),
				Generated:  c.Get("generated").Bool(),
				Unique:     c.Get("unique").Bool(),
				MaxLength:  int(length),
			},
		)
	}
	t.Nonce, _ = doc.Get("nonce").Int()
	for i := 0; i < doc.Get("constraints").Len(); i++ {
		c := doc.Get("constraints").At(i)
		t.Constraints = append(t.Constraints, Constraint{Name: c.Get("name").Str(), Kind: c.Get("kind").Str(),
			Columns: c.Get("columns").Strings(), Equal: c.Get("equal").Strings(), References: c.Get("references").Str(),
			Self: c.Get("self").Bool(), Partial: c.Get("partial").Bool(), NullsEqual: c.Get("nulls_equal").Bool()})
		last := &t.Constraints[len(t.Constraints)-1]
		last.Parents, last.ParentsKnown = c.Get("parents").Int()
		last.Left, last.LeftKnown = c.Get("left").Int()
	}
	return t
}

// WriteConstraints writes an array of constraints.
func WriteConstraints(w *jsondoc.Writer, list []Constraint) {
	w.Array()
	for _, c := range list {
		w.Object().Key("kind").Str(c.Kind)
		optional(w, "name", c.Name)
		w.Key("columns").Strs(c.Columns)
		if len(c.Equal) > 0 {
			w.Key("equal").Strs(c.Equal)
		}
		optional(w, "references", c.References)
		for _, flag := range [...]struct {
			name string
			set  bool
		}{{"self", c.Self}, {"partial", c.Partial}, {"nulls_equal", c.NullsEqual}} {
			if flag.set {
				w.Key(flag.name).Bool(true)
			}
		}
		if c.ParentsKnown {
			w.Key("parents").Int(c.Parents)
		}
		if c.LeftKnown {
			w.Key("left").Int(c.Left)
		}
		w.EndObject()
	}
	w.EndArray()
}

// ReadLogicalTable reads a logical table.
func ReadLogicalTable(doc *jsondoc.Value) LogicalTable {
	t := LogicalTable{Name: doc.Get("name").Str(), Key: doc.Get("key").Strings(), AnyShape: doc.Get("any_shape").Bool(),
		Empty: doc.Get("empty").Bool(), SizedBy: doc.Get("sized_by").Str(), Varies: doc.Get("varies").Bool(),
		ComputedKeys: doc.Get("computed_keys").Bool(), OwnKeys: doc.Get("own_keys").Bool(),
		Inserts: doc.Get("inserts").Bool(),
		Options: readMap(doc.Get("options"))}
	t.Rows, _ = doc.Get("rows").Int()
	for i := 0; i < doc.Get("indexes").Len(); i++ {
		x := doc.Get("indexes").At(i)
		t.Indexes = append(t.Indexes,
			Index{Columns: x.Get("columns").Strings(), Unique: x.Get("unique").Bool(), Include: x.Get("include").Strings()})
	}
	for i := 0; i < doc.Get("columns").Len(); i++ {
		c := doc.Get("columns").At(i)
		t.Columns = append(t.Columns, LogicalColumn{Name: c.Get("name").Str(), Type: c.Get("type").Str(),
			Nullable: c.Get("nullable").Bool(), DBType: readMap(c.Get("db_type")), Fill: readFill(c.Get("fill"))})
	}
	return t
}

// ReadStatements reads an array of statements.
func ReadStatements(doc *jsondoc.Value) []Statement {
	var list []Statement
	for i := 0; i < doc.Len(); i++ {
		d := doc.At(i)
		limit, _ := d.Get("limit").Int()
		s := Statement{
			ID:          d.Get("id").Str(),
			Kind:        d.Get("kind").Str(),
			Table:       d.Get("table").Str(),
			Columns:     d.Get("columns").Strings(),
			Writes:      d.Get("writes").Bool(),
			Limit:       int(limit),
			SQL:         readMap(d.Get("sql")),
			Transaction: d.Get("transaction").Str(),
			Param:       d.Get("param").Str(),
			Note:        d.Get("note").Str(),
			Hint:        d.Get("hint").Str(),
			NoRowsHint:  d.Get("no_rows_hint").Str(),
			BindOrder:   readOrders(d.Get("bind_order")),
		}
		for j := 0; j < d.Get("binds").Len(); j++ {
			b := d.Get("binds").At(j)
			s.Binds = append(s.Binds, Bind{Name: b.Get("name").Str(), Type: b.Get("type").Str(), Column: b.Get("column").Str()})
		}
		list = append(list, s)
	}
	return list
}

func readOrders(doc *jsondoc.Value) map[string][]int {
	if doc.Len() == 0 {
		return nil
	}
	m := make(map[string][]int, doc.Len())
	for _, name := range doc.Names() {
		order := []int{}
		for i := 0; i < doc.Get(name).Len(); i++ {
			n, _ := doc.Get(name).At(i).Int()
			order = append(order, int(n))
		}
		m[name] = order
	}
	return m
}

func readMap(doc *jsondoc.Value) map[string]string {
	if doc.Len() == 0 {
		return nil
	}
	m := make(map[string]string, doc.Len())
	for _, name := range doc.Names() {
		m[name] = doc.Get(name).Str()
	}
	return m
}

// sortedNames are the names of a map, so that a document is the same every time.
func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	// A handful of names: insertion sort.
	for i := 1; i < len(names); i++ {
		for j := i; j > 0 && names[j] < names[j-1]; j-- {
			names[j], names[j-1] = names[j-1], names[j]
		}
	}
	return names
}

func writeMap(w *jsondoc.Writer, m map[string]string) {
	w.Object()
	for _, name := range sortedNames(m) {
		w.Key(name).Str(m[name])
	}
	w.EndObject()
}

func optional(w *jsondoc.Writer, name, value string) {
	if value != "" {
		w.Key(name).Str(value)
	}
}

// Write writes the manifest; kind is "workload" or "adapter".
func (m Manifest) Write(w *jsondoc.Writer, kind string) {
	w.Object().Key("kind").Str(kind).Key("name").Str(m.Name).Key("version").Str(m.Version)
	optional(w, "title", m.Title)
	optional(w, "description", m.Description)
	optional(w, "author", m.Author)
	if m.Parameters != "" {
		w.Key("parameters").Raw(m.Parameters)
	}
	if len(m.Tables) > 0 {
		WriteTables(w.Key("tables"), m.Tables)
	}
	if m.tablesVary {
		w.Key("tables_vary").Bool(true)
	}
	if m.Observes {
		w.Key("observes").Bool(true)
	}
	if m.Feed {
		w.Key("feed").Bool(true)
	}
	if len(m.Statements) > 0 {
		w.Key("statements")
		WriteStatements(w, m.Statements)
	}
	optional(w, "driver", m.Driver)
	optional(w, "dialect", m.Dialect)
	if len(m.Kinds) > 0 {
		w.Key("kinds").Strs(m.Kinds)
	}
	if m.Supports != nil {
		m.Supports.write(w.Key("supports"))
	}
	if m.Sends != nil {
		w.Key("sends").Object().Key("query").Strs(m.Sends.Query)
		if len(m.Sends.Statements) > 0 {
			w.Key("statements").Strs(m.Sends.Statements)
		}
		w.Key("ddl").Strs(m.Sends.DDL).Key("session").Strs(m.Sends.Session).EndObject()
	}
	w.EndObject()
}

// Write writes the table.
func (t LogicalTable) Write(w *jsondoc.Writer) {
	w.Object().Key("name").Str(t.Name).Key("columns").Array()
	for _, c := range t.Columns {
		w.Object().Key("name").Str(c.Name).Key("type").Str(c.Type).Key("nullable").Bool(c.Nullable)
		if len(c.DBType) > 0 {
			w.Key("db_type")
			writeMap(w, c.DBType)
		}
		if c.Fill != nil {
			c.Fill.write(w.Key("fill"))
		}
		w.EndObject()
	}
	w.EndArray().Key("key").Strs(t.Key)
	if t.Rows > 0 {
		w.Key("rows").Int(t.Rows)
	}
	optional(w, "sized_by", t.SizedBy)
	for _, flag := range [...]struct {
		name string
		set  bool
	}{{"empty", t.Empty}, {"varies", t.Varies}, {"computed_keys", t.ComputedKeys},
		{"own_keys", t.OwnKeys}, {"inserts", t.Inserts}} {
		if flag.set {
			w.Key(flag.name).Bool(true)
		}
	}
	if len(t.Indexes) > 0 {
		w.Key("indexes").Array()
		for _, x := range t.Indexes {
			w.Object().Key("columns").Strs(x.Columns).Key("unique").Bool(x.Unique)
			if len(x.Include) > 0 {
				w.Key("include").Strs(x.Include)
			}
			w.EndObject()
		}
		w.EndArray()
	}
	if len(t.Options) > 0 {
		w.Key("options")
		writeMap(w, t.Options)
	}
	w.Key("any_shape").Bool(t.AnyShape).EndObject()
}

// WriteTables writes an array of logical tables.
func WriteTables(w *jsondoc.Writer, list []LogicalTable) {
	w.Array()
	for _, t := range list {
		t.Write(w)
	}
	w.EndArray()
}

// WriteStatements writes an array of statements.
func WriteStatements(w *jsondoc.Writer, list []Statement) {
	w.Array()
	for _, s := range list {
		w.Object().Key("id").Str(s.ID).Key("kind").Str(s.Kind)
		optional(w, "table", s.Table)
		WriteBinds(w.Key("binds"), s.Binds)
		if len(s.Columns) > 0 {
			w.Key("columns").Strs(s.Columns)
		}
		w.Key("writes").Bool(s.Writes)
		if s.Limit > 0 {
			w.Key("limit").Int(int64(s.Limit))
		}
		if len(s.SQL) > 0 {
			w.Key("sql")
			writeMap(w, s.SQL)
		}
		optional(w, "transaction", s.Transaction)
		optional(w, "param", s.Param)
		optional(w, "note", s.Note)
		optional(w, "hint", s.Hint)
		optional(w, "no_rows_hint", s.NoRowsHint)
		if len(s.BindOrder) > 0 {
			w.Key("bind_order").Object()
			for _, dialect := range sortedNames(s.BindOrder) {
				WriteBindOrder(w.Key(dialect), s.BindOrder[dialect])
			}
			w.EndObject()
		}
		w.EndObject()
	}
	w.EndArray()
}

// WriteBindOrder writes which bind each parameter of a statement's SQL takes.
func WriteBindOrder(w *jsondoc.Writer, order []int) {
	w.Array()
	for _, n := range order {
		w.Int(int64(n))
	}
	w.EndArray()
}

// WriteBinds writes an array of binds.
func WriteBinds(w *jsondoc.Writer, binds []Bind) {
	w.Array()
	for _, b := range binds {
		w.Object().Key("name").Str(b.Name).Key("type").Str(b.Type)
		optional(w, "column", b.Column)
		w.EndObject()
	}
	w.EndArray()
}

// WriteColumn writes a column of an existing table.
func WriteColumn(w *jsondoc.Writer, c Column) {
	w.Object().Key("name").Str(c.Name).Key("type").Str(c.Type).Key("db_type").Str(c.DBType).
		Key("nullable").Bool(c.Nullable).Key("has_default").Bool(c.HasDefault).Key("generated").Bool(c.Generated)
	if c.Unique {
		w.Key("unique").Bool(true)
	}
	if c.MaxLength > 0 {
		w.Key("max_length").Int(int64(c.MaxLength))
	}
	if c.Fresh {
		w.Key("fresh").Bool(true)
	}
	if c.HasTop {
		w.Key("top").Int(c.Top)
	}
	w.EndObject()
}
