package protocol

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// arrowStream writes rows, which are in Snowflake's JSON form without the outer brackets, as the Arrow stream that an
// account would send: each part of a result is one, with types as narrow as its values let them be.
func arrowStream(columns []Column, text []byte) ([]byte, error) {
	var rows [][]*string
	if err := json.Unmarshal(append(append([]byte{'['}, text...), ']'), &rows); err != nil {
		return nil, fmt.Errorf("reading rows: %w", err)
	}
	fields := make([]arrow.Field, len(columns))
	values := make([]arrow.Array, len(columns))
	defer func() {
		for _, v := range values {
			if v != nil {
				v.Release()
			}
		}
	}()
	for i := range columns {
		c := &columns[i]
		cells := make([]*string, len(rows))
		for r := range rows {
			cells[r] = rows[r][i]
		}
		var err error
		if values[i], err = arrowColumn(c, cells); err != nil {
			return nil, fmt.Errorf("column %s: %w", c.Name, err)
		}
		fields[i] = arrow.Field{Name: c.Name, Type: values[i].DataType(), Nullable: true,
			Metadata: arrow.MetadataFrom(map[string]string{"logicalType": strings.ToUpper(c.Type),
				"precision": strconv.Itoa(max(c.Precision, 0)), "scale": strconv.Itoa(c.Scale),
				"charLength": strconv.Itoa(c.Length), "byteLength": strconv.Itoa(c.ByteLength), "finalType": "T"})}
	}
	schema := arrow.NewSchema(fields, nil)
	record := array.NewRecord(schema, values, int64(len(rows)))
	defer record.Release()
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(schema))
	if err := w.Write(record); err != nil {
		return nil, fmt.Errorf("writing Arrow: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("writing Arrow: %w", err)
	}
	return out.Bytes(), nil
}

// arrowColumn makes the values of a column.
func arrowColumn(c *Column, cells []*string) (arrow.Array, error) {
	switch c.Type {
	case "fixed":
		return fixedColumn(c, cells)
	case "date":
		return fill(array.NewDate32Builder(memory.DefaultAllocator), cells, func(b *array.Date32Builder, text string) error {
			n, err := strconv.ParseInt(text, 10, 32)
			b.Append(arrow.Date32(n))
			return err
		})
	case "real":
		return fill(
			array.NewFloat64Builder(memory.DefaultAllocator),
			cells,
			func(b *array.Float64Builder, text string) error {
				f, err := strconv.ParseFloat(text, 64)
				b.Append(f)
				return err
			},
		)
	case "boolean":
		return fill(
			array.NewBooleanBuilder(memory.DefaultAllocator),
			cells,
			func(b *array.BooleanBuilder, text string) error {
				b.Append(text == "1" || text == "true")
				return nil
			},
		)
	case "binary":
		return fill(array.NewBinaryBuilder(memory.DefaultAllocator, arrow.BinaryTypes.Binary), cells,
			func(b *array.BinaryBuilder, text string) error {
				v, err := hex.DecodeString(text)
				b.Append(v)
				return err
			})
	case "time":
		return fill(array.NewInt64Builder(memory.DefaultAllocator), cells, func(b *array.Int64Builder, text string) error {
			seconds, ns, err := moment(text)
			b.Append(scaled(seconds, ns, c.Scale))
			return err
		})
	case "timestamp_ntz", "timestamp_ltz", "timestamp_tz":
		return momentColumn(c, cells)
	}
	return fill(array.NewStringBuilder(memory.DefaultAllocator), cells, func(b *array.StringBuilder, text string) error {
		b.Append(text)
		return nil
	})
}

// fill appends all values to a builder and returns what it made.
func fill[B array.Builder](b B, cells []*string, add func(b B, text string) error) (arrow.Array, error) {
	defer b.Release()
	b.Reserve(len(cells))
	for _, cell := range cells {
		if cell == nil {
			b.AppendNull()
			continue
		}
		if err := add(b, *cell); err != nil {
			return nil, fmt.Errorf("reading %q: %w", *cell, err)
		}
	}
	return b.NewArray(), nil
}

// unscaled is a number without its point.
func unscaled(text string, scale int) (*big.Int, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	fraction = (fraction + strings.Repeat("0", scale))[:scale]
	n, ok := new(big.Int).SetString(whole+fraction, 10)
	if !ok {
		return nil, fmt.Errorf("%q is no number", text)
	}
	return n, nil
}

// fixedColumn has numbers without their point, as integers of the fewest bytes, or with 16 bytes.
func fixedColumn(c *Column, cells []*string) (arrow.Array, error) {
	bits := 0
	for _, cell := range cells {
		if cell == nil {
			continue
		}
		n, err := unscaled(*cell, c.Scale)
		if err != nil {
			return nil, err
		}
		bits = max(bits, n.BitLen())
	}
	switch {
	case bits < 8:
		return fill(array.NewInt8Builder(memory.DefaultAllocator), cells, integer(c, func(b *array.Int8Builder, n int64) {
			b.Append(int8(n)) //nolint:gosec // it fits
		}))
	case bits < 16:
		return fill(array.NewInt16Builder(memory.DefaultAllocator), cells, integer(c, func(b *array.Int16Builder, n int64) {
			b.Append(int16(n)) //nolint:gosec // it fits
		}))
	case bits < 32:
		return fill(array.NewInt32Builder(memory.DefaultAllocator), cells, integer(c, func(b *array.Int32Builder, n int64) {
			b.Append(int32(n)) //nolint:gosec // it fits
		}))
	case bits < 64:
		return fill(array.NewInt64Builder(memory.DefaultAllocator), cells, integer(c, (*array.Int64Builder).Append))
	}
	kind := &arrow.Decimal128Type{Precision: 38, Scale: int32(c.Scale)} //nolint:gosec // at most 37
	return fill(array.NewDecimal128Builder(memory.DefaultAllocator, kind), cells,
		func(b *array.Decimal128Builder, text string) error {
			n, err := unscaled(text, c.Scale)
			if err == nil {
				b.Append(decimal128.FromBigInt(n))
			}
			return err
		})
}

func integer[B array.Builder](c *Column, add func(B, int64)) func(B, string) error {
	return func(b B, text string) error {
		n, err := unscaled(text, c.Scale)
		if err == nil {
			add(b, n.Int64())
		}
		return err
	}
}

// moment reads "seconds.fraction", whose fraction counts forward.
func moment(text string) (seconds, ns int64, err error) {
	whole, fraction, _ := strings.Cut(text, ".")
	if seconds, err = strconv.ParseInt(whole, 10, 64); err == nil && fraction != "" {
		ns, err = strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
	}
	return seconds, ns, err
}

var powers = [...]int64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9}

// scaled is a moment as one number, in units of the scale.
func scaled(seconds, ns int64, scale int) int64 { return seconds*powers[scale] + ns/powers[9-scale] }

// wideScale is from which scale on a moment is two numbers, of which the first are seconds.
const wideScale = 8

// momentColumn has moments as one number, or as two; those with a zone are in a structure with its offset.
func momentColumn(c *Column, cells []*string) (arrow.Array, error) {
	zoned := c.Type == "timestamp_tz"
	if c.Scale < wideScale && !zoned {
		return fill(array.NewInt64Builder(memory.DefaultAllocator), cells, func(b *array.Int64Builder, text string) error {
			seconds, ns, err := moment(text)
			b.Append(scaled(seconds, ns, c.Scale))
			return err
		})
	}
	fields := []arrow.Field{{Name: "epoch", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}
	if c.Scale >= wideScale {
		fields = append(fields, arrow.Field{Name: "fraction", Type: arrow.PrimitiveTypes.Int32, Nullable: true})
	}
	if zoned {
		fields = append(fields, arrow.Field{Name: "timezone", Type: arrow.PrimitiveTypes.Int32, Nullable: true})
	}
	return fill(array.NewStructBuilder(memory.DefaultAllocator, arrow.StructOf(fields...)), cells,
		func(b *array.StructBuilder, text string) error {
			text, zone, _ := strings.Cut(text, " ")
			seconds, ns, err := moment(text)
			if err != nil {
				return err
			}
			numbers := []int64{scaled(seconds, ns, min(c.Scale, 9))}
			if c.Scale >= wideScale {
				numbers = []int64{seconds, ns}
			}
			if zoned {
				minutes, err := strconv.ParseInt(zone, 10, 32)
				if err != nil {
					return fmt.Errorf("reading a zone: %w", err)
				}
				numbers = append(numbers, minutes)
			}
			b.Append(true)
			for i, n := range numbers {
				switch field := b.FieldBuilder(i).(type) {
				case *array.Int64Builder:
					field.Append(n)
				case *array.Int32Builder:
					field.Append(int32(n)) //nolint:gosec // minutes and nanoseconds
				}
			}
			return nil
		})
}
