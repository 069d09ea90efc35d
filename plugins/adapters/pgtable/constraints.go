package pgtable

import (
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

const (
	// valueRows and valueBytes bound the sample of whole rows that inserts and updates take values from.
	valueRows, valueBytes = 2_000, 400_000
	// maxTops bounds the unique columns whose largest value is looked for.
	maxTops = 12
	// functionLength is how much of a trigger's function is read.
	functionLength = 20_000
)

// boundQuery lists the foreign keys, checks and exclusions of a table, with the operators of exclusions.
func boundQuery(oid string) sdk.Query {
	return sdk.Query{
		ID: "bound",
		SQL: `SELECT c.contype::text, c.conname::text, coalesce(array_to_string(c.conkey, ' '), ''),
 (c.confrelid = c.conrelid)::text,
 coalesce((SELECT r.relname::text FROM pg_catalog.pg_class r WHERE r.oid = c.confrelid), ''),
 coalesce((SELECT string_agg(o.oprname::text, ' ' ORDER BY x.n) FROM unnest(c.conexclop) WITH ORDINALITY AS x(op, n)
  JOIN pg_catalog.pg_operator o ON o.oid = x.op), ''),
 coalesce((SELECT n.nspname::text FROM pg_catalog.pg_class r JOIN pg_catalog.pg_namespace n ON n.oid = r.relnamespace
  WHERE r.oid = c.confrelid), ''),
 coalesce((SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY x.n)
  FROM unnest(c.confkey) WITH ORDINALITY AS x(num, n)
  JOIN pg_catalog.pg_attribute a ON a.attrelid = c.confrelid AND a.attnum = x.num), ''),
 CASE WHEN c.contype = 'c' THEN coalesce(pg_catalog.pg_get_expr(c.conbin, c.conrelid), '') ELSE '' END
FROM pg_catalog.pg_constraint c WHERE c.conrelid = ` + oid + `::oid AND c.contype IN ('f','c','x') ORDER BY c.conname`,
	}
}

// uniqueQuery lists all unique indexes, those that are no key too.
func uniqueQuery(oid string) sdk.Query {
	return sdk.Query{
		ID: "unique",
		SQL: `SELECT c.relname::text, i.indnkeyatts::text, i.indkey::text, (i.indpred IS NOT NULL)::text,
 (i.indexprs IS NOT NULL)::text, coalesce(pg_catalog.to_jsonb(i) ->> 'indnullsnotdistinct', 'false'),
 pg_catalog.pg_get_indexdef(i.indexrelid)
FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = ` + oid + `::oid AND i.indisunique AND i.indisvalid ORDER BY i.indisprimary DESC, i.indnkeyatts, i.indexrelid`,
	}
}

// triggersQuery lists the row triggers with what their functions say.
func triggersQuery(oid, bound string) sdk.Query {
	return sdk.Query{ID: "triggers", SQL: `SELECT t.tgname::text, substr(p.prosrc, 1, ` + strconv.Itoa(functionLength) +
		`), pg_catalog.encode(t.tgargs, 'escape'), pg_catalog.pg_get_triggerdef(t.oid)
FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid
WHERE t.tgrelid IN (` + oid + `::oid, ` + bound + `::oid) AND NOT t.tgisinternal AND t.tgenabled IN ('O','A') AND (t.tgtype & 1) = 1 ORDER BY t.tgname`}
}

// partitionsQuery lists the ways in which a table, and what it is a part of, is divided.
func partitionsQuery(oid string) sdk.Query {
	return sdk.Query{
		ID: "partitions",
		SQL: `SELECT pg_catalog.pg_get_partkeydef(p.partrelid) FROM pg_catalog.pg_partitioned_table p
WHERE p.partrelid IN (SELECT t.relid FROM pg_catalog.pg_partition_tree(coalesce(pg_catalog.pg_partition_root(` + oid +
			`::oid::regclass), ` + oid + `::oid::regclass)) AS t)`,
	}
}

// referencesQuery lists the foreign keys that may refuse a DELETE: of this table, and of those that lose rows with it.
func referencesQuery(oid string) sdk.Query {
	return sdk.Query{ID: "references",
		SQL: `WITH RECURSIVE base(oid) AS (SELECT ` + oid + `::oid UNION
 SELECT c.conrelid FROM pg_catalog.pg_constraint c JOIN base b ON c.confrelid = b.oid
  WHERE c.contype = 'f' AND c.confdeltype = 'c')
SELECT c.conname::text, n.nspname::text, r.relname::text, (c.conrelid = ` + oid + `::oid)::text, array_to_string(c.conkey, ' '),
 (SELECT string_agg(quote_ident(a.attname), ', ') FROM pg_catalog.pg_attribute a
  WHERE a.attrelid = c.conrelid AND a.attnum = ANY (c.conkey))
FROM pg_catalog.pg_constraint c JOIN base b ON c.confrelid = b.oid JOIN pg_catalog.pg_class r ON r.oid = c.conrelid
 JOIN pg_catalog.pg_namespace n ON n.oid = r.relnamespace
WHERE c.contype = 'f' AND c.conparentid = 0 AND (c.confdeltype IN ('a','r') OR c.confdeltype = 'n' AND EXISTS
 (SELECT 1 FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.conrelid AND a.attnum = ANY (c.conkey) AND a.attnotnull))
ORDER BY c.conname`}
}

// pointedQuery lists the columns that foreign keys refer to, and do not follow.
func pointedQuery(oid string) sdk.Query {
	return sdk.Query{
		ID: "pointed",
		SQL: `SELECT DISTINCT u.n::text FROM pg_catalog.pg_constraint c, unnest(c.confkey) AS u(n)
WHERE c.confrelid = ` + oid + `::oid AND c.contype = 'f' AND c.confupdtype IN ('a','r')`,
	}
}

// shapeQueries ask what may be written to a table; of a view they ask it of the table behind.
func shapeQueries(own, oid string) []sdk.Query {
	return []sdk.Query{
		boundQuery(oid),
		uniqueQuery(oid),
		triggersQuery(own, oid),
		partitionsQuery(oid),
		referencesQuery(oid),
		pointedQuery(oid),
		{ID: "nonce", SQL: "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8::text"},
	}
}

// numbered are the names of the columns with these attribute numbers. A number 0 stands for an expression.
func (t *table) numbered(numbers []string) []string {
	var names []string
	for _, number := range numbers {
		for _, c := range t.columns {
			if c.number == number {
				names = append(names, c.Name)
			}
		}
	}
	return names
}

// mentioned are the names of the columns that a text of SQL has as words.
func (t *table) mentioned(text string) []string {
	var names []string
	for _, c := range t.columns {
		if hasWord(text, c.Name) {
			names = append(names, c.Name)
		}
	}
	return names
}

func isWordByte(b byte) bool {
	return b == '_' || b == '$' || b >= 0x80 || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

// hasWord reports that a text has the word, whatever its case.
func hasWord(text, word string) bool {
	text, word = strings.ToLower(text), strings.ToLower(word)
	for from := 0; ; {
		at := strings.Index(text[from:], word)
		if at < 0 || word == "" {
			return false
		}
		at += from
		end := at + len(word)
		if (at == 0 || !isWordByte(text[at-1])) && (end == len(text) || !isWordByte(text[end])) {
			return true
		}
		from = at + 1
	}
}

// readConstraints gathers what binds the columns.
func (t *table) readConstraints(req *jsondoc.Value) {
	bound := sdk.ResultOf(req, "bound").Rows
	for i := range bound.Len() {
		row := bound.At(i)
		c := sdk.Constraint{Name: row.At(1).Str(), Columns: t.numbered(strings.Fields(row.At(2).Str()))}
		switch row.At(0).Str() {
		case "c":
			c.Kind = sdk.Check
			if text := row.At(8).Str(); callsNothing(text) {
				t.checks = append(t.checks, check{c.Columns, text})
			}
		case "f":
			c.Kind, c.References, c.Self = sdk.ForeignKey, row.At(4).Str(), isTrue(row.At(3))
			t.parents = append(t.parents, parent{constraint: len(t.constraints), columns: c.Columns, keys: row.At(7).Str(),
				name: tableName{schema: row.At(6).Str(), table: row.At(4).Str(), exact: true}})
		case "x":
			c.Kind = sdk.Exclusion
			operators := strings.Fields(row.At(5).Str())
			for n, number := range strings.Fields(row.At(2).Str()) {
				if n < len(operators) && operators[n] == "=" {
					c.Equal = append(c.Equal, t.numbered([]string{number})...)
				}
			}
		}
		t.constraints = append(t.constraints, c)
	}
	t.readUnique(sdk.ResultOf(req, "unique").Rows)
	t.readTriggers(sdk.ResultOf(req, "triggers").Rows)
	parts := sdk.ResultOf(req, "partitions").Rows
	for i := range parts.Len() {
		if def := parts.At(i).At(0).Str(); !strings.HasPrefix(def, "HASH") {
			t.constraints = append(t.constraints, sdk.Constraint{Kind: sdk.Partition, Columns: t.mentioned(def)})
		}
	}
	pointed := sdk.ResultOf(req, "pointed").Rows
	for i := range pointed.Len() {
		t.constraints = append(t.constraints,
			sdk.Constraint{Kind: sdk.PointedAt, Columns: t.numbered([]string{pointed.At(i).At(0).Str()})})
	}
	for _, c := range t.columns {
		if columns := t.numbers(t.inputs(c)); len(columns) > 0 {
			t.constraints = append(t.constraints, sdk.Constraint{Kind: sdk.Check, Columns: columns})
		}
		if c.checkedDomain {
			t.constraints = append(t.constraints, sdk.Constraint{Kind: sdk.Domain, Columns: []string{c.Name}})
		}
	}
}

func (t *table) readUnique(rows *jsondoc.Value) {
	for i := range rows.Len() {
		row := rows.At(i)
		c := sdk.Constraint{
			Kind:       sdk.Unique,
			Name:       row.At(0).Str(),
			Partial:    isTrue(row.At(3)),
			NullsEqual: isTrue(row.At(5)),
		}
		n, _ := row.At(1).Int()
		numbers := strings.Fields(row.At(2).Str())
		c.Columns = t.numbered(numbers[:min(int(n), len(numbers))])
		if isTrue(row.At(3)) || isTrue(row.At(4)) {
			_, def, _ := strings.Cut(row.At(6).Str(), " USING ")
			for _, name := range t.mentioned(def) {
				c.Columns = added(c.Columns, name)
			}
		}
		// What the database computes is another value where a column is that it computes it from.
		for _, column := range t.columnsOf(c.Columns) {
			for _, name := range t.inputs(column) {
				c.Columns = added(c.Columns, name)
			}
		}
		if len(c.Columns) > 0 {
			t.constraints = append(t.constraints, c)
		}
	}
}

// inputs are the columns that a generated column is computed from.
func (t *table) inputs(c column) []string {
	if c.expression == "" {
		return nil
	}
	return t.mentioned(c.expression)
}

// numbers are those of columns that hold numbers: what is computed from them may be too large for its type.
func (t *table) numbers(names []string) []string {
	var list []string
	for _, c := range t.columnsOf(names) {
		if base := strings.SplitN(c.DBType, "(", 2)[0]; c.Type == sdk.I64 || c.Type == sdk.F64 || base == "numeric" {
			list = append(list, c.Name)
		}
	}
	return list
}

// readTriggers finds the columns that triggers read or set: NEW.column in their functions and conditions, and
// arguments that are names of columns.
func (t *table) readTriggers(rows *jsondoc.Value) {
	for i := range rows.Len() {
		row := rows.At(i)
		c := sdk.Constraint{Kind: sdk.Trigger, Name: row.At(0).Str()}
		text := strings.ReplaceAll(row.At(1).Str()+"\n"+row.At(3).Str(), `"`, "")
		args := strings.Split(strings.ReplaceAll(row.At(2).Str(), `\000`, "\n"), "\n")
		for _, column := range t.columns {
			named := hasWord(text, "new."+column.Name)
			for _, arg := range args {
				named = named || arg == column.Name
			}
			if named {
				c.Columns = append(c.Columns, column.Name)
			}
		}
		if len(c.Columns) > 0 {
			t.constraints = append(t.constraints, c)
		}
	}
}

// added appends what a list does not have.
func added(list []string, s string) []string {
	for _, have := range list {
		if have == s {
			return list
		}
	}
	return append(list, s)
}

// bound reports that something other than uniqueness decides which values a column takes.
func (t *table) bound(name string) bool {
	for _, c := range t.constraints {
		if c.Kind == sdk.Unique || c.Kind == sdk.PointedAt {
			continue
		}
		for _, column := range c.Columns {
			if column == name {
				return true
			}
		}
	}
	return false
}

// valueColumns are those whose values come from rows that are there: whole rows, because they belong together.
func (t *table) valueColumns() []column {
	var list []column
	for _, c := range t.columns {
		if !c.Generated && (c.sampled || t.bound(c.Name)) {
			list = append(list, c)
		}
	}
	return list
}

// topExpression is the largest value of a unique column as a whole number, "" where its type has none. What is beyond
// the numbers that an operation carries is not counted.
func (t *table) topExpression(c column) string {
	name := quoted(c.Name)
	largest := func(value, below string) string {
		return "SELECT (" + value + ")::text FROM (SELECT max(" + name + ") AS top FROM " + t.name.sql() + " WHERE " + name +
			" < " + below + ") AS s"
	}
	switch base, _, _ := strings.Cut(strings.ToLower(c.DBType), "("); strings.TrimSpace(base) {
	case "smallint", "integer", "bigint", "oid":
		return "SELECT max(" + name + ")::text FROM " + t.name.sql()
	case "numeric":
		return largest("ceil(top)::int8", "900000000000000000")
	case "money":
		return largest("ceil(top::numeric)::int8", "900000000000000::int8::money")
	case "real":
		return largest("ceil(top)::int8", "16777215")
	case "double precision":
		return largest("ceil(top)::int8", "9007199254740991")
	case "interval":
		return largest("ceil(extract(epoch FROM top))::int8", "interval '100000 years'")
	case "date":
		return largest("extract(epoch FROM top)::int8 * 1000000", "'9999-12-31'")
	}
	if c.Type == sdk.Timestamp {
		return largest("ceil(extract(epoch FROM top))::int8 * 1000000", "'9999-12-31'")
	}
	return ""
}

// topQueries ask for the largest values of unique columns. In a table that is too large to count only those are looked
// for that an index finds.
func (t *table) topQueries() []sdk.Query {
	var list []sdk.Query
	for _, u := range t.constraints {
		if u.Kind != sdk.Unique && len(u.Equal) == 0 {
			continue
		}
		for i, name := range u.Columns {
			if i > 0 && !t.exact {
				break
			}
			for j, c := range t.columns {
				sql := t.topExpression(c)
				if c.Name != name || c.Generated || sql == "" || len(list) >= maxTops || t.asked(list, j) {
					continue
				}
				list = append(list, sdk.Query{ID: "top:" + strconv.Itoa(j), TimeoutMs: countTimeout, SQL: sql})
			}
		}
	}
	return list
}

func (t *table) asked(list []sdk.Query, column int) bool {
	for _, q := range list {
		if q.ID == "top:"+strconv.Itoa(column) {
			return true
		}
	}
	return false
}

const (
	// mostReferences are looked at, of the queries that a round has room for; referenceTimeout is for one that refers to
	// nothing, and is read to its end.
	mostReferences, referenceTimeout = 24, 3_000
)

// referenceQueries ask whether a row refers to another by each foreign key that would refuse a DELETE.
func (t *table) referenceQueries(req *jsondoc.Value) []sdk.Query {
	var list []sdk.Query
	rows := sdk.ResultOf(req, "references").Rows
	for i := range min(rows.Len(), mostReferences) {
		row := rows.At(i)
		name := tableName{schema: row.At(1).Str(), table: row.At(2).Str(), exact: true}.sql()
		list = append(list, sdk.Query{ID: "refers:" + strconv.Itoa(i), TimeoutMs: referenceTimeout,
			SQL: "SELECT 1 FROM " + name + " WHERE (" + row.At(5).Str() + ") IS NOT NULL LIMIT 1"})
	}
	return list
}

// valuesQuery takes whole rows from all of the table, as many as have valueBytes.
func (t *table) valuesQuery() (sdk.Query, bool) {
	columns := t.valueColumns()
	if len(columns) == 0 || t.rows == 0 {
		return sdk.Query{}, false
	}
	from := t.name.sql()
	if t.rows > 10*valueRows && (t.kind == "r" || t.kind == "p" || t.kind == "m") {
		percent := min(100, 200*float64(valueRows)/float64(t.rows))
		from += " TABLESAMPLE SYSTEM (" + strconv.FormatFloat(percent, 'f', 6, 64) + ")"
	}
	return sdk.Query{ID: "values", TimeoutMs: sampleTimeout, SQL: withinBytes(columns, "(SELECT * FROM "+from+
		" ORDER BY random() LIMIT "+strconv.Itoa(valueRows)+") AS s", "", valueBytes)}, true
}

// withinBytes selects columns of rows until they have so many bytes together; the first row is always there.
func withinBytes(columns []column, from, order string, bytes int) string {
	var names, made, sizes []string
	for i, c := range columns {
		name := "v" + strconv.Itoa(i)
		names = append(names, name)
		made = append(made, "("+sampleExpression(c)+") AS "+name)
		sizes = append(sizes, "coalesce(octet_length("+name+"), 0) + 4")
	}
	return "SELECT " + strings.Join(names, ", ") + " FROM (SELECT *, sum(" + strings.Join(sizes, " + ") +
		") OVER w AS size, row_number() OVER w AS place FROM (SELECT " + strings.Join(made, ", ") + " FROM " + from + order +
		") AS r WINDOW w AS (ROWS UNBOUNDED PRECEDING)) AS q WHERE size < " + strconv.Itoa(bytes) + " OR place = 1"
}

// writable asks what inserts, updates and deletes need to know; done is false while the host is being asked.
func (t *table) writable(req *jsondoc.Value, w *jsondoc.Writer) (done bool) {
	queries := append(t.topQueries(), t.referenceQueries(req)...)
	queries = append(queries, t.parentQueries(req.Get("logical").Get("inserts").Bool())...)
	if q, wanted := t.valuesQuery(); wanted {
		queries = append(queries, q)
	}
	for _, q := range queries {
		if !sdk.ResultOf(req, q.ID).Asked {
			sdk.Ask(w, queries...)
			return false
		}
	}
	for i := range t.columns {
		if top, ok := sdk.ResultOf(req, "top:"+strconv.Itoa(i)).Rows.At(0).At(0).Int(); ok {
			t.columns[i].HasTop, t.columns[i].Top = true, top
		}
	}
	t.readParents(req)
	rows := sdk.ResultOf(req, "references").Rows
	for i := range rows.Len() {
		row := rows.At(i)
		name := tableName{schema: row.At(1).Str(), table: row.At(2).Str(), exact: true}.sql()
		refers := sdk.ResultOf(req, "refers:"+strconv.Itoa(i))
		switch {
		case !refers.Asked || refers.Err != "":
			t.notes = append(t.notes, "Whether rows refer to those of "+t.name.sql()+" by the foreign key "+
				quoted(row.At(0).Str())+" of "+name+" could not be seen: it may refuse a DELETE.")
		case refers.Rows.Len() > 0:
			t.constraints = append(t.constraints, sdk.Constraint{Kind: sdk.Referenced, Name: row.At(0).Str(), References: name})
		}
	}
	return true
}

// writeValues writes the sample of whole rows.
func (t *table) writeValues(w *jsondoc.Writer, req *jsondoc.Value) {
	if t.rows == 0 {
		t.writeParents(w)
		return
	}
	sample := sdk.ResultOf(req, "values")
	if sample.Err != "" {
		t.notes = append(t.notes, "Sampling rows of "+t.name.sql()+" failed: "+sample.Err)
	}
	if sample.Rows.Len() == 0 {
		return
	}
	columns := t.valueColumns()
	w.Key("values").Object().Key("table").Str(t.name.table).Key("columns").Array()
	for _, c := range columns {
		w.Str(c.Name)
	}
	w.EndArray().Key("rows").Array()
	for i := range sample.Rows.Len() {
		row := sample.Rows.At(i)
		if lacksValue(columns, row) {
			continue
		}
		w.Array()
		for j, c := range columns {
			writeSample(w, c, row.At(j))
		}
		w.EndArray()
	}
	w.EndArray().EndObject()
}

// lacksValue reports that a row has no value that an operation carries where there has to be one, such as infinity.
func lacksValue(columns []column, row *jsondoc.Value) bool {
	for j, c := range columns {
		if !c.Nullable && row.At(j).IsNull() {
			return true
		}
	}
	return false
}
