package snowflake

import (
	"errors"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/plugins/adapters/snowflake/dialect"
	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

// load says where sample rows go, and how the database makes them itself where
// that is wanted (rows) and every column says how.
func (a Adapter) load(req *jsondoc.Value, w *jsondoc.Writer) error {
	t, err := logicalTable(req)
	if err != nil {
		return err
	}
	name, existing, done, err := a.target(req, w)
	if err != nil || !done {
		return err
	}
	into := name
	if a.tableType == Interactive {
		into = name.Sibling(stageSuffix)
	} else if existing != nil && req.Get("recreate").Bool() {
		into = stagingTable(name)
	}
	w.Object().Key("load").Object().Key("table").Str(into.SQL()).Key("columns").Array()
	for _, c := range t.Columns {
		sdk.WriteColumn(w, sdk.Column{Name: dialect.ColumnName(c.Name), Type: c.Type, DBType: dbType(c), Nullable: c.Nullable,
			MaxLength: declaredLength(dbType(c))})
	}
	w.EndArray()
	if a.tableType == Interactive {
		w.Key("final").Str(name.SQL())
	}
	if rows, _ := req.Get("rows").Int(); rows > 0 {
		list, err := generate(into, &t, rows)
		if err != nil {
			return err
		}
		if len(list) > 0 {
			w.Key("generate").Array()
			for _, g := range list {
				w.Object().Key("sql").Str(g.sql).Key("rows").Int(g.rows).EndObject()
			}
			w.EndArray()
		}
	}
	w.EndObject().EndObject()
	return nil
}

// declaredLength is the n of VARCHAR(n), or 0.
func declaredLength(dbType string) int {
	base, rest, ok := strings.Cut(strings.ToUpper(dbType), "(")
	if !ok || !strings.Contains(base, "CHAR") && base != "STRING" && base != "TEXT" {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSuffix(rest, ")"))
	if err != nil {
		return 0
	}
	return n
}

// How many rows one statement makes: small enough that a run that is stopped does
// not wait long, large enough that a statement's cost does not count, and never
// more than maxChunks statements.
const (
	chunkRows = 1_000_000
	maxChunks = 1000
)

// chunk is one statement that makes rows.
type chunk struct {
	sql  string
	rows int64
}

// generate writes the statements that make rows 0 … rows-1 on the server; none
// when a column does not say how. A value depends on the row and the column alone,
// so that the table is the same every time.
func generate(into dialect.TableName, t *sdk.LogicalTable, rows int64) ([]chunk, error) {
	var names, values []string
	for i, c := range t.Columns {
		if c.Fill == nil {
			return nil, nil
		}
		text, err := dialect.FillExpression(&c, i)
		if err != nil {
			return nil, errors.New("column " + strconv.Quote(c.Name) + " of the workload's table " + t.Name + ": " + err.Error())
		}
		names, values = append(names, dialect.ColumnName(c.Name)), append(values, text)
	}
	head := "INSERT INTO " + into.SQL() + " (" + dialect.QuotedList(names) + ") SELECT " + strings.Join(values, ", ") +
		" FROM (SELECT "
	size := max(chunkRows, (rows+maxChunks-1)/maxChunks)
	var list []chunk
	for first := int64(0); first < rows; first += size {
		n := min(size, rows-first)
		// SEQ8 alone may leave gaps.
		list = append(list, chunk{rows: n, sql: head + "ROW_NUMBER() OVER (ORDER BY SEQ8()) - 1 + " +
			strconv.FormatInt(first, 10) +
			" AS N FROM TABLE(GENERATOR(ROWCOUNT => " + strconv.FormatInt(n, 10) + "))) AS G ORDER BY N"})
	}
	return list, nil
}
