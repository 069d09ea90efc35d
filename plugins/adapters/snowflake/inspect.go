package snowflake

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/plugins/adapters/snowflake/dialect"
	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

const (
	countTimeout = 8_000 // ms
	// verifyLimit bounds the tables whose key is checked for duplicates and whose
	// dense part is looked for: both read the whole column.
	verifyLimit = 5_000_000
	sampleRows  = 20_000
	// sampleBytes leaves room for JSON around 1 MB of sampled values.
	sampleBytes   = 900_000
	sampleTimeout = 15_000 // ms
	// blockSampling is the size from which on whole micro-partitions are sampled
	// instead of rows: reading all of them would take too long.
	blockSampling = 10_000_000
)

// table is what inspecting has gathered so far.
type table struct {
	foundTable
	of      TableType
	columns []column
	key     []string
	// enforced: the database keeps the key unique.
	enforced bool
	rows     int64
	exact    bool
	// min and max of a single integer key.
	hasRange bool
	min, max int64
	dense    bool
	denseMax int64
	notes    []string
	// keySample is how many keys operations choose among at most.
	keySample int64
}

// inspect is a conversation: where is the table, what is its shape, how large is
// it, is its key dense, and, where it is not, which keys are there. Of one that is going to be dropped
// only the first two are asked.
func (a Adapter) inspect(req *jsondoc.Value, w *jsondoc.Writer) error {
	t, done, err := a.findTable(req, w)
	if err != nil || !done {
		return err
	}
	if t == nil {
		w.Object().Key("exists").Bool(false).EndObject()
		return nil
	}
	if done, err = t.shape(req, w); err != nil || !done {
		return err
	}
	if req.Get("recreate").Bool() {
		t.write(w, nil, sdk.Result{}, false) // no row of it is going to be looked up
		return nil
	}
	if done = t.keys(req, w); !done {
		return nil
	}
	var sampled []column
	if !req.Get("logical").Get("computed_keys").Bool() {
		sampled = t.sampleColumns()
	}
	sample := sdk.Result{}
	if len(sampled) > 0 && t.rows != 0 {
		if sample = sdk.ResultOf(req, "sample"); !sample.Asked {
			sdk.Ask(w, t.sampleQuery(sampled, true))
			return nil
		}
		if sample.Rows.Len() < int(min(100, t.rows)) {
			// The sampled blocks were empty, or a sample is not possible here.
			if sample = sdk.ResultOf(req, "first"); !sample.Asked {
				sdk.Ask(w, t.sampleQuery(sampled, false))
				return nil
			}
		}
		if sample.Err != "" {
			t.notes = append(t.notes, "Sampling "+t.name.SQL()+" failed: "+sample.Err)
		}
	}
	t.write(w, sampled, sample, !req.Get("logical").Get("computed_keys").Bool())
	return nil
}

// findTable finds the table; nil when there is none. done is false while the host is being asked.
func (a Adapter) findTable(req *jsondoc.Value, w *jsondoc.Writer) (t *table, done bool, err error) {
	name, err := dialect.ParseName(req.Get("table_name").Str())
	if err != nil {
		return nil, false, err
	}
	here, r := sdk.ResultOf(req, "where"), sdk.ResultOf(req, "resolve")
	if !r.Asked {
		sdk.Ask(w, sdk.Query{ID: whereQuery.ID, SQL: where(req)}, name.ResolveQuery())
		return nil, false, nil
	}
	row := here.Rows.At(0)
	switch {
	case here.Err == "" && name.Database.Text == "" && row.At(0).Str() == "":
		return nil, false, dialect.BadName("the connection chooses no database, and the name "+name.SQL()+" names none",
			"give the connection a database and a schema, or write database.schema.table; the role needs USAGE on the database")
	case here.Err == "" && name.Schema.Text == "" && row.At(1).Str() == "":
		return nil, false, dialect.BadName("the connection chooses no schema, and the name "+name.SQL()+" names none",
			"give the connection a schema, or write schema.table; the role needs USAGE on it")
	case r.Err != "":
		return nil, false, errors.New("looking for table " + name.SQL() + ": " + r.Err)
	}
	f, ok := readFound(r)
	if !ok {
		return nil, true, nil
	}
	return &table{foundTable: f, of: a.tableType}, true, nil
}

// shape asks for columns, keys and the number of rows.
func (t *table) shape(req *jsondoc.Value, w *jsondoc.Writer) (done bool, err error) {
	options, err := readOptions(req)
	if err != nil {
		return false, err
	}
	t.keySample = options.keySample
	r := sdk.ResultOf(req, "columns")
	if !r.Asked {
		in := " IN TABLE " + t.name.SQL()
		ask := []sdk.Query{columnsQuery(t.name),
			{ID: "count", TimeoutMs: countTimeout, SQL: "SELECT COUNT(*) FROM " + t.name.SQL()}}
		if t.kind != "VIEW" {
			ask = append(ask, sdk.Query{ID: "primary", SQL: "SHOW PRIMARY KEYS" + in},
				sdk.Query{ID: "unique", SQL: "SHOW UNIQUE KEYS" + in},
				sdk.Query{ID: "imported", SQL: "SHOW IMPORTED KEYS" + in},
				sdk.Query{ID: "show", SQL: "SHOW TABLES LIKE " + dialect.Pattern(t.name.Table.Text) + " IN SCHEMA " +
					dialect.Quoted(t.name.Database.Text) + "." + dialect.Quoted(t.name.Schema.Text)})
		}
		sdk.Ask(w, ask...)
		return false, nil
	}
	if r.Err != "" {
		return false, errors.New("reading the columns of " + t.name.SQL() + ": " + r.Err)
	}
	if t.columns = readColumns(r); len(t.columns) == 0 {
		return false, errors.New("table " + t.name.SQL() + " has no columns that the role may see: grant SELECT on it")
	}
	if err := t.readType(req); err != nil {
		return false, err
	}
	if err := t.chooseKey(req, options); err != nil {
		return false, err
	}
	markUnique(sdk.ResultOf(req, "unique"), t.columns, t.key)
	markReferring(sdk.ResultOf(req, "imported"), t.columns)
	count := sdk.ResultOf(req, "count")
	if n, ok := count.Rows.At(0).At(0).Int(); ok && count.Err == "" {
		t.rows, t.exact = n, true
		return true, nil
	}
	if noPrivilege(count) {
		return false, &sdk.RefusalError{Field: dialect.NameField, Message: "the role may not read the table " + t.name.SQL(),
			Hint: "GRANT SELECT ON TABLE " + t.name.SQL() + " TO ROLE …"}
	}
	t.rows = max(t.estimate, 1)
	t.notes = append(t.notes, "The rows of "+t.name.SQL()+" were not counted ("+count.Err+
		"); Snowflake's own count is used.")
	return true, nil
}

// noPrivilege reports an error of access; Snowflake says "does not exist or not authorized".
func noPrivilege(r sdk.Result) bool {
	return strings.Contains(r.Err, "not authorized") || strings.Contains(r.Err, "nsufficient privileges")
}

// readType compares the type of the table with the adapter's. Flags that a
// release does not show are taken for granted.
func (t *table) readType(req *jsondoc.Value) error {
	r := sdk.ResultOf(req, "show")
	for i := 0; i < r.Rows.Len(); i++ {
		if field(r, i, "name") != t.name.Table.Text {
			continue
		}
		is := Standard
		switch {
		case shows(r, i, "is_hybrid") || field(r, i, "kind") == "HYBRID TABLE":
			is = Hybrid
		case shows(r, i, "is_interactive") || field(r, i, "kind") == "INTERACTIVE TABLE":
			is = Interactive
		case t.of == Interactive && !has(r, "is_interactive"), t.of == Hybrid && !has(r, "is_hybrid"):
			is = t.of
		}
		if is != t.of && !req.Get("recreate").Bool() {
			return &sdk.RefusalError{Field: "target.adapter", Message: "the table " + t.name.SQL() + " is " + article(is) +
				" table, and the template asks for " + article(t.of) + " one",
				Hint: "use the adapter snowflake_" + is.String() + ", or name another table"}
		}
		t.enforced = is == Hybrid
		if by := field(r, i, "cluster_by"); by != "" {
			t.notes = append(t.notes, t.name.SQL()+" is clustered by "+by+".")
		}
	}
	return nil
}

func article(t TableType) string {
	if t == Interactive {
		return "an " + t.String()
	}
	return "a " + t.String()
}

func has(r sdk.Result, column string) bool {
	for _, c := range r.Columns {
		if strings.EqualFold(c, column) {
			return true
		}
	}
	return false
}

// shows reports a flag of SHOW TABLES.
func shows(r sdk.Result, row int, column string) bool {
	switch strings.ToUpper(field(r, row, column)) {
	case "Y", "YES", "TRUE":
		return true
	}
	return false
}

// chooseKey takes the declared key, or else that of the template, or that of the workload.
func (t *table) chooseKey(req *jsondoc.Value, o options) error {
	if t.key = readKey(sdk.ResultOf(req, "primary")); len(t.key) > 0 {
		return nil
	}
	t.enforced = false
	if len(o.key) > 0 {
		for _, name := range o.key {
			c := t.column(name)
			if c == nil {
				return &sdk.RefusalError{Field: "target.params.key", Message: "the table " + t.name.SQL() + " has no column " +
					strconv.Quote(name), Hint: "its columns are " + t.columnNames()}
			}
			t.key = append(t.key, c.Name)
		}
		return nil
	}
	var key []string
	for _, name := range req.Get("logical").Get("key").Strings() {
		c := t.column(name)
		if c == nil {
			return nil
		}
		key = append(key, c.Name)
	}
	if len(key) > 0 {
		t.key = key
		if t.of != Interactive {
			t.notes = append(t.notes, t.name.SQL()+" declares no primary key; rows are found by "+dialect.QuotedList(key)+
				", the workload's key.")
		}
	}
	return nil
}

// column finds a column by its name, whatever its case if there is no exact one.
func (t *table) column(name string) *column {
	var near *column
	for i := range t.columns {
		if t.columns[i].Name == name {
			return &t.columns[i]
		}
		if strings.EqualFold(t.columns[i].Name, name) && near == nil {
			near = &t.columns[i]
		}
	}
	return near
}

func (t *table) columnNames() string {
	var names []string
	for _, c := range t.columns {
		names = append(names, c.Name)
	}
	return strings.Join(names, ", ")
}

// keys asks for the range and the density of a single integer key.
func (t *table) keys(req *jsondoc.Value, w *jsondoc.Writer) (done bool) {
	if len(t.key) != 1 || t.rows == 0 {
		return true
	}
	k := t.column(t.key[0])
	if k == nil || k.Type != sdk.I64 {
		return true
	}
	c, from := dialect.Quoted(k.Name), " FROM "+t.name.SQL()
	r := sdk.ResultOf(req, "range")
	verify := t.exact && !t.enforced && t.rows <= verifyLimit
	if !r.Asked {
		ask := []sdk.Query{{ID: "range", TimeoutMs: countTimeout, SQL: "SELECT MIN(" + c + "), MAX(" + c + ")" + from}}
		if verify {
			ask = append(ask, sdk.Query{ID: "distinct", TimeoutMs: countTimeout, SQL: "SELECT COUNT(DISTINCT " + c + ")" + from})
		}
		sdk.Ask(w, ask...)
		return false
	}
	var okMin, okMax bool
	t.min, okMin = r.Rows.At(0).At(0).Int()
	t.max, okMax = r.Rows.At(0).At(1).Int()
	if t.hasRange = okMin && okMax; !t.hasRange {
		return true
	}
	t.denseMax = t.min - 1
	t.dense = t.exact && t.span() == uint64(t.rows)-1
	if n, ok := sdk.ResultOf(req, "distinct").Rows.At(0).At(0).Int(); verify && ok && n != t.rows {
		t.dense = false
		t.notes = append(t.notes, "The key "+c+" of "+t.name.SQL()+" is not unique: "+strconv.FormatInt(n, 10)+" values in "+
			strconv.FormatInt(t.rows, 10)+" rows.")
		return true
	}
	if t.dense || !t.exact || t.rows > verifyLimit || t.span()/4 > uint64(t.rows) {
		return true
	}
	if r = sdk.ResultOf(req, "density"); !r.Asked {
		sdk.Ask(w, sdk.Query{ID: "density", TimeoutMs: countTimeout,
			SQL: "SELECT MAX(K) FROM (SELECT " + c + " AS K, ROW_NUMBER() OVER (ORDER BY " + c + ") AS R" + from +
				") AS S WHERE K - (" + strconv.FormatInt(t.min, 10) + ") = R - 1"})
		return false
	}
	if n, ok := r.Rows.At(0).At(0).Int(); ok {
		t.denseMax = n
	}
	return true
}

// span is max − min, which may exceed an int64.
func (t *table) span() uint64 { return uint64(t.max) - uint64(t.min) }

// sampleColumns are the key, when it is not a dense integer, and the columns
// whose values a workload cannot make up.
func (t *table) sampleColumns() []column {
	var list []column
	covered := t.dense || t.hasRange && t.exact && t.denseMax-t.min+1 >= t.rows/2
	isKey := func(name string) bool {
		for _, k := range t.key {
			if k == name {
				return true
			}
		}
		return false
	}
	for _, name := range t.key {
		if c := t.column(name); c != nil && (!covered || c.sampled && len(t.key) > 1) {
			list = append(list, *c)
		}
	}
	for _, c := range t.columns {
		if c.sampled && !isKey(c.Name) && !c.Generated && !c.HasDefault {
			list = append(list, c)
		}
	}
	return list
}

// sampleQuery reads sampled rows, in key order. The sample is the same every time,
// where Snowflake allows a seed: not for views.
func (t *table) sampleQuery(columns []column, spread bool) sdk.Query {
	var list []string
	for _, c := range columns {
		list = append(list, sampleExpression(c))
	}
	order := ""
	if len(t.key) > 0 {
		order = " ORDER BY " + dialect.QuotedList(t.key)
	}
	from, id := t.name.SQL(), "first"
	if spread {
		id = "sample"
		if t.rows > 2*sampleRows {
			// A little less than wanted, so that what is over the limit is nearly never cut.
			percent := strconv.FormatFloat(95*float64(sampleRows)/float64(t.rows), 'f', 8, 64)
			method := " SAMPLE BERNOULLI ("
			if t.rows > blockSampling && t.of == Standard {
				method = " SAMPLE SYSTEM ("
			}
			from += method + percent + ")"
			if t.kind != "VIEW" {
				from += " SEED (1)"
			}
		}
	}
	return sdk.Query{ID: id, TimeoutMs: sampleTimeout, SQL: "SELECT " + strings.Join(list, ", ") + " FROM " +
		from + order + " LIMIT " + strconv.Itoa(sampleRows)}
}

const (
	keyTimeout = 120_000 // ms
	// partsSampling is the size from which on not all of the micro-partitions are read for keys, but many times more
	// of them than keys are wanted.
	partsSampling, partsFactor = 500_000_000, 20
)

// wantsKeys: the keys are not known by their range. A part of it without gaps that has more keys than could be read
// stands for them.
func (t *table) wantsKeys() bool {
	if len(t.key) == 0 || t.rows == 0 || t.dense {
		return false
	}
	return !t.hasRange || !t.exact || t.denseMax-t.min+1 < min(t.keySample, t.rows)
}

// keyQuery reads keys of the whole table in their order: all where there are no more than asked for.
func (t *table) keyQuery() string {
	var list []string
	for _, name := range t.key {
		if c := t.column(name); c != nil {
			list = append(list, sampleExpression(*c))
		}
	}
	from := t.name.SQL()
	if t.rows > t.keySample {
		want := float64(t.keySample)
		// Chance may give a little more than is wanted.
		share := max(want-4*math.Sqrt(want), 1) / float64(t.rows)
		percent := func(f float64) string { return "(" + strconv.FormatFloat(100*f, 'f', 8, 64) + ")" }
		seed := ""
		if t.kind != "VIEW" {
			seed = " SEED (1)"
		}
		if parts := share * partsFactor; t.rows > partsSampling && t.of == Standard && parts < 1 && seed != "" {
			from = "(SELECT * FROM " + from + " SAMPLE SYSTEM " + percent(parts) + seed + ") SAMPLE BERNOULLI " +
				percent(1.0/partsFactor)
		} else {
			from += " SAMPLE BERNOULLI " + percent(share) + seed
		}
	}
	return "SELECT " + strings.Join(list, ", ") + " FROM " + from + " ORDER BY " + dialect.QuotedList(t.key)
}

// write writes the final answer; with keys it says how they are read, where they are not all known.
func (t *table) write(w *jsondoc.Writer, sampled []column, sample sdk.Result, keys bool) {
	w.Object().Key("exists").Bool(true).Key("table").Object()
	w.Key("name").Str(t.name.Table.Text).Key("physical_name").Str(t.name.SQL()).Key("columns").Array()
	for _, c := range t.columns {
		sdk.WriteColumn(w, c.Column)
	}
	w.EndArray().Key("key").Strs(t.key).Key("rows").Int(t.rows).Key("rows_exact").Bool(t.exact)
	if t.hasRange {
		w.Key("key_min").Int(t.min).Key("key_max").Int(t.max)
		if t.exact && t.denseMax >= t.min && !t.dense {
			w.Key("dense_max").Int(t.denseMax)
		}
	} else {
		w.Key("key_min").Null().Key("key_max").Null()
	}
	w.Key("dense").Bool(t.dense).EndObject()
	if keys && t.wantsKeys() {
		w.Key("keys").Object().Key("sql").Str(t.keyQuery()).Key("columns").Strs(t.key).Key("timeout_ms").Int(keyTimeout).
			Key("limit").Int(t.keySample).EndObject()
	}
	if sample.Rows.Len() > 0 {
		t.writePool(w, sampled, sample)
	}
	if t.kind != "BASE TABLE" && t.kind != "" {
		t.notes = append(t.notes, t.name.SQL()+" is a "+strings.ToLower(t.kind)+".")
	}
	if len(t.notes) > 0 {
		w.Key("notes").Strs(t.notes)
	}
	w.EndObject()
}

// writePool writes the sampled rows, thinned out to what the contract allows.
func (t *table) writePool(w *jsondoc.Writer, sampled []column, sample sdk.Result) {
	size := 0
	for i := 0; i < sample.Rows.Len(); i++ {
		size += sampleWidth(sample.Rows.At(i), len(sampled))
	}
	step := 1 + size/sampleBytes
	w.Key("pool").Object().Key("table").Str(t.name.Table.Text).Key("columns").Array()
	for _, c := range sampled {
		w.Str(c.Name)
	}
	w.EndArray().Key("rows").Array()
	for i, written := 0, 0; i < sample.Rows.Len(); i += step {
		row := sample.Rows.At(i)
		if written += sampleWidth(row, len(sampled)); written > sampleBytes {
			break
		}
		w.Array()
		for j, c := range sampled {
			writeSample(w, c, row.At(j))
		}
		w.EndArray()
	}
	w.EndArray().EndObject()
}

// sampleWidth is about how many bytes a sampled row takes as JSON.
func sampleWidth(row *jsondoc.Value, columns int) int {
	width := 2
	for j := 0; j < columns; j++ {
		width += len(row.At(j).Str()) + 3
	}
	return width
}
