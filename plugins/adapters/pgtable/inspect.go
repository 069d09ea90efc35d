package pgtable

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

const (
	// countLimit bounds exact counts; larger tables are estimated.
	countLimit   = 5_000_000
	countTimeout = 8_000 // ms
	// sampleRows bounds the rows that the guest reads itself; keys are read by the host.
	sampleRows = 10_000
	// sampleBytes leaves room for JSON around 1 MB of sampled values.
	sampleBytes = 900_000
	// queryBytes is what the database sends of a sample at most.
	queryBytes    = 1_200_000
	sampleTimeout = 15_000 // ms
	probes        = 1_000
)

// table is what inspecting has gathered so far.
type table struct {
	foundTable
	columns []column
	key     []string
	rows    int64
	exact   bool
	// min and max of a single integer key.
	hasRange bool
	min, max int64
	dense    bool
	denseMax int64
	notes    []string
	// constraints are what binds the values of columns; readable for workloads that take a table as it is.
	constraints []sdk.Constraint
	// parents are the tables that foreign keys refer to, made rows for an empty table with their keys, checks what may be
	// asked of combinations of them.
	parents []parent
	made    madeRows
	checks  []check
	// free is the place of the unique constraint for which free rows were looked for, and of the foreign keys whose
	// parents they are of.
	free  *freeRows
	nonce int64
	// keySample is how many keys operations choose among at most.
	keySample int64
}

// inspect is a conversation: where is the table, what is its shape, how large is
// it, is its key dense, and, where it is not, which keys are there. Of one that is going to be dropped
// only the first two are asked.
func inspect(req *jsondoc.Value, w *jsondoc.Writer) error {
	name, err := parseName(req.Get("table_name").Str())
	if err != nil {
		return err
	}
	r := sdk.ResultOf(req, "resolve")
	if !r.Asked {
		sdk.Ask(w, name.resolveQuery())
		return nil
	}
	if r.Err != "" {
		return errors.New("looking for table " + name.sql() + ": " + r.Err)
	}
	t := &table{}
	var ok bool
	if t.foundTable, ok = readFound(r); !ok {
		w.Object().Key("exists").Bool(false).EndObject()
		return nil
	}
	if !t.readable {
		return errors.New("the user may not read table " + t.name.sql() + ": grant SELECT on it")
	}
	if !sdk.ResultOf(req, "columns").Asked {
		queries := []sdk.Query{columnsQuery(t.oid, t.kind), keysQuery(t.oid),
			{ID: "count", TimeoutMs: countTimeout, SQL: "SELECT count(*)::text FROM (SELECT 1 FROM " + t.name.sql() +
				" LIMIT " + strconv.Itoa(countLimit+1) + ") AS s"}}
		bound := t.oid
		if t.kind == "v" {
			bound = baseOf(t.oid)
		}
		sdk.Ask(w, append(queries, shapeQueries(t.oid, bound)...)...)
		return nil
	}
	if err := t.readShape(req); err != nil {
		return err
	}
	t.keySample = sdk.KeySample(req.Get("params"))
	if req.Get("recreate").Bool() {
		t.write(w, req, nil, sdk.Result{}, false) // no row of it is going to be looked up
		return nil
	}
	if req.Get("logical").Get("any_shape").Bool() && !t.writable(req, w) {
		return nil
	}
	if k := t.integerKey(); k != nil && t.rows != 0 {
		r := sdk.ResultOf(req, "range")
		if !r.Asked {
			sdk.Ask(w, t.rangeQuery(k))
			return nil
		}
		t.readRange(r)
		if t.hasRange && !t.dense && !t.tooSparse() {
			r := sdk.ResultOf(req, "density")
			if !r.Asked {
				sdk.Ask(w, t.densityQuery(k))
				return nil
			}
			t.readDensity(r)
		}
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
		if sample.Rows.Len() < min(100, int(t.rows)) {
			// The sampled blocks were empty, or a sample is not possible here.
			if sample = sdk.ResultOf(req, "first"); !sample.Asked {
				sdk.Ask(w, t.sampleQuery(sampled, false))
				return nil
			}
		}
		if sample.Err != "" {
			t.notes = append(t.notes, "Sampling "+t.name.sql()+" failed: "+sample.Err)
		}
	}
	t.write(w, req, sampled, sample, !req.Get("logical").Get("computed_keys").Bool())
	return nil
}

func (t *table) readShape(req *jsondoc.Value) error {
	r := sdk.ResultOf(req, "columns")
	if r.Err != "" {
		return errors.New("reading the columns of " + t.name.sql() + ": " + r.Err)
	}
	t.columns = readColumns(r)
	if len(t.columns) == 0 {
		return errors.New("table " + t.name.sql() + " has no columns")
	}
	t.key = readKey(sdk.ResultOf(req, "keys"), t.columns)
	if named := req.Get("params").Get("key").Strings(); len(named) > 0 {
		if err := t.nameKey(named); err != nil {
			return err
		}
	}
	t.readConstraints(req)
	for i := range t.columns {
		t.columns[i].sampled = t.columns[i].sampled || t.bound(t.columns[i].Name)
	}
	t.nonce, _ = sdk.ResultOf(req, "nonce").Rows.At(0).At(0).Int()
	count := sdk.ResultOf(req, "count")
	if n, ok := count.Rows.At(0).At(0).Int(); ok && n <= countLimit {
		t.rows, t.exact = n, true
		return nil
	}
	t.rows = int64(t.estimate)
	if _, ok := count.Rows.At(0).At(0).Int(); ok {
		t.rows = max(t.rows, countLimit+1)
	} else if t.rows <= 0 {
		// Never analysed and too slow to count: a guess from its size, at 100 bytes a row.
		t.rows = max(1, t.bytes/100)
		t.notes = append(t.notes, "The rows of "+t.name.sql()+" are a guess: counting took too long and the table was "+
			"never analysed.")
	}
	return nil
}

// nameKey takes the columns that the template names for finding rows: views have no
// key, and neither have some tables.
func (t *table) nameKey(named []string) error {
	t.key = nil
	for _, name := range named {
		found := ""
		var known []string
		for _, c := range t.columns {
			known = append(known, c.Name)
			if c.Name == name || found == "" && strings.EqualFold(c.Name, name) {
				found = c.Name
			}
		}
		if found == "" {
			return &sdk.RefusalError{Field: "target.params.key", Message: "the table " + t.name.sql() + " has no column " +
				strconv.Quote(name), Hint: "its columns are " + strings.Join(known[:min(len(known), 40)], ", ")}
		}
		t.key = append(t.key, found)
	}
	t.notes = append(t.notes, "Rows of "+t.name.sql()+" are found by ("+strings.Join(t.key, ", ")+
		"), as target.params.key says; without an index on it every lookup reads the whole table.")
	return nil
}

// integerKey returns the column of a single integer key, or nil.
func (t *table) integerKey() *column {
	if len(t.key) != 1 {
		return nil
	}
	for i := range t.columns {
		if t.columns[i].Name == t.key[0] && t.columns[i].Type == sdk.I64 {
			return &t.columns[i]
		}
	}
	return nil
}

func (t *table) rangeQuery(k *column) sdk.Query {
	c := quoted(k.Name)
	return sdk.Query{ID: "range", TimeoutMs: countTimeout, SQL: "SELECT min(" + c + "::int8)::text, max(" + c +
		"::int8)::text FROM (SELECT (SELECT " + c + " FROM " + t.name.sql() +
		" ORDER BY " + c + " LIMIT 1) AS " + c + " UNION ALL SELECT (SELECT " + c + " FROM " + t.name.sql() + " ORDER BY " +
		c + " DESC LIMIT 1)) AS s"}
}

func (t *table) readRange(r sdk.Result) {
	var okMin, okMax bool
	t.min, okMin = r.Rows.At(0).At(0).Int()
	t.max, okMax = r.Rows.At(0).At(1).Int()
	t.hasRange = okMin && okMax
	t.denseMax = t.min - 1
	t.dense = t.hasRange && t.exact && t.span() == uint64(t.rows)-1
}

// span is max − min, which may exceed an int64.
func (t *table) span() uint64 { return uint64(t.max) - uint64(t.min) }

// tooSparse: most of the range is gaps, so no dense part is worth looking for.
func (t *table) tooSparse() bool { return t.span()/4 > uint64(t.rows) }

// densityQuery looks for the end of the dense part of an exactly counted table;
// for larger ones it probes random keys of the range.
func (t *table) densityQuery(k *column) sdk.Query {
	c, lo := quoted(k.Name), strconv.FormatInt(t.min, 10)
	if t.exact {
		return sdk.Query{ID: "density", TimeoutMs: countTimeout, SQL: "SELECT max(k)::text FROM (SELECT " + c +
			"::int8 AS k, row_number() OVER (ORDER BY " + c + ") AS r FROM " + t.name.sql() +
			") AS s WHERE k - (" + lo + ") = r - 1"}
	}
	return sdk.Query{ID: "density", TimeoutMs: countTimeout, SQL: "SELECT count(*)::text FROM (SELECT (" + lo +
		") + floor(random() * " + strconv.FormatUint(t.span()+1, 10) +
		"::float8)::int8 AS k FROM generate_series(1, " + strconv.Itoa(probes) + ")) AS p WHERE EXISTS (SELECT 1 FROM " +
		t.name.sql() + " AS t WHERE t." + c + " = p.k)"}
}

func (t *table) readDensity(r sdk.Result) {
	n, ok := r.Rows.At(0).At(0).Int()
	switch {
	case !ok:
	case t.exact:
		t.denseMax = n
	case n == probes:
		t.dense = true
	}
}

// sampleColumns are the key, when it is not a dense integer, and the columns
// whose values a workload cannot make up.
func (t *table) sampleColumns() []column {
	var list []column
	covered := t.dense || t.hasRange && t.exact && t.denseMax-t.min+1 >= t.rows/2
	for _, name := range t.key {
		for _, c := range t.columns {
			if c.Name == name && (!covered || c.sampled && len(t.key) > 1) {
				list = append(list, c)
			}
		}
	}
	for _, c := range t.columns {
		isKey := false
		for _, name := range t.key {
			isKey = isKey || name == c.Name
		}
		if c.sampled && !isKey && !c.Generated && !c.HasDefault {
			list = append(list, c)
		}
	}
	return list
}

// sampleQuery reads sampled rows, in key order. Views and foreign tables have no
// TABLESAMPLE; small tables need none.
func (t *table) sampleQuery(columns []column, spread bool) sdk.Query {
	var order string
	if len(t.key) > 0 {
		var by []string
		for _, k := range t.key {
			by = append(by, quoted(k))
		}
		order = " ORDER BY " + strings.Join(by, ", ")
	}
	from, id := t.name.sql(), "first"
	if spread {
		id = "sample"
		if t.rows > 2*sampleRows && (t.kind == "r" || t.kind == "p" || t.kind == "m") {
			percent := min(100, 150*float64(sampleRows)/float64(t.rows))
			from += " TABLESAMPLE SYSTEM (" + strconv.FormatFloat(percent, 'f', 6, 64) + ") REPEATABLE (1)"
			// Every sampled block counts, so what is over the limit is cut at random.
			from = "(SELECT * FROM " + from + " ORDER BY random() LIMIT " + strconv.Itoa(sampleRows) + ") AS s"
		}
	}
	return sdk.Query{
		ID:        id,
		TimeoutMs: sampleTimeout,
		SQL: withinBytes(columns, from, order+" LIMIT "+strconv.Itoa(sampleRows),
			queryBytes),
	}
}

// keyTimeout bounds the reading of keys.
const keyTimeout = 120_000 // ms

// wantsKeys: the keys are not known by their range. A part of it without gaps that has more keys than could be read
// stands for them.
func (t *table) wantsKeys() bool {
	if len(t.key) == 0 || t.rows == 0 || t.dense {
		return false
	}
	return !t.hasRange || !t.exact || t.denseMax-t.min+1 < min(t.keySample, t.rows)
}

// keyQuery reads keys of the whole table in their order: all where there are no more than asked for, else some of as
// many blocks as there are keys to be had. Keys of neighbours would be read from the same few blocks later.
func (t *table) keyQuery() string {
	var list, by []string
	for _, name := range t.key {
		for _, c := range t.columns {
			if c.Name == name {
				list, by = append(list, sampleExpression(c)), append(by, quoted(name))
			}
		}
	}
	from, where := t.name.sql(), ""
	if !t.exact || t.rows > t.keySample {
		want, rows := float64(t.keySample), float64(max(t.rows, 1))
		// Chance may give a little more than is wanted.
		share := min(1, max(want-4*math.Sqrt(want), 1)/rows)
		blocks := max(float64(t.bytes)/8192, 1)
		if t.kind == "p" {
			blocks = max(blocks, rows/80)
		}
		read := max(share, min(1, want/blocks))
		percent := func(f float64) string { return strconv.FormatFloat(100*f, 'f', 8, 64) }
		switch sampling := t.kind == "r" || t.kind == "p" || t.kind == "m"; {
		case sampling && read >= 1 && share < 1:
			from += " TABLESAMPLE BERNOULLI (" + percent(share) + ") REPEATABLE (1)"
		case sampling && share < 1:
			from += " TABLESAMPLE SYSTEM (" + percent(read) + ") REPEATABLE (1)"
			where = " WHERE random() < " + strconv.FormatFloat(share/read, 'f', 8, 64)
		case share < 1:
			where = " WHERE random() < " + strconv.FormatFloat(share, 'f', 8, 64)
		}
	}
	return "SELECT " + strings.Join(list, ", ") + " FROM " + from + where + " ORDER BY " + strings.Join(by, ", ")
}

// write writes the final answer; with keys it says how they are read, where they are not all known.
func (t *table) write(w *jsondoc.Writer, req *jsondoc.Value, sampled []column, sample sdk.Result, keys bool) {
	w.Object().Key("exists").Bool(true).Key("table").Object()
	w.Key("name").Str(t.name.table).Key("physical_name").Str(t.name.sql()).Key("columns").Array()
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
	w.Key("dense").Bool(t.dense)
	if len(t.constraints) > 0 {
		sdk.WriteConstraints(w.Key("constraints"), t.constraints)
	}
	w.Key("nonce").Int(t.nonce).EndObject()
	if keys && t.wantsKeys() {
		w.Key("keys").Object().Key("sql").Str(t.keyQuery()).Key("columns").Strs(t.key).Key("timeout_ms").Int(keyTimeout).
			Key("limit").Int(t.keySample).EndObject()
	}
	t.writeValues(w, req)
	t.writeFree(w, req)
	if sample.Rows.Len() > 0 {
		t.writePool(w, sampled, sample)
	}
	switch t.kind {
	case "v":
		t.notes = append(t.notes, t.name.sql()+" is a view.")
	case "f":
		t.notes = append(t.notes, t.name.sql()+" is a foreign table: figures include the other server.")
	}
	if len(t.notes) > 0 {
		w.Key("notes").Strs(t.notes)
	}
	w.EndObject()
}

// hasNullKey: a part of the row's key is NULL, or a time that has no number, so that
// nothing finds it.
func (t *table) hasNullKey(sampled []column, row *jsondoc.Value) bool {
	for j, c := range sampled {
		for _, name := range t.key {
			if c.Name == name && row.At(j).IsNull() {
				return true
			}
		}
	}
	return false
}

// writePool writes as many evenly spread rows as fit.
func (t *table) writePool(w *jsondoc.Writer, sampled []column, sample sdk.Result) {
	size := 0
	for i := 0; i < sample.Rows.Len(); i++ {
		size += 2
		for j := range sampled {
			size += len(sample.Rows.At(i).At(j).Str()) + 3
		}
	}
	step := 1 + size/sampleBytes
	w.Key("pool").Object().Key("table").Str(t.name.table).Key("columns").Array()
	for _, c := range sampled {
		w.Str(c.Name)
	}
	w.EndArray().Key("rows").Array()
	written, without := 0, 0
	for i := 0; i < sample.Rows.Len(); i += step {
		row := sample.Rows.At(i)
		width := 2
		for j := range sampled {
			width += len(row.At(j).Str()) + 3
		}
		if t.hasNullKey(sampled, row) {
			without++
			continue
		}
		if written += width; written > sampleBytes {
			break
		}
		w.Array()
		for j, c := range sampled {
			writeSample(w, c, row.At(j))
		}
		w.EndArray()
	}
	if without > 0 {
		t.notes = append(t.notes, strconv.Itoa(without)+" sampled rows of "+t.name.sql()+
			" are not looked up: their key is NULL, or a time that operations cannot carry (infinity, years before 1 or "+
			"after 9999).")
	}
	w.EndArray().EndObject()
}
