package snowsim

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// parquetColumns are those of files, as array binds have them.
type parquetColumns struct {
	// logical: USE_LOGICAL_TYPE = TRUE; the default of an account is FALSE.
	logical bool
	names   []string
	types   map[string]string
	values  map[string][]*string
}

func (c *parquetColumns) read(text []byte) error {
	file, err := parquet.OpenFile(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		return err
	}
	fields := file.Schema().Fields()
	kinds := make([]string, len(fields))
	for i, f := range fields {
		name := strings.ToUpper(f.Name())
		if kinds[i] = parquetType(f); kinds[i] == "" {
			return fmt.Errorf("the column %s is of a type that is not simulated", name)
		}
		if c.types[name] == "" {
			c.names = append(c.names, name)
		}
		c.types[name] = kinds[i]
	}
	for _, group := range file.RowGroups() {
		rows := group.Rows()
		buffer := make([]parquet.Row, 256)
		for {
			n, err := rows.ReadRows(buffer)
			for _, row := range buffer[:n] {
				for _, v := range row {
					name := strings.ToUpper(fields[v.Column()].Name())
					c.values[name] = append(c.values[name], c.text(kinds[v.Column()], v))
				}
			}
			if err != nil || n == 0 {
				break
			}
		}
		_ = rows.Close() // only read
	}
	return nil
}

func parquetType(f parquet.Field) string {
	if !f.Leaf() || f.Repeated() {
		return ""
	}
	if l := f.Type().LogicalType(); l != nil {
		if t, ok := l.Value.(*format.TimestampType); ok {
			if t.Unit.Value.Duration() != time.Microsecond {
				return ""
			}
			return "timestamp_ntz"
		}
	}
	switch f.Type().Kind() {
	case parquet.Boolean:
		return "boolean"
	case parquet.Int32, parquet.Int64:
		return "fixed"
	case parquet.Float, parquet.Double:
		return "real"
	case parquet.ByteArray:
		return "text"
	}
	return ""
}

// lastSecond is the last second that a bind can have, in nanoseconds, in the year 2262.
const lastSecond = 9_223_372_035

func (c *parquetColumns) text(kind string, v parquet.Value) *string {
	if v.IsNull() {
		return nil
	}
	var text string
	switch kind {
	case "timestamp_ntz":
		micro := v.Int64()
		if !c.logical {
			// Without the logical type it is a number, and a number that becomes a time is one of seconds: moments of
			// today come to be in the year 55 000 000, or as far from today as a bind can.
			micro = min(micro, lastSecond) * 1e6
		}
		text = strconv.FormatInt(micro, 10) + "000"
	case "boolean":
		text = strconv.FormatBool(v.Boolean())
	case "fixed":
		text = v.String()
	case "real":
		text = strconv.FormatFloat(v.Double(), 'g', -1, 64)
	default:
		text = string(v.ByteArray())
	}
	return &text
}
