package query

import (
	"encoding/hex"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/parquet-go/parquet-go"

	"github.com/loadstone-db/loadstone/engine"
)

// parquetColumns is a group whose columns are in the order of the answer: that of the library is in the order of names.
type parquetColumns struct {
	parquet.Group
	names []string
}

// Fields implements parquet.Node.
func (g parquetColumns) Fields() []parquet.Field {
	by := map[string]parquet.Field{}
	for _, f := range g.Group.Fields() {
		by[f.Name()] = f
	}
	fields := make([]parquet.Field, len(g.names))
	for i, name := range g.names {
		fields[i] = by[name]
	}
	return fields
}

// writeParquet writes the columns in their order, each in the type of Parquet that is the database's; what Parquet has
// no type for is text. All columns may be null.
func writeParquet(out io.Writer, a Answer) error {
	columns := parquetColumns{Group: parquet.Group{}}
	var types []parquetType
	for i, c := range a.Columns {
		if _, twice := columns.Group[c.Name]; twice || c.Name == "" || strings.Contains(c.Name, ",") {
			return engine.InvalidField("sql", fmt.Sprintf("gives column %d the name %q", i+1, c.Name),
				"in Parquet each column has a name of its own, without a comma: … AS name")
		}
		t := parquetTypeOf(c.Type, a.Rows, i)
		columns.Group[c.Name] = parquet.Optional(t.node)
		columns.names, types = append(columns.names, c.Name), append(types, t)
	}
	w := parquet.NewWriter(out, parquet.NewSchema("answer", columns))
	for _, row := range a.Rows {
		values := make(parquet.Row, len(row))
		for i, v := range row {
			s, ok := Text(v)
			if !ok {
				values[i] = parquet.NullValue().Level(0, 0, i)
				continue
			}
			value, err := types[i].value(s)
			if err != nil {
				return engine.InvalidField("sql", fmt.Sprintf("gives the column %q the value %.60q, which Parquet has no %s for",
					a.Columns[i].Name, s, a.Columns[i].Type), "cast it: … ::text")
			}
			values[i] = value.Level(0, 1, i)
		}
		if _, err := w.WriteRows([]parquet.Row{values}); err != nil {
			return err
		}
	}
	return w.Close()
}

// parquetType is how a column is written.
type parquetType struct {
	node parquet.Node
	// value is a value that the database wrote as text.
	value func(s string) (parquet.Value, error)
}

// parquetTypeOf is how column i of rows is written, which is of a type of the database.
func parquetTypeOf(typ string, rows [][]any, i int) parquetType {
	switch typ {
	case "bool":
		return parquetType{parquet.Leaf(parquet.BooleanType), func(s string) (parquet.Value, error) {
			return parquet.BooleanValue(s == "true"), nil
		}}
	case "int2", "int4", "int8":
		bits := map[string]int{"int2": 16, "int4": 32, "int8": 64}[typ]
		return parquetType{parquet.Int(bits), func(s string) (parquet.Value, error) {
			n, err := strconv.ParseInt(s, 10, bits)
			if bits == 64 {
				return parquet.Int64Value(n), err
			}
			return parquet.Int32Value(int32(n)), err
		}}
	case "float4":
		return parquetType{parquet.Leaf(parquet.FloatType), func(s string) (parquet.Value, error) {
			n, err := strconv.ParseFloat(s, 32) // Infinity and NaN too
			return parquet.FloatValue(float32(n)), err
		}}
	case "float8":
		return parquetDouble
	case "numeric":
		if scale, exact := decimalScale(rows, i); exact {
			return parquetDecimal(scale)
		}
		return parquetDouble
	case "timestamptz":
		return parquetTime(parquet.TimestampAdjusted(parquet.Microsecond, true), "2006-01-02 15:04:05Z07",
			"2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05-07", "2006-01-02 15:04:05-07:00", time.RFC3339Nano)
	case "timestamp":
		return parquetTime(parquet.TimestampAdjusted(parquet.Microsecond, false), "2006-01-02 15:04:05",
			"2006-01-02T15:04:05")
	case "date":
		return parquetType{parquet.Date(), func(s string) (parquet.Value, error) {
			t, err := time.Parse(time.DateOnly, s)
			return parquet.Int32Value(int32(t.Unix() / (24 * 60 * 60))), err
		}}
	case "uuid":
		return parquetType{parquet.UUID(), func(s string) (parquet.Value, error) {
			id, err := uuid.Parse(s)
			return parquet.FixedLenByteArrayValue(id[:]), err
		}}
	case "bytea":
		return parquetType{parquet.Leaf(parquet.ByteArrayType), func(s string) (parquet.Value, error) {
			data, err := hex.DecodeString(strings.TrimPrefix(s, `\x`))
			return parquet.ByteArrayValue(data), err
		}}
	case "json", "jsonb":
		return parquetType{parquet.JSON(), parquetText}
	}
	return parquetType{parquet.String(), parquetText}
}

func parquetText(s string) (parquet.Value, error) { return parquet.ByteArrayValue([]byte(s)), nil }

var parquetDouble = parquetType{parquet.Leaf(parquet.DoubleType), func(s string) (parquet.Value, error) {
	n, err := strconv.ParseFloat(s, 64) // Infinity and NaN too
	return parquet.DoubleValue(n), err
}}

// parquetTime is a point in time, written in one of some layouts.
func parquetTime(node parquet.Node, layouts ...string) parquetType {
	return parquetType{node, func(s string) (parquet.Value, error) {
		var t time.Time
		var err error
		for _, layout := range layouts {
			if t, err = time.Parse(layout, s); err == nil {
				return parquet.Int64Value(t.UnixMicro()), nil
			}
		}
		return parquet.Value{}, err
	}}
}

// decimalDigits is how many digits a decimal has at most, and decimalBytes how many bytes it takes.
const (
	decimalDigits = 38
	decimalBytes  = 16
)

// decimalScale is how many digits stand behind the point in a column of decimals at most; exact is false where they
// have no room in a decimal of Parquet, or one is no number.
func decimalScale(rows [][]any, i int) (scale int, exact bool) {
	whole := 1
	for _, row := range rows {
		s, ok := Text(row[i])
		if !ok {
			continue
		}
		before, behind, _ := strings.Cut(strings.TrimLeft(s, "-"), ".")
		if strings.Trim(before+behind, "0123456789") != "" || before == "" {
			return 0, false
		}
		whole, scale = max(whole, len(before)), max(scale, len(behind))
	}
	return scale, whole+scale <= decimalDigits
}

// parquetDecimal is a decimal with so many digits behind the point.
func parquetDecimal(scale int) parquetType {
	node := parquet.Decimal(scale, decimalDigits, parquet.FixedLenByteArrayType(decimalBytes))
	return parquetType{node, func(s string) (parquet.Value, error) {
		whole, behind, _ := strings.Cut(s, ".")
		n, ok := new(big.Int).SetString(whole+behind+strings.Repeat("0", scale-len(behind)), 10)
		if !ok {
			return parquet.Value{}, strconv.ErrSyntax
		}
		if n.Sign() < 0 { // two's complement
			n.Add(n, new(big.Int).Lsh(big.NewInt(1), 8*decimalBytes))
		}
		return parquet.FixedLenByteArrayValue(n.FillBytes(make([]byte, decimalBytes))), nil
	}}
}
