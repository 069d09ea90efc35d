package pgtable

import (
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

const (
	// parentRows bounds the rows that are taken from a table that foreign keys refer to; freeSide bounds those of one of
	// two such tables, freeRows their combinations, and freeAlone the rows where there is one such table.
	parentRows, freeSide, maxFreeRows, freeAlone = 2_000, 20_000, 1_000_000, 20_000
	// parentLimit is how far such a table is read.
	parentLimit = 200_000
	// parentTimeout bounds a query of theirs.
	parentTimeout = 15_000 // ms
)

// parentPatterns are the queries of other tables: keys of those that foreign keys refer to.
const (
	leftPattern  = "loadstone_left ({names}) AS (SELECT {names} FROM {name} WHERE ({names}) IS NOT NULL LIMIT {value})"
	rightPattern = "loadstone_right ({names}) AS (SELECT {names} FROM {name} WHERE ({names}) IS NOT NULL LIMIT {value})"
	// What follows reads the table itself, and what stands above.
	pairsPattern = "loadstone_a AS ({reads " + functions + "}), loadstone_b AS ({reads " + functions +
		"}), loadstone_taken AS ({reads " + functions + "})"
)

// parent is a table that a foreign key refers to.
type parent struct {
	// constraint is the place of the foreign key among the table's constraints.
	constraint int
	columns    []string
	name       tableName
	// keys are the columns that it refers to, in the order of columns, as a list of SQL.
	keys string
}

// order is a CHECK that compares two columns: left, an operator, right.
type order struct{ left, operator, right string }

// readOrder reads a CHECK of the form (a <> b).
func (t *table) readOrder(expression string) {
	text := strings.Trim(expression, "()")
	for _, operator := range [...]string{" <> ", " <= ", " >= ", " < ", " > "} {
		left, right, ok := strings.Cut(text, operator)
		if !ok {
			continue
		}
		o := order{t.bare(left), strings.TrimSpace(operator), t.bare(right)}
		if o.left != "" && o.right != "" {
			t.orders = append(t.orders, o)
		}
		return
	}
}

// bare is the column that an expression names and nothing else, "" where it is more.
func (t *table) bare(expression string) string {
	for _, c := range t.columns {
		if expression == c.Name || expression == quoted(c.Name) {
			return c.Name
		}
	}
	return ""
}

// freeRows says which rows are looked for that the table does not have: those of one unique constraint.
type freeRows struct {
	constraint  int
	left, right *parent
}

// alias names the columns of parents in queries.
func alias(prefix string, n int) string {
	var names []string
	for i := range n {
		names = append(names, prefix+strconv.Itoa(i))
	}
	return strings.Join(names, ", ")
}

// with is the beginning of a query of a parent's keys.
func (p *parent) with(name, prefix string, limit int) string {
	return name + " (" + alias(prefix, len(p.columns)) + ") AS (SELECT " + p.keys + " FROM " + p.name.sql() + " WHERE (" +
		p.keys + ") IS NOT NULL LIMIT " + strconv.Itoa(limit) + ")"
}

// texts are the parent's keys as the texts that readSample understands.
func (t *table) texts(p *parent, from, prefix string) []string {
	var list []string
	for i, name := range p.columns {
		for _, c := range t.columns {
			if c.Name == name {
				c.Name = prefix + strconv.Itoa(i)
				list = append(list, strings.ReplaceAll(sampleExpression(c), quoted(c.Name), from+"."+c.Name))
			}
		}
	}
	return list
}

// findFree looks for a unique constraint that nothing but values of other tables makes new: no column of it is free,
// and one or two foreign keys lie in it. A table takes new rows of the first one alone.
func (t *table) findFree() *freeRows {
	for i, c := range t.constraints {
		if c.Kind != sdk.Unique || c.Partial || !t.allTied(c) {
			continue
		}
		f := &freeRows{constraint: i}
		for j := range t.parents {
			p := &t.parents[j]
			if !within(p.columns, c.Columns) {
				continue
			}
			switch {
			case f.left == nil:
				f.left = p
			case overlap(f.left.columns, p.columns):
				if len(p.columns) > len(f.left.columns) {
					f.left = p
				}
			case f.right == nil:
				f.right = p
			}
		}
		if f.left != nil {
			return f
		}
	}
	return nil
}

// allTied reports that no column of a constraint takes a value that is made up, or NULL.
func (t *table) allTied(c sdk.Constraint) bool {
	for _, name := range c.Columns {
		for _, column := range t.columns {
			if column.Name != name {
				continue
			}
			if column.Nullable || column.Fresh || column.Generated || !column.sampled && !t.bound(name) {
				return false
			}
		}
	}
	return len(c.Columns) > 0
}

func within(columns, all []string) bool {
	for _, name := range columns {
		if !overlap([]string{name}, all) {
			return false
		}
	}
	return true
}

func overlap(a, b []string) bool {
	for _, x := range a {
		for _, y := range b {
			if x == y {
				return true
			}
		}
	}
	return false
}

// parentQueries ask for the keys of other tables: those that go together to rows which the table does not have, and,
// where it is empty, some of each.
func (t *table) parentQueries() []sdk.Query {
	var list []sdk.Query
	if t.free = t.findFree(); t.free != nil {
		list = append(list, sdk.Query{ID: "free", TimeoutMs: parentTimeout, SQL: t.freeQuery(t.free)})
	}
	if t.rows != 0 {
		return list
	}
	for i := range t.parents[:min(len(t.parents), mostReferences)] {
		p := &t.parents[i]
		if t.constraints[p.constraint].Self {
			continue
		}
		list = append(list, sdk.Query{ID: "parent:" + strconv.Itoa(i), TimeoutMs: parentTimeout,
			SQL: "WITH " + p.with("loadstone_left", "k", parentLimit) + " SELECT " +
				strings.Join(t.texts(p, "l", "k"), ", ") + " FROM loadstone_left AS l ORDER BY random() LIMIT " +
				strconv.Itoa(parentRows)})
	}
	return list
}

// freeQuery asks for rows of one or two other tables, with those combinations of them that the table has.
func (t *table) freeQuery(f *freeRows) string {
	matches := func(p *parent, from, prefix string) string {
		var list []string
		for i, name := range p.columns {
			list = append(list, "t."+quoted(name)+" = "+from+"."+prefix+strconv.Itoa(i))
		}
		return strings.Join(list, " AND ")
	}
	from := t.name.sql() + " AS t"
	if f.right == nil {
		return "WITH " + f.left.with("loadstone_left", "k", 5*parentLimit) + " SELECT 'a', " +
			strings.Join(t.texts(f.left, "l", "k"), ", ") + " FROM loadstone_left AS l WHERE NOT EXISTS (SELECT 1 FROM " + from +
			" WHERE " + matches(f.left, "l", "k") + ") ORDER BY random() LIMIT " + strconv.Itoa(freeAlone)
	}
	side := func(name, of, other string) string {
		return name + " AS (SELECT row_number() OVER () - 1 AS n, s.* FROM (SELECT * FROM " + of +
			" ORDER BY random() LIMIT (SELECT least(" + strconv.Itoa(freeSide) + ", greatest(1000, " +
			strconv.Itoa(maxFreeRows) + " / greatest(count(*), 1))) FROM " + other + ")) AS s)"
	}
	texts := func(p *parent, from, prefix string) string {
		list := t.texts(p, from, prefix)
		for len(list) < max(len(f.left.columns), len(f.right.columns)) {
			list = append(list, "NULL")
		}
		return strings.Join(list, ", ")
	}
	taken := "SELECT a.n AS x, b.n AS y FROM " + from + " JOIN loadstone_a AS a ON (" + matches(f.left, "a", "k") +
		") JOIN loadstone_b AS b ON (" + matches(f.right, "b", "m") + ")"
	for _, o := range t.orders {
		if against := t.against(f, o); against != "" {
			taken += " UNION SELECT a.n, b.n FROM loadstone_a AS a JOIN loadstone_b AS b ON (" + against + ")"
		}
	}
	return "WITH " + f.left.with("loadstone_left", "k", parentLimit) + ", " +
		f.right.with("loadstone_right", "m", parentLimit) + ", " +
		side("loadstone_a", "loadstone_left", "loadstone_right") + ", " +
		side("loadstone_b", "loadstone_right", "loadstone_left") + ", loadstone_taken AS (" + taken + ") SELECT 'a', " +
		texts(f.left, "a", "k") + ", (SELECT string_agg(g.y::text, ' ') FROM loadstone_taken AS g WHERE g.x = a.n) " +
		"FROM loadstone_a AS a UNION ALL SELECT 'b', " + texts(f.right, "b", "m") + ", NULL FROM loadstone_b AS b"
}

// against is the condition under which a row of each side breaks a CHECK that compares them, "" where it is about
// others.
func (t *table) against(f *freeRows, o order) string {
	place := func(name string) (string, bool) {
		for i, c := range f.left.columns {
			if c == name {
				return "a.k" + strconv.Itoa(i), true
			}
		}
		for i, c := range f.right.columns {
			if c == name {
				return "b.m" + strconv.Itoa(i), false
			}
		}
		return "", false
	}
	left, ofLeft := place(o.left)
	right, alsoLeft := place(o.right)
	if left == "" || right == "" || ofLeft == alsoLeft {
		return ""
	}
	opposite := map[string]string{"<>": "=", "<": ">=", ">": "<=", "<=": ">", ">=": "<"}
	return left + " " + opposite[o.operator] + " " + right
}

// readParents notes what was found of other tables.
func (t *table) readParents(req *jsondoc.Value) {
	for i := range t.parents {
		p := &t.parents[i]
		found := sdk.ResultOf(req, "parent:"+strconv.Itoa(i))
		switch c := &t.constraints[p.constraint]; {
		case !found.Asked:
		case found.Err != "":
			t.notes = append(t.notes, "The rows of "+p.name.sql()+", to which the foreign key "+quoted(c.Name)+" of "+
				t.name.sql()+" refers, could not be read: "+found.Err)
		default:
			c.Parents, c.ParentsKnown = int64(found.Rows.Len()), true
		}
	}
	if t.free == nil {
		return
	}
	found := sdk.ResultOf(req, "free")
	if found.Err != "" {
		t.notes = append(
			t.notes,
			"Which combinations of rows of other tables "+t.name.sql()+" does not have yet could not be "+
				"found out: "+found.Err,
		)
		t.free = nil
		return
	}
	left, right, taken := t.sides(found.Rows)
	c := &t.constraints[t.free.constraint]
	c.LeftKnown, c.Left = true, int64(left)
	if t.free.right != nil {
		c.Left = int64(left)*int64(right) - int64(taken)
	}
}

// sides counts the rows of both sides, and the combinations that there are already.
func (t *table) sides(rows *jsondoc.Value) (left, right, taken int) {
	last := 1 + len(t.free.left.columns)
	if t.free.right != nil {
		last = 1 + max(len(t.free.left.columns), len(t.free.right.columns))
	}
	for i := range rows.Len() {
		if rows.At(i).At(0).Str() == "b" {
			right++
			continue
		}
		left++
		if t.free.right != nil && !rows.At(i).At(last).IsNull() {
			taken += 1 + strings.Count(rows.At(i).At(last).Str(), " ")
		}
	}
	return left, right, taken
}

// columnsOf are the table's columns by their names.
func (t *table) columnsOf(names []string) []column {
	var list []column
	for _, name := range names {
		for _, c := range t.columns {
			if c.Name == name {
				list = append(list, c)
			}
		}
	}
	return list
}

// writeParents writes rows for an empty table: the columns of each foreign key have the key of a row of its parent.
func (t *table) writeParents(w *jsondoc.Writer, req *jsondoc.Value) {
	var names []string
	var from []parent
	var samples []sdk.Result
	most := 0
	for i, p := range t.parents {
		found := sdk.ResultOf(req, "parent:"+strconv.Itoa(i))
		if found.Rows.Len() == 0 || overlap(names, p.columns) {
			continue
		}
		names, from, samples = append(names, p.columns...), append(from, p), append(samples, found)
		most = max(most, found.Rows.Len())
	}
	if most == 0 {
		return
	}
	w.Key("values").Object().Key("table").Str(t.name.table).Key("columns").Strs(names).Key("rows").Array()
	for i := range most {
		w.Array()
		for n, p := range from {
			row := samples[n].Rows.At(i % samples[n].Rows.Len())
			for j, c := range t.columnsOf(p.columns) {
				writeSample(w, c, row.At(j))
			}
		}
		w.EndArray()
	}
	w.EndArray().EndObject()
}

// writeFree writes the parts of rows that the table does not have.
func (t *table) writeFree(w *jsondoc.Writer, req *jsondoc.Value) {
	if t.free == nil {
		return
	}
	f, rows := t.free, sdk.ResultOf(req, "free").Rows
	left, right := t.columnsOf(f.left.columns), []column(nil)
	columns := append([]string{}, f.left.columns...)
	if f.right != nil {
		right, columns = t.columnsOf(f.right.columns), append(columns, f.right.columns...)
	}
	lefts, rights, _ := t.sides(rows)
	if lefts == 0 || f.right != nil && rights == 0 {
		return
	}
	w.Key("free").Object().Key("table").Str(t.name.table).Key("columns").Strs(columns).Key("rows").Array()
	for _, side := range [...]string{"a", "b"} {
		of := left
		if side == "b" {
			of = right
		}
		for i := range rows.Len() {
			row := rows.At(i)
			if row.At(0).Str() != side {
				continue
			}
			w.Array()
			for j, c := range of {
				writeSample(w, c, row.At(1+j))
			}
			w.EndArray()
		}
	}
	w.EndArray().Key("free").Object().Key("constraint").Strs(t.constraints[f.constraint].Columns).
		Key("columns").Int(int64(len(left))).Key("left").Int(int64(lefts))
	if f.right != nil {
		w.Key("taken").Strs(takenTexts(rows, 1+max(len(left), len(right)), rights))
	}
	w.EndObject().EndObject()
}

// takenTexts are the numbers of the other rows that each of the first rows goes with already, as hexadecimal digits.
func takenTexts(rows *jsondoc.Value, last, rights int) []string {
	const digits = "0123456789abcdef"
	var list []string
	bits := make([]byte, (rights+3)/4)
	for i := range rows.Len() {
		if rows.At(i).At(0).Str() != "a" {
			continue
		}
		numbers := strings.Fields(rows.At(i).At(last).Str())
		if len(numbers) == 0 {
			list = append(list, "")
			continue
		}
		for j := range bits {
			bits[j] = 0
		}
		for _, number := range numbers {
			if n, err := strconv.Atoi(number); err == nil && n >= 0 && n < rights {
				bits[n/4] |= 1 << (n % 4)
			}
		}
		text := make([]byte, len(bits))
		for j, b := range bits {
			text[j] = digits[b]
		}
		list = append(list, string(text))
	}
	return list
}
