package expression_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/exec/expression"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

var columns = []column.Column{{Name: "i", Type: column.Int64Type},
	{Name: "s", Type: column.Type{Kind: column.Int, Bits: 8}},
	{Name: "f", Type: column.Float64Type}, {Name: "g", Type: column.Type{Kind: column.Float, Bits: 32}},
	{Name: "d", Type: column.Type{Kind: column.Decimal, Precision: 18, Scale: 9}}, {Name: "t", Type: column.TextType},
	{Name: "b", Type: column.BooleanType}, {Name: "at", Type: column.TimestampType}}

// edges are values of each column, as text; an empty one is NULL.
var edges = [][]string{
	{"0", "1", "-1", "9223372036854775807", "-9223372036854775808", ""}, {"0", "127", "-128", "", "5", "-5"},
	{"0", "-0", "NaN", "Infinity", "1.7976931348623157e308", ""}, {"1.5", "NaN", "3e38", "", "-Infinity", "0"},
	{"0", "999999999.999999999", "-999999999.999999999", "0.000000001", "", "1.5"},
	{"", "a", "ä%_\\", "12", "2026-11-23", "NaN"}, {"true", "false", "", "true", "false", ""},
	{"0001-01-01", "9999-12-31T23:59:59.999999Z", "1970-01-01", "", "2024-02-29", "2026-11-23T12:00:00.123456Z"},
}

// anything writes an expression that may or may not be right.
func anything(r *rand.Rand, depth int) string {
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	if depth == 0 || r.IntN(6) == 0 {
		return one("i", "s", "f", "g", "d", "t", "b", "at", "NULL", "0", "1", "-1.5", "'x'", "'12'", "''", "TRUE",
			"TIMESTAMP '2026-01-01'", "9223372036854775807", "1e308")
	}
	x, y, z := anything(r, depth-1), anything(r, depth-1), anything(r, depth-1)
	switch r.IntN(12) {
	case 0, 1, 2:
		return "(" + x + one(" + ", " - ", " * ", " / ", " % ") + y + ")"
	case 3:
		return "(" + x + one(" = ", " <> ", " < ", " <= ", " > ", " >= ") + y + ")"
	case 4:
		return "(" + x + one(" AND ", " OR ", " LIKE ", " || ") + y + ")"
	case 5:
		return "(" + one("NOT ", "- ") + "(" + x + "))"
	case 6:
		return "(" + x + one(" IS NULL", " IS NOT NULL") + ")"
	case 7:
		return "(" + x + one(" IN ", " NOT IN ") + "(" + y + ", " + z + "))"
	case 8:
		return "CASE WHEN " + x + " THEN " + y + one("", " ELSE "+z) + " END"
	case 9:
		return "CASE " + x + " WHEN " + y + " THEN " + z + " END"
	case 10:
		return "CAST(" + x + " AS " + one("BOOLEAN", "INT8", "UINT64", "INT64", "FLOAT32", "FLOAT64", "DECIMAL(5, 2)",
			"DECIMAL(18, 18)", "TEXT", "TIMESTAMP") + ")"
	}
	return "(" + one("ABS", "FLOOR", "CEIL", "ROUND", "SQRT", "LOWER", "UPPER", "LENGTH") + "(" + x + ")" +
		one("", "", " + COALESCE("+x+", "+y+")", " || CONCAT("+y+", "+z+")", " = NULLIF("+x+", "+y+")") + ")"
}

// TestWhateverIsBoundCanBeEvaluated: an expression is refused with a place, or it has a value of its type for each row.
func TestWhateverIsBoundCanBeEvaluated(t *testing.T) {
	r := rand.New(rand.NewPCG(18, 1))
	b := &column.Batch{}
	b.Reset(columns)
	for range 40 {
		for c := range columns {
			if s := edges[c][r.IntN(6)]; s == "" || b.Cols[c].AppendParsed([]byte(s)) != nil {
				b.Cols[c].AppendNull()
			}
		}
		b.N++
	}
	good, refused := 0, 0
	for range 60_000 {
		text := anything(r, 1+r.IntN(4))
		source := "SELECT " + text + " FROM x INTO y"
		parsed, err := sql.Parse(source)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		x := parsed[0].Statement.(*sql.CreateQuery).Select.Items[0].Expr
		e, err := expression.Bind(x, expression.Scope{Source: source, Columns: columns, Faults: &expression.Faults{}})
		if err != nil {
			var known *sql.Error
			if !errors.As(err, &known) || known.Kind != sql.BinderError || known.Line == 0 {
				t.Fatalf("%s: %v", text, err)
			}
			refused++
			continue
		}
		good++
		func() {
			defer func() {
				if p := recover(); p != nil {
					t.Fatalf("%s: %v", text, p)
				}
			}()
			check(t, text, e.Type, eval(t, e, b), b.N)
		}()
	}
	if good < 10_000 || refused < 10_000 {
		t.Errorf("%d were evaluated, %d refused", good, refused)
	}
}

// eval evaluates without a bound.
func eval(t *testing.T, e *expression.Expr, b *column.Batch) *column.Vec {
	t.Helper()
	v, err := e.Eval(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// check has a vector be whole: a value for each row, in the range of its type.
func check(t *testing.T, text string, of column.Type, v *column.Vec, n int) {
	t.Helper()
	if v.Len() != n || v.Type.Kind != of.Kind {
		t.Fatalf("%s: %d values of %v, not %d of %v", text, v.Len(), v.Type, n, of)
	}
	for i := range n {
		if v.Null[i] {
			continue
		}
		shown := string(v.AppendValue(nil, i))
		switch of.Kind {
		case column.Int, column.Decimal, column.Timestamp:
			if !of.Holds(v.Ints[i]) {
				t.Fatalf("%s: %s has no room in %v", text, shown, of)
			}
		case column.Boolean:
			if !strings.Contains("true false", shown) {
				t.Fatalf("%s: %s", text, shown)
			}
		case column.Unknown:
			t.Fatalf("%s: NULL is %s", text, shown)
		}
	}
}

// TestNestedOperandsCostNoMore: an operand within an operand is bound and evaluated once at each level.
func TestNestedOperandsCostNoMore(t *testing.T) {
	columns := []column.Column{{Name: "x", Type: column.Int64Type}}
	for _, level := range []string{"NULLIF(%s, 1)", "CASE %s WHEN 1 THEN 2 WHEN 2 THEN 3 ELSE 4 END",
		"CASE WHEN %s IN (1, 2, 3) THEN 1 ELSE 2 END"} {
		text := "x"
		for range 40 {
			text = fmt.Sprintf(level, text)
		}
		source := "SELECT " + text + " AS y FROM a INTO s"
		parsed, err := sql.Parse(source)
		if err != nil {
			t.Fatal(err)
		}
		x := parsed[0].Statement.(*sql.CreateQuery).Select.Items[0].Expr
		done := make(chan error, 1)
		go func() {
			e, err := expression.Bind(x, expression.Scope{Source: source, Columns: columns, Faults: &expression.Faults{}})
			if err == nil {
				b := &column.Batch{N: 1, Cols: make([]column.Vec, 1)}
				b.Cols[0].Reset(column.Int64Type)
				b.Cols[0].AppendInt(7)
				_, err = e.Eval(b, nil)
			}
			done <- err
		}()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("%s within itself takes for ever", level)
		}
	}
}

// TestCastsToDecimal: from texts with an exponent, and from floats by the digits that these are shown with.
func TestCastsToDecimal(t *testing.T) {
	const largest = "999999999999999.999"
	for _, tc := range []struct{ column, value, to, want string }{
		{"t", "1e3", "DECIMAL(12, 3)", "1000.000"},
		{"t", "-1.5E-2", "DECIMAL(12, 3)", "-0.015"},
		{"t", "12345e-5", "DECIMAL(12, 3)", "0.123"},
		{"t", "5e-4", "DECIMAL(12, 3)", "0.001"},
		{"t", "4e-4", "DECIMAL(12, 3)", "0.000"},
		{"t", "9e-999999999", "DECIMAL(12, 3)", "0.000"},
		{"t", "0e999999999", "DECIMAL(12, 3)", "0.000"},
		{"t", "1e9", "DECIMAL(12, 3)", ""},
		{"t", "1e999999999999", "DECIMAL(12, 3)", ""},
		{"t", "1e", "DECIMAL(12, 3)", ""},
		{"t", "e5", "DECIMAL(12, 3)", ""},
		{"t", "1e5.5", "DECIMAL(12, 3)", ""},
		{"t", "1..5", "DECIMAL(12, 3)", ""},
		{"t", largest, "DECIMAL(18, 3)", largest},
		{"t", "999999999999999.9995", "DECIMAL(18, 3)", ""},
		{"f", "0.125", "DECIMAL(9, 2)", "0.13"},
		{"f", "-0.125", "DECIMAL(9, 2)", "-0.13"},
		{"f", "1.005", "DECIMAL(9, 2)", "1.01"},
		{"f", "1.0049999", "DECIMAL(9, 2)", "1.00"},
		{"f", "2.5", "DECIMAL(9, 0)", "3"},
		{"f", "0.1", "DECIMAL(18, 18)", "0.100000000000000000"},
		{"f", "1e15", "DECIMAL(18, 2)", "1000000000000000.00"},
		{"f", "1e16", "DECIMAL(18, 2)", ""},
		{"f", "1e300", "DECIMAL(18, 2)", ""},
		{"f", "1e-300", "DECIMAL(18, 2)", "0.00"},
		{"f", "NaN", "DECIMAL(18, 2)", ""},
		{"f", "-Infinity", "DECIMAL(18, 2)", ""},
		{"g", "1.005", "DECIMAL(9, 2)", "1.01"},
		{"g", "0.1", "DECIMAL(9, 9)", "0.100000000"},
		{"g", "16777216", "DECIMAL(18, 2)", "16777216.00"},
	} {
		b := &column.Batch{N: 1}
		b.Reset(columns)
		b.N = 1
		for i, c := range columns {
			if c.Name != tc.column {
				b.Cols[i].AppendNull()
			} else if err := b.Cols[i].AppendParsed([]byte(tc.value)); err != nil {
				t.Fatal(tc.value, err)
			}
		}
		source := "SELECT CAST(" + tc.column + " AS " + tc.to + ") AS y FROM x INTO z"
		parsed, err := sql.Parse(source)
		if err != nil {
			t.Fatal(err)
		}
		faults := &expression.Faults{}
		e, err := expression.Bind(parsed[0].Statement.(*sql.CreateQuery).Select.Items[0].Expr,
			expression.Scope{Source: source, Columns: columns, Faults: faults})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(eval(t, e, b).AppendValue(nil, 0)); got != tc.want || (faults.Cast == 1) != (tc.want == "") {
			t.Errorf("%s as %s is %q with %+v, not %q", tc.value, tc.to, got, *faults, tc.want)
		}
	}
}

// TestADecimalBecomesTheNearestFloat: also one of more digits than a float holds.
func TestADecimalBecomesTheNearestFloat(t *testing.T) {
	r := rand.New(rand.NewPCG(18, 5))
	source := "SELECT CAST(d AS FLOAT64) AS y FROM x INTO z"
	parsed, err := sql.Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	e, err := expression.Bind(parsed[0].Statement.(*sql.CreateQuery).Select.Items[0].Expr,
		expression.Scope{Source: source, Columns: columns, Faults: &expression.Faults{}})
	if err != nil {
		t.Fatal(err)
	}
	b := &column.Batch{}
	b.Reset(columns)
	for range 5000 {
		for i := range columns {
			if columns[i].Name == "d" {
				b.Cols[i].AppendInt((r.Int64N(2e18-1) - (1e18 - 1)) >> r.IntN(60))
			} else {
				b.Cols[i].AppendNull()
			}
		}
		b.N++
	}
	got := eval(t, e, b)
	for i := range b.N {
		shown := string(b.Cols[4].AppendValue(nil, i))
		if want, err := strconv.ParseFloat(shown, 64); err != nil || got.Floats[i] != want {
			t.Fatalf("%s is %v, not %v (%v)", shown, got.Floats[i], want, err)
		}
	}
}

// TestTwoTextsThatRepeatThemselvesEnd: a query could not be stopped for as long as they were compared, half an hour.
func TestTwoTextsThatRepeatThemselvesEnd(t *testing.T) {
	source := "SELECT a LIKE b AS y FROM x INTO z"
	parsed, err := sql.Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	columns := []column.Column{{Name: "a", Type: column.TextType}, {Name: "b", Type: column.TextType}}
	faults := &expression.Faults{}
	e, err := expression.Bind(parsed[0].Statement.(*sql.CreateQuery).Select.Items[0].Expr,
		expression.Scope{Source: source, Columns: columns, Faults: faults})
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("a", 1<<20)
	b := &column.Batch{}
	b.Reset(columns)
	for _, row := range [][2]string{{long, "%" + long[:1<<19] + "b"}, {long, "%" + long + "%"}, {long, "%b%"}} {
		for i, v := range row {
			if err := b.Cols[i].AppendParsed([]byte(v)); err != nil {
				t.Fatal(err)
			}
		}
		b.N++
	}
	y := eval(t, e, b)
	for i, want := range []string{"", "true", "false"} {
		if got := string(y.AppendValue(nil, i)); got != want || faults.Overflow != 1 {
			t.Errorf("row %d is %q with %+v, not %q", i, got, *faults, want)
		}
	}
}
