package snowflake

import (
	"errors"
	"strconv"
	"strings"

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
	if a.of == Interactive {
		into = name.sibling(stageSuffix)
	} else if existing != nil && req.Get("recreate").Bool() {
		into = beside(name)
	}
	w.Object().Key("load").Object().Key("table").Str(into.sql()).Key("columns").Array()
	for _, c := range t.Columns {
		sdk.WriteColumn(w, sdk.Column{Name: columnName(c.Name), Type: c.Type, DBType: dbType(c), Nullable: c.Nullable,
			MaxLength: declaredLength(dbType(c))})
	}
	w.EndArray()
	if a.of == Interactive {
		w.Key("final").Str(name.sql())
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
func generate(into tableName, t *sdk.LogicalTable, rows int64) ([]chunk, error) {
	var names, values []string
	for i, c := range t.Columns {
		if c.Fill == nil {
			return nil, nil
		}
		text, err := fillExpression(&c, i)
		if err != nil {
			return nil, errors.New("column " + strconv.Quote(c.Name) + " of the workload's table " + t.Name + ": " + err.Error())
		}
		names, values = append(names, columnName(c.Name)), append(values, text)
	}
	head := "INSERT INTO " + into.sql() + " (" + quotedList(names) + ") SELECT " + strings.Join(values, ", ") +
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

// fillExpression writes the value of a column for the row N, which counts from 0.
func fillExpression(c *sdk.LogicalColumn, position int) (string, error) {
	f := c.Fill
	num := func(n int64) string { return strconv.FormatInt(n, 10) }
	// draw is a number from 0 to n-1 of the row and the column.
	draw := func(n int64, salt int) string {
		return "MOD(ABS(HASH(N, " + strconv.Itoa(100*position+salt) + ")), " + num(n) + ")"
	}
	switch f.As {
	case sdk.FillNumber, sdk.FillBlock:
		text := num(f.From) + " + N"
		if f.As == sdk.FillBlock {
			if f.Step <= 0 {
				return "", errors.New("a block has at least one row")
			}
			text = num(f.From) + " + FLOOR(N / " + num(f.Step) + ")"
		}
		if c.Type != sdk.Text {
			return text, nil
		}
		// LPAD would cut longer numbers.
		text = "TO_VARCHAR(" + text + ")"
		if f.Min > 1 {
			text = "LPAD(" + text + ", GREATEST(" + num(f.Min) + ", LENGTH(" + text + ")), '0')"
		}
		if f.Prefix != "" {
			text = literal(f.Prefix) + " || " + text
		}
		return text, nil
	case sdk.FillConstant:
		if len(f.Values) == 0 {
			return "NULL", nil
		}
		return constant(c, f.Values[0])
	case sdk.FillInteger:
		if f.Max < f.Min || f.Max-f.Min < 0 {
			return "", errors.New("its integers have no range")
		}
		return num(f.Min) + " + " + draw(f.Max-f.Min+1, 0), nil
	case sdk.FillDecimal:
		scale := int64(1)
		for range f.Scale {
			scale *= 10
		}
		if f.Max <= f.Min || f.Scale < 0 || f.Scale > 9 || f.Max-f.Min > 1_000_000_000 {
			return "", errors.New("its decimals have no range")
		}
		return "CAST(" + num(f.Min) + " + " + draw((f.Max-f.Min)*scale, 0) + " / " + num(scale) + " AS NUMBER(38," +
			num(f.Scale) + "))", nil
	case sdk.FillChoice:
		if len(f.Values) == 0 {
			return "", errors.New("it has nothing to choose from")
		}
		text := "CASE " + draw(int64(len(f.Values)), 0)
		for i, v := range f.Values {
			value, err := constant(c, v)
			if err != nil {
				return "", err
			}
			text += " WHEN " + strconv.Itoa(i) + " THEN " + value
		}
		return text + " END", nil
	case sdk.FillLetters:
		if f.Min < 0 || f.Max < f.Min {
			return "", errors.New("its letters have no length")
		}
		length := num(f.Min)
		if f.Max > f.Min {
			length += " + " + draw(f.Max-f.Min+1, 1)
		}
		return "RANDSTR(" + length + ", HASH(N, " + strconv.Itoa(100*position) + "))", nil
	case sdk.FillTime:
		step := "N * " + num(f.Step)
		if f.Max > 0 {
			step = "MOD(" + step + ", " + num(f.Max) + ")"
		}
		return "TO_TIMESTAMP_NTZ(" + num(f.From) + " + " + step + ", 6)", nil
	}
	return "", errors.New("it is filled as " + strconv.Quote(f.As) + ", which this version does not know")
}

// constant writes a value of the manifest in the column's type.
func constant(c *sdk.LogicalColumn, v string) (string, error) {
	switch c.Type {
	case sdk.I64:
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return "", errors.New(strconv.Quote(v) + " is not a whole number")
		}
		return strconv.FormatInt(n, 10), nil
	case sdk.Text:
		return literal(v), nil
	}
	return "", errors.New("constants are whole numbers and text")
}
