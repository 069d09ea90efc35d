package pgtable

import (
	"errors"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

// target is the table that ddl and load speak of: the existing one, or the one
// that the name stands for. done is false while the host is being asked.
func target(req *jsondoc.Value, w *jsondoc.Writer) (name tableName, f foundTable, done bool, err error) {
	if name, err = parseName(req.Get("table_name").Str()); err != nil {
		return name, f, false, err
	}
	r := sdk.ResultOf(req, "resolve")
	if !r.Asked {
		sdk.Ask(w, name.resolveQuery())
		return name, f, false, nil
	}
	if r.Err != "" {
		return name, f, false, errors.New("looking for table " + name.sql() + ": " + r.Err)
	}
	if existing, ok := readFound(r); ok {
		return existing.name, existing, true, nil
	}
	return name, f, true, nil
}

// logicalTable reads and checks the table to make.
func logicalTable(req *jsondoc.Value) (sdk.LogicalTable, error) {
	t := sdk.ReadLogicalTable(req.Get("logical"))
	if len(t.Columns) == 0 {
		return t, errors.New("the workload declares no columns for its table, so it cannot be created")
	}
	for _, c := range t.Columns {
		if c.Name == "" || len(c.Name) > maxIdentifier || strings.IndexByte(c.Name, 0) >= 0 {
			return t, errors.New("the workload declares a column name that Postgres does not take: " + strconv.Quote(c.Name))
		}
		if text := dbType(c); escapes(text) {
			return t, errors.New("the workload declares a type that is none: " + strconv.Quote(text))
		}
	}
	if text := t.Options[dialect]; escapes(text) {
		return t, errors.New("the workload declares table options that are none: " + strconv.Quote(text))
	}
	keys := [][]string{t.Key}
	for _, x := range t.Indexes {
		if len(x.Columns) == 0 {
			return t, errors.New("the workload declares an index without columns")
		}
		keys = append(keys, x.Columns)
	}
	for _, key := range keys {
		for _, k := range key {
			known := false
			for _, c := range t.Columns {
				known = known || c.Name == k
			}
			if !known {
				return t, errors.New("the workload's key or index names a column that it does not declare: " + strconv.Quote(k))
			}
		}
	}
	return t, nil
}

// escapes reports that a piece of DDL could end the clause that it stands in.
func escapes(text string) bool {
	return strings.ContainsAny(text, ";\"'\\\x00") || strings.Contains(text, "--") || strings.Contains(text, "/*") ||
		strings.Count(text, "(") != strings.Count(text, ")")
}

func dbType(c sdk.LogicalColumn) string {
	if t := c.DBType[dialect]; t != "" {
		return t
	}
	switch c.Type {
	case sdk.I64:
		return "bigint"
	case sdk.F64:
		return "double precision"
	case sdk.Bytes:
		return "bytea"
	case sdk.Bool:
		return "boolean"
	case sdk.Timestamp:
		return "timestamp with time zone"
	}
	return "text"
}

// ddl writes how the table is made.
func ddl(req *jsondoc.Value, w *jsondoc.Writer) error {
	t, err := logicalTable(req)
	if err != nil {
		return err
	}
	name, existing, done, err := target(req, w)
	if err != nil || !done {
		return err
	}
	made := name
	var drop *dropImpact
	var list []string
	if req.Get("recreate").Bool() && existing.oid != "" {
		if drop, err = readDropImpact(req, w, existing); err != nil || drop == nil {
			return err
		}
		made = stagingTable(existing)
		// What an earlier process left behind when it was killed.
		list = append(list, "DROP TABLE IF EXISTS "+made.sql())
	}
	create := "CREATE TABLE " + made.sql() + " ("
	for i, c := range t.Columns {
		if i > 0 {
			create += ", "
		}
		create += quoted(c.Name) + " " + dbType(c)
		if !c.Nullable {
			create += " NOT NULL"
		}
	}
	create += ")"
	if text := t.Options[dialect]; text != "" {
		create += " " + text
	}
	list = append(list, create)
	// Rows are copied faster into a table without indexes.
	var after []string
	if len(t.Key) > 0 {
		after = append(after, "ALTER TABLE "+made.sql()+" ADD PRIMARY KEY ("+quotedList(t.Key)+")")
	}
	for i, x := range t.Indexes {
		unique, indexName := "", ""
		if x.Unique {
			unique = "UNIQUE "
		}
		if drop != nil {
			indexName = quoted(shortened(name.table)+"_"+existing.oid+"_"+strconv.Itoa(i+1)) + " "
		}
		after = append(after, "CREATE "+unique+"INDEX "+indexName+"ON "+made.sql()+" ("+quotedList(x.Columns)+")")
	}
	// VACUUM sets visibility and hint bits, so that the first run reads what later ones read.
	after = append(after, "VACUUM (ANALYZE) "+made.sql())
	w.Object().Key("ddl").Strs(list).Key("after_load").Strs(after)
	if drop != nil {
		swap := []string{"DROP TABLE " + name.sql(), "ALTER TABLE " + made.sql() + " RENAME TO " + quoted(name.table)}
		if len(t.Key) > 0 && len(name.table) <= maxIdentifier-len("_pkey") {
			swap = append(swap, "ALTER TABLE "+name.sql()+" RENAME CONSTRAINT "+quoted(made.table+"_pkey")+" TO "+
				quoted(name.table+"_pkey"))
		}
		w.Key("swap").Strs(swap).Key("notes").Strs([]string{drop.sentence(name)})
	}
	w.EndObject()
	return nil
}

func quotedList(names []string) string {
	var list []string
	for _, n := range names {
		list = append(list, quoted(n))
	}
	return strings.Join(list, ", ")
}

// load says where sample rows go.
func load(req *jsondoc.Value, w *jsondoc.Writer) error {
	t, err := logicalTable(req)
	if err != nil {
		return err
	}
	name, existing, done, err := target(req, w)
	if err != nil || !done {
		return err
	}
	if req.Get("recreate").Bool() && existing.oid != "" {
		name = stagingTable(existing)
	}
	w.Object().Key("load").Object().Key("table").Str(name.sql()).Key("columns").Array()
	for _, c := range t.Columns {
		sdk.WriteColumn(w, sdk.Column{Name: c.Name, Type: c.Type, DBType: dbType(c), Nullable: c.Nullable})
	}
	w.EndArray().EndObject().EndObject()
	return nil
}

// statements writes the SQL of each statement, in the same order.
func statements(req *jsondoc.Value, w *jsondoc.Writer) error {
	tables := sdk.ReadTables(req.Get("tables"))
	w.Object().Key("statements").Array()
	for _, s := range sdk.ReadStatements(req.Get("statements")) {
		var t *sdk.Table
		for i := range tables {
			if tables[i].Name == s.Table || s.Table == "" && len(tables) == 1 {
				t = &tables[i]
			}
		}
		text, err := writeSQL(s, t, tables)
		if err != nil {
			return errors.New("statement " + strconv.Quote(s.ID) + ": " + err.Error())
		}
		w.Object().Key("id").Str(s.ID).Key("kind").Str(s.Kind).Key("table").Str(s.Table).Key("sql").Str(text)
		sdk.WriteBinds(w.Key("binds"), s.Binds)
		if len(s.Columns) > 0 {
			w.Key("columns").Strs(s.Columns)
		}
		w.Key("writes").Bool(s.Writes).EndObject()
	}
	w.EndArray().Key("settle").Str(settle).EndObject()
	return nil
}

// parameter is the place of a bind. Bytes are told to be bytes: of a domain over them the protocol knows nothing.
func parameter(n int, b sdk.Bind) string {
	if b.Type == sdk.Bytes {
		return "$" + strconv.Itoa(n) + "::bytea"
	}
	return "$" + strconv.Itoa(n)
}

func writeSQL(s sdk.Statement, t *sdk.Table, all []sdk.Table) (string, error) {
	for _, d := range [...]string{dialect, "*", "ansi", "sql"} {
		if text := s.SQL[d]; text != "" {
			if strings.Contains(text, "{table}") {
				if t == nil {
					return "", errors.New("its SQL names {table}, but there is no table " + strconv.Quote(s.Table))
				}
				text = strings.ReplaceAll(text, "{table}", t.PhysicalName)
			}
			if strings.Contains(text, "{table:") {
				for _, other := range all {
					text = strings.ReplaceAll(text, "{table:"+other.Name+"}", other.PhysicalName)
				}
				if _, rest, left := strings.Cut(text, "{table:"); left {
					name, _, _ := strings.Cut(rest, "}")
					return "", errors.New("its SQL names {table:" + name + "}, but there is no table " + strconv.Quote(name))
				}
			}
			return text, nil
		}
	}
	if t == nil {
		return "", errors.New("there is no table " + strconv.Quote(s.Table))
	}
	for i, b := range s.Binds {
		last := i == len(s.Binds)-1 && s.Kind == sdk.RangeScan && s.Limit == 0
		if t.Column(b.Column) == nil && !last {
			return "", errors.New("table " + t.PhysicalName + " has no column " + strconv.Quote(b.Column))
		}
	}
	switch s.Kind {
	case sdk.PointLookup:
		where, err := equals(s.Binds, 1)
		return "SELECT " + columnList(s, t) + " FROM " + t.PhysicalName + where, err
	case sdk.RangeScan:
		return scanSQL(s, t)
	case sdk.Insert:
		return insertSQL(s, t)
	case sdk.Update:
		return updateSQL(s, t)
	case sdk.Delete:
		where, err := equals(s.Binds, 1)
		return "DELETE FROM " + t.PhysicalName + where, err
	}
	return "", errors.New("a " + s.Kind + " statement needs SQL of its own for " + dialect)
}

func columnList(s sdk.Statement, t *sdk.Table) string {
	if len(s.Columns) > 0 {
		return quotedList(s.Columns)
	}
	var names []string
	for _, c := range t.Columns {
		names = append(names, c.Name)
	}
	return quotedList(names)
}

// equals writes the WHERE clause that compares each bind with its column.
func equals(binds []sdk.Bind, first int) (string, error) {
	if len(binds) == 0 {
		return "", errors.New("it names no key, and would touch every row")
	}
	var list []string
	for i, b := range binds {
		list = append(list, quoted(b.Column)+" = "+parameter(first+i, b))
	}
	return " WHERE " + strings.Join(list, " AND "), nil
}

func scanSQL(s sdk.Statement, t *sdk.Table) (string, error) {
	binds, limit := s.Binds, strconv.Itoa(s.Limit)
	if s.Limit == 0 {
		if len(binds) < 2 || binds[len(binds)-1].Column != "" {
			return "", errors.New("a range scan needs a limit")
		}
		limit = "$" + strconv.Itoa(len(binds))
		binds = binds[:len(binds)-1]
	}
	if len(binds) == 0 {
		return "", errors.New("a range scan needs a key to begin at")
	}
	var names, positions []string
	for i, b := range binds {
		names = append(names, quoted(b.Column))
		positions = append(positions, parameter(i+1, b))
	}
	order := strings.Join(names, ", ")
	left, right := order, strings.Join(positions, ", ")
	if len(names) > 1 {
		left, right = "("+left+")", "("+right+")"
	}
	return "SELECT " + columnList(s, t) + " FROM " + t.PhysicalName + " WHERE " + left + " >= " + right + " ORDER BY " +
		order + " LIMIT " + limit, nil
}

func insertSQL(s sdk.Statement, t *sdk.Table) (string, error) {
	if len(s.Binds) == 0 {
		return "INSERT INTO " + t.PhysicalName + " DEFAULT VALUES", nil
	}
	var names, positions []string
	for i, b := range s.Binds {
		names = append(names, quoted(b.Column))
		positions = append(positions, parameter(i+1, b))
	}
	return "INSERT INTO " + t.PhysicalName + " (" + strings.Join(
		names,
		", ",
	) + ") VALUES (" + strings.Join(
		positions,
		", ",
	) +
		")", nil
}

func updateSQL(s sdk.Statement, t *sdk.Table) (string, error) {
	set := 0
	for set < len(s.Binds) && !t.IsKey(s.Binds[set].Column) {
		set++
	}
	if set == 0 {
		return "", errors.New("an update needs a column to set before the key")
	}
	var list []string
	for i, b := range s.Binds[:set] {
		list = append(list, quoted(b.Column)+" = "+parameter(i+1, b))
	}
	where, err := equals(s.Binds[set:], set+1)
	return "UPDATE " + t.PhysicalName + " SET " + strings.Join(list, ", ") + where, err
}
