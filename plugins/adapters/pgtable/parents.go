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
		"}), loadstone_pairs AS ({reads " + functions + "})"
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

// check is a CHECK whose columns may all come from other tables.
type check struct {
	columns    []string
	expression string
}

// callsNothing reports that an expression, as the server writes it, calls no function and has no word that stands
// before a relation: a query of the adapter may have it. The server puts a blank between a word of SQL and its
// parenthesis, and none behind the name of a function or a type.
func callsNothing(expression string) bool {
	for _, word := range [...]string{"from", "using", "join", "table", "select"} {
		if hasWord(expression, word) {
			return false
		}
	}
	for rest := expression; ; {
		before, after, more := strings.Cut(rest, "(")
		if !more {
			return expression != ""
		}
		rest = after
		before, blank := strings.CutSuffix(before, " ")
		from := len(before)
		for from > 0 && (isWordByte(before[from-1]) || before[from-1] == '"') {
			from--
		}
		switch before[from:] {
		case "":
		case "AND", "OR", "NOT", "ANY", "ALL", "CASE", "WHEN", "THEN", "ELSE":
			if !blank {
				return false
			}
		default:
			return false
		}
	}
}

// freeRows says which rows are looked for that the table does not have: those of one unique constraint.
type freeRows struct {
	constraint  int
	left, right *parent
}

// columns are those whose values the rows of both sides have.
func (f *freeRows) columns() []string {
	list := append([]string{}, f.left.columns...)
	if f.right != nil {
		for _, name := range f.right.columns {
			list = added(list, name)
		}
	}
	return list
}

// shared are the places, in left and in right, of the columns that both have: rows go together that are alike in them.
func (f *freeRows) shared() (list [][2]int) {
	if f.right == nil {
		return nil
	}
	for i, name := range f.left.columns {
		for j, other := range f.right.columns {
			if name == other {
				list = append(list, [2]int{i, j})
			}
		}
	}
	return list
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
		if f := t.sidesOf(c); f != nil {
			f.constraint = i
			return f
		}
	}
	return nil
}

// sidesOf chooses one or two foreign keys of a unique constraint whose rows make the values of their columns new, so
// that no other foreign key has a part of those columns: it would take the rest from another row. nil where there are
// none.
func (t *table) sidesOf(c sdk.Constraint) *freeRows {
	inside := t.longestFirst(func(p *parent) bool { return within(p.columns, c.Columns) })
	for i, left := range inside {
		for _, right := range inside[i+1:] {
			f := &freeRows{left: left, right: right}
			if !within(right.columns, left.columns) && t.keepsKeys(f, c) {
				return f
			}
		}
		if f := (&freeRows{left: left}); t.keepsKeys(f, c) {
			return f
		}
	}
	return nil
}

// longestFirst are the parents that are wanted, those of more columns first.
func (t *table) longestFirst(wanted func(*parent) bool) (list []*parent) {
	for i := range t.parents {
		if p := &t.parents[i]; wanted(p) {
			list = append(list, p)
			for j := len(list) - 1; j > 0 && len(list[j].columns) > len(list[j-1].columns); j-- {
				list[j], list[j-1] = list[j-1], list[j]
			}
		}
	}
	return list
}

// keepsKeys reports that no foreign key is broken when the columns of both sides get the values of theirs: it lies in
// one side, it has none of the columns, or one of its other columns may be NULL.
func (t *table) keepsKeys(f *freeRows, c sdk.Constraint) bool {
	for i := range t.parents {
		q := &t.parents[i]
		switch {
		case !overlap(q.columns, f.columns()):
		case lies(q, f.left), f.right != nil && lies(q, f.right):
		case !t.leavable(q, c):
			return false
		}
	}
	return true
}

// lies reports that the rows of a parent have values for a foreign key: those that another foreign key of the same
// columns allows are other ones.
func lies(q, p *parent) bool {
	return within(q.columns, p.columns) && (len(q.columns) < len(p.columns) || q.name == p.name)
}

// leavable reports that a foreign key holds for any values of the constraint's columns, because another of its columns
// may be left NULL.
func (t *table) leavable(q *parent, c sdk.Constraint) bool {
	for _, column := range t.columnsOf(q.columns) {
		if column.Nullable && !column.HasDefault && !column.Generated && !overlap([]string{column.Name}, c.Columns) {
			return true
		}
	}
	return false
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

// parentQueries ask for the keys of other tables, where the run inserts: those that go together to rows which the table
// does not have, and, where it is empty, some of each.
func (t *table) parentQueries(inserts bool) []sdk.Query {
	var list []sdk.Query
	if !inserts {
		return nil
	}
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
				strings.Join(t.texts(p, "l", "k"), ", ") + " FROM loadstone_left AS l ORDER BY " +
				t.spread("l", t.sharedKeys(p)) + " LIMIT " + strconv.Itoa(parentRows)})
	}
	return list
}

// sharedKeys names the columns that a foreign key has in common with another, where neither has all columns of the
// other: of rows of both those go together that are alike in them.
func (t *table) sharedKeys(p *parent) (list []string) {
	for i, name := range p.columns {
		for j := range t.parents {
			q := &t.parents[j]
			if q != p && overlap([]string{name}, q.columns) && !within(p.columns, q.columns) && !within(q.columns, p.columns) {
				list = append(list, "k"+strconv.Itoa(i))
				break
			}
		}
	}
	return list
}

// alike is how many rows of the same shared values come before those of others.
const alike = 32

// spread orders rows by chance. Where only those go together that are alike in some columns, it chooses the same values
// of them for both sides, other ones each time, and some rows of each.
func (t *table) spread(from string, shared []string) string {
	if len(shared) == 0 {
		return "random()"
	}
	var columns, texts []string
	for _, name := range shared {
		columns = append(columns, from+"."+name)
		texts = append(texts, from+"."+name+"::text")
	}
	return "greatest(row_number() OVER (PARTITION BY " + strings.Join(columns, ", ") + " ORDER BY random()), " +
		strconv.Itoa(alike) + "), md5(" + strings.Join(texts, " || ' ' || ") + " || '" + strconv.FormatInt(t.nonce, 10) + "')"
}

// matches compares the table's rows with those of a parent.
func (p *parent) matches(from, prefix string) string {
	var list []string
	for i, name := range p.columns {
		list = append(list, "t."+quoted(name)+" = "+from+"."+prefix+strconv.Itoa(i))
	}
	return strings.Join(list, " AND ")
}

// freeQuery asks for rows of one or two other tables, with the combinations of them that the table has or may not have;
// where both sides share columns, with those that are free.
func (t *table) freeQuery(f *freeRows) string {
	from := t.name.sql() + " AS t"
	if f.right == nil {
		kept := ""
		for _, expression := range t.checksOf(f) {
			kept += " AND NOT EXISTS (SELECT 1 FROM (SELECT " + strings.Join(f.named("l", ""), ", ") + ") AS p WHERE NOT (" +
				expression + "))"
		}
		return "WITH " + f.left.with("loadstone_left", "k", 5*parentLimit) + " SELECT 'a', " +
			strings.Join(t.texts(f.left, "l", "k"), ", ") + " FROM loadstone_left AS l WHERE NOT EXISTS (SELECT 1 FROM " + from +
			" WHERE " + f.left.matches("l", "k") + ")" + kept + " ORDER BY random() LIMIT " + strconv.Itoa(freeAlone)
	}
	var lefts, rights, same []string
	for _, at := range f.shared() {
		l, r := "k"+strconv.Itoa(at[0]), "m"+strconv.Itoa(at[1])
		lefts, rights, same = append(lefts, l), append(rights, r), append(same, "a."+l+" = b."+r)
	}
	// A row that no other goes with is of no use.
	side := func(name, of, as, other, otherAs string, shared []string) string {
		where := ""
		if len(same) > 0 {
			where = " WHERE EXISTS (SELECT 1 FROM " + other + " AS " + otherAs + " WHERE " + strings.Join(same, " AND ") + ")"
		}
		return name + " AS (SELECT row_number() OVER () - 1 AS n, s.* FROM (SELECT " + as + ".* FROM " + of + " AS " + as +
			where + " ORDER BY " + t.spread(as, shared) + " LIMIT (SELECT least(" + strconv.Itoa(freeSide) +
			", greatest(1000, " + strconv.Itoa(maxFreeRows) + " / greatest(count(*), 1))) FROM " + other + ")) AS s)"
	}
	texts := func(p *parent, from, prefix string) string {
		list := t.texts(p, from, prefix)
		for len(list) < max(len(f.left.columns), len(f.right.columns)) {
			list = append(list, "NULL")
		}
		return strings.Join(list, ", ")
	}
	pairs := "SELECT a.n AS x, b.n AS y FROM " + from + " JOIN loadstone_a AS a ON (" + f.left.matches("a", "k") +
		") JOIN loadstone_b AS b ON (" + f.right.matches("b", "m") + ")"
	for _, expression := range t.checksOf(f) {
		pairs += " UNION SELECT p.loadstone_x, p.loadstone_y FROM (SELECT a.n AS loadstone_x, b.n AS loadstone_y, " +
			strings.Join(f.named("a", "b"), ", ") + " FROM loadstone_a AS a, loadstone_b AS b) AS p WHERE NOT (" +
			expression + ")"
	}
	if len(same) > 0 {
		pairs = "SELECT a.n AS x, b.n AS y FROM loadstone_a AS a JOIN loadstone_b AS b ON (" + strings.Join(same, " AND ") +
			") EXCEPT (" + pairs + ")"
	}
	return "WITH " + f.left.with("loadstone_left", "k", parentLimit) + ", " +
		f.right.with("loadstone_right", "m", parentLimit) + ", " +
		side("loadstone_a", "loadstone_left", "a", "loadstone_right", "b", lefts) + ", " +
		side("loadstone_b", "loadstone_right", "b", "loadstone_left", "a", rights) + ", loadstone_pairs AS (" + pairs +
		") SELECT 'a', " +
		texts(f.left, "a", "k") + ", (SELECT string_agg(g.y::text, ' ') FROM loadstone_pairs AS g WHERE g.x = a.n) " +
		"FROM loadstone_a AS a UNION ALL SELECT 'b', " + texts(f.right, "b", "m") + ", NULL FROM loadstone_b AS b"
}

// checksOf are the checks that are about columns of the sides alone.
func (t *table) checksOf(f *freeRows) (list []string) {
	for _, c := range t.checks {
		if len(c.columns) > 0 && within(c.columns, f.columns()) {
			list = append(list, c.expression)
		}
	}
	return list
}

// named are the values of both sides under the names that the table's columns have.
func (f *freeRows) named(left, right string) (list []string) {
	for i, name := range f.left.columns {
		list = append(list, left+".k"+strconv.Itoa(i)+" AS "+quoted(name))
	}
	if f.right == nil {
		return list
	}
	for i, name := range f.right.columns {
		if !overlap([]string{name}, f.left.columns) {
			list = append(list, right+".m"+strconv.Itoa(i)+" AS "+quoted(name))
		}
	}
	return list
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
	t.makeRows(req)
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
	left, right, pairs := t.sides(found.Rows)
	c := &t.constraints[t.free.constraint]
	c.LeftKnown = true
	switch {
	case t.free.right == nil:
		c.Left = int64(left)
	case len(t.free.shared()) > 0:
		c.Left = int64(pairs)
	default:
		c.Left = int64(left)*int64(right) - int64(pairs)
	}
}

// sides counts the rows of both sides, and the combinations that are listed.
func (t *table) sides(rows *jsondoc.Value) (left, right, pairs int) {
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
			pairs += 1 + strings.Count(rows.At(i).At(last).Str(), " ")
		}
	}
	return left, right, pairs
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

// madeRows are rows for an empty table, made of keys that its foreign keys may have.
type madeRows struct {
	columns []string
	rows    [][]*jsondoc.Value
}

// join adds the columns of one more foreign key. Of rows that share columns with those that are there only such go
// together as are alike in them; false means that none are, and that nothing was added.
func (m *madeRows) join(columns []string, keys *jsondoc.Value) bool {
	var shared, fresh []int
	for i, name := range columns {
		if overlap([]string{name}, m.columns) {
			shared = append(shared, i)
		} else {
			fresh = append(fresh, i)
		}
	}
	if len(fresh) == 0 {
		return true // a part of a longer one
	}
	var joined [][]*jsondoc.Value
	add := func(row []*jsondoc.Value, key *jsondoc.Value) {
		row = append([]*jsondoc.Value{}, row...)
		for _, i := range fresh {
			row = append(row, key.At(i))
		}
		joined = append(joined, row)
	}
	switch {
	case len(shared) > 0:
		found := map[string][]int{}
		for i := range keys.Len() {
			text := textOf(shared, keys.At(i).At)
			found[text] = append(found[text], i)
		}
		for i, row := range m.rows {
			list := found[textOf(shared, func(at int) *jsondoc.Value { return row[m.place(columns[at])] })]
			if len(list) > 0 {
				add(row, keys.At(list[i%len(list)]))
			}
		}
	case len(m.rows) == 0:
		for i := range keys.Len() {
			add(nil, keys.At(i))
		}
	default:
		for i := range max(len(m.rows), keys.Len()) {
			add(m.rows[i%len(m.rows)], keys.At(i%keys.Len()))
		}
	}
	if len(joined) == 0 {
		return false
	}
	for _, i := range fresh {
		m.columns = append(m.columns, columns[i])
	}
	m.rows = joined
	return true
}

// textOf is a text of some values, another one where one of them is another.
func textOf(places []int, at func(int) *jsondoc.Value) string {
	text := ""
	for _, place := range places {
		text += at(place).Str() + "\x00"
	}
	return text
}

// place is that of a column which there is.
func (m *madeRows) place(column string) int {
	at := 0
	for m.columns[at] != column {
		at++
	}
	return at
}

// makeRows makes rows for an empty table. A foreign key for which there are none refers to nothing that is known.
func (t *table) makeRows(req *jsondoc.Value) {
	for _, p := range t.longestFirst(func(p *parent) bool { return t.constraints[p.constraint].Parents > 0 }) {
		for i := range t.parents {
			if &t.parents[i] == p && !t.made.join(p.columns, sdk.ResultOf(req, "parent:"+strconv.Itoa(i)).Rows) {
				c := &t.constraints[p.constraint]
				c.Parents, c.ParentsKnown = 0, false
			}
		}
	}
}

// writeParents writes rows for an empty table: the columns of each foreign key have the key of a row of its parent.
func (t *table) writeParents(w *jsondoc.Writer) {
	if len(t.made.rows) == 0 {
		return
	}
	columns := t.columnsOf(t.made.columns)
	w.Key("values").Object().Key("table").Str(t.name.table).Key("columns").Strs(t.made.columns).Key("rows").Array()
	for _, row := range t.made.rows {
		w.Array()
		for j, c := range columns {
			writeSample(w, c, row[j])
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
		w.Key("taken").Strs(takenTexts(rows, 1+max(len(left), len(right)), rights, len(f.shared()) > 0))
	}
	w.EndObject().EndObject()
}

// takenTexts are the numbers of the other rows that each of the first rows may not go with, as hexadecimal digits. What
// is listed are those, or, when free, all the others.
func takenTexts(rows *jsondoc.Value, last, rights int, free bool) []string {
	const digits = "0123456789abcdef"
	var list []string
	bits := make([]byte, (rights+3)/4)
	for i := range rows.Len() {
		if rows.At(i).At(0).Str() != "a" {
			continue
		}
		numbers := strings.Fields(rows.At(i).At(last).Str())
		if len(numbers) == 0 && !free {
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
			if free {
				b ^= 0xf
			}
			text[j] = digits[b]
		}
		list = append(list, string(text))
	}
	return list
}
