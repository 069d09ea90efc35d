package snowflake

import (
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/plugins/adapters/snowflake/dialect"
	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

// column is a column of an existing table, with what only inspecting needs.
type column struct {
	sdk.Column
	// base is the type without its modifier: NUMBER.
	base string
	// sampled columns take their values from existing rows.
	sampled bool
}

// columnsQuery lists the columns.
func columnsQuery(n dialect.TableName) sdk.Query {
	return sdk.Query{ID: "columns", Args: []string{n.Schema.Text, n.Table.Text},
		SQL: "SELECT COLUMN_NAME, DATA_TYPE, IS_NULLABLE, COLUMN_DEFAULT, IS_IDENTITY, CHARACTER_MAXIMUM_LENGTH, " +
			"NUMERIC_PRECISION, NUMERIC_SCALE FROM " +
			dialect.Quoted(n.Database.Text) + ".INFORMATION_SCHEMA.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? ORDER BY " +
			"ORDINAL_POSITION"}
}

func readColumns(r sdk.Result) []column {
	var list []column
	for i := 0; i < r.Rows.Len(); i++ {
		row := r.Rows.At(i)
		c := column{base: strings.ToUpper(row.At(1).Str())}
		precision, _ := row.At(6).Int()
		scale, _ := row.At(7).Int()
		c.Name, c.DBType = row.At(0).Str(), c.base
		c.Nullable = isYes(row.At(2))
		identity := isYes(row.At(4))
		c.HasDefault = !row.At(3).IsNull() && row.At(3).Str() != "" || identity
		length, _ := row.At(5).Int()
		switch c.base {
		case "NUMBER", "DECIMAL", "NUMERIC", "INT", "INTEGER", "BIGINT":
			c.base = "NUMBER"
			c.Type, c.DBType = sdk.Text, "NUMBER("+strconv.FormatInt(precision, 10)+","+strconv.FormatInt(scale, 10)+")"
			if scale == 0 {
				c.Type = sdk.I64
			}
		case "FLOAT", "DOUBLE", "REAL", "DECFLOAT":
			c.Type = sdk.F64
		case "BOOLEAN":
			c.Type = sdk.Bool
		case "BINARY":
			c.Type = sdk.Bytes
			c.MaxLength = bounded(length, maxBinary)
		case "DATE", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "TIMESTAMP_TZ":
			c.Type = sdk.Timestamp
		case "TEXT", "VARCHAR", "CHAR", "STRING":
			c.Type, c.base = sdk.Text, "TEXT"
			if c.MaxLength = bounded(length, maxText); c.MaxLength > 0 {
				c.DBType = "VARCHAR(" + strconv.FormatInt(length, 10) + ")"
			} else {
				c.DBType = "VARCHAR"
			}
		case "TIME", "VARIANT":
			c.Type = sdk.Text
		default:
			// OBJECT, ARRAY, GEOGRAPHY, VECTOR …: values can only be taken from rows.
			c.Type, c.sampled = sdk.Text, true
		}
		list = append(list, c)
	}
	return list
}

// The lengths of text and binary columns that name none: before and since 2025.
const (
	maxText   = 16_777_216
	maxBinary = 8_388_608
)

// bounded is a length that a workload has to heed, or 0.
func bounded(length, unbounded int64) int {
	if length <= 0 || length >= unbounded {
		return 0
	}
	return int(length)
}

// readKey returns the primary key, from SHOW PRIMARY KEYS.
func readKey(r sdk.Result) []string {
	type part struct {
		name string
		at   int64
	}
	var parts []part
	for i := 0; i < r.Rows.Len(); i++ {
		n, _ := strconv.ParseInt(field(r, i, "key_sequence"), 10, 64)
		p := part{name: field(r, i, "column_name"), at: n}
		j := len(parts)
		parts = append(parts, p)
		for ; j > 0 && parts[j-1].at > p.at; j-- {
			parts[j] = parts[j-1]
		}
		parts[j] = p
	}
	var key []string
	for _, p := range parts {
		if p.name != "" {
			key = append(key, p.name)
		}
	}
	return key
}

// markUnique marks the columns that a unique constraint keeps unique, one for
// each constraint: a new value there is enough. Constraints come from SHOW UNIQUE KEYS.
func markUnique(r sdk.Result, columns []column, key []string) {
	carried := map[string]bool{}
	for i := 0; i < r.Rows.Len(); i++ {
		constraint, name := field(r, i, "constraint_name"), field(r, i, "column_name")
		if carried[constraint] {
			continue
		}
		for j := range columns {
			if columns[j].Name == name && (len(key) != 1 || key[0] != name) {
				columns[j].Unique, carried[constraint] = true, true
			}
		}
	}
}

// markReferring marks the columns of foreign keys, from SHOW IMPORTED KEYS: their
// values have to be there already.
func markReferring(r sdk.Result, columns []column) {
	for i := 0; i < r.Rows.Len(); i++ {
		for j := range columns {
			if columns[j].Name == field(r, i, "fk_column_name") {
				columns[j].sampled = true
			}
		}
	}
}

// sampleExpression writes a column as the text that writeSample understands.
func sampleExpression(c column) string {
	name := dialect.Quoted(c.Name)
	switch c.base {
	case "DATE":
		return "TO_VARCHAR(DATE_PART(EPOCH_MICROSECOND, TO_TIMESTAMP_NTZ(" + name + ")))"
	case "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "TIMESTAMP_TZ":
		return "TO_VARCHAR(DATE_PART(EPOCH_MICROSECOND, " + name + "))"
	case "BINARY":
		return "TO_VARCHAR(" + name + ", 'HEX')"
	case "VARIANT", "OBJECT", "ARRAY":
		return "TO_JSON(" + name + ")"
	}
	return "TO_VARCHAR(" + name + ")"
}

// writeSample writes one sampled value in its plugin type.
func writeSample(w *jsondoc.Writer, c column, v *jsondoc.Value) {
	if v.IsNull() {
		w.Null()
		return
	}
	switch c.Type {
	case sdk.I64, sdk.Timestamp:
		if n, ok := v.Int(); ok {
			w.Int(n)
			return
		}
		w.Null()
	case sdk.F64:
		f, err := strconv.ParseFloat(v.Str(), 64)
		if err != nil || f != f {
			w.Null()
			return
		}
		w.Float(f)
	case sdk.Bool:
		w.Bool(strings.EqualFold(v.Str(), "true"))
	default:
		w.Str(v.Str())
	}
}

// isYes reads YES, Y, TRUE and a boolean.
func isYes(v *jsondoc.Value) bool {
	switch strings.ToUpper(v.Str()) {
	case "YES", "Y", "TRUE":
		return true
	}
	return v.Bool()
}
