package snowflake

import (
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// column is a column of a result.
type column struct {
	kind             string // FIXED, REAL, TEXT, BOOLEAN, DATE, TIME, TIMESTAMP_NTZ, BINARY, VARIANT …
	precision, scale int64
}

// columnTypes reads them from gosnowflake's rows.
func columnTypes(rows driver.Rows) ([]column, error) {
	named, ok := rows.(driver.RowsColumnTypeDatabaseTypeName)
	if !ok {
		return nil, fmt.Errorf("gosnowflake's rows are a %T, which does not tell its types", rows)
	}
	sized, _ := rows.(driver.RowsColumnTypePrecisionScale)
	types := make([]column, len(rows.Columns()))
	for i := range types {
		types[i].kind = named.ColumnTypeDatabaseTypeName(i)
		if sized != nil && types[i].kind == "FIXED" {
			types[i].precision, types[i].scale, _ = sized.ColumnTypePrecisionScale(i)
		}
	}
	return types, nil
}

// value gives what target.ResultSet promises for a value of gosnowflake's, and
// about how long it is. Numbers with a scale stay text, exact as they are; so do
// VARIANT, OBJECT, ARRAY, GEOGRAPHY and whatever comes later.
func (c column) value(v driver.Value) (any, int) {
	switch v := v.(type) {
	case nil:
		return nil, 0
	case string:
		switch c.kind {
		case "FIXED":
			if n, err := strconv.ParseInt(v, 10, 64); err == nil && c.scale == 0 {
				return n, 8
			}
		case "REAL":
			if f, err := strconv.ParseFloat(v, 64); err == nil {
				return f, 8
			}
		case "BOOLEAN":
			return v == "1" || v == "true" || v == "TRUE", 1
		}
		return v, len(v)
	case int64, float64, bool:
		return v, 8
	case []byte:
		text := `\x` + hex.EncodeToString(v)
		return text, len(text)
	case time.Time:
		if c.kind == "TIME" {
			return v.Format("15:04:05.999999999"), 18
		}
		return v.UTC(), 24
	}
	text := fmt.Sprint(v)
	return text, len(text)
}

// maxCachedBytes bounds the row that one operation keeps for refs, in bytes.
const maxCachedBytes = 256 << 10

// rowCache holds, for the transaction under way, the first rows that later operations refer to.
type rowCache struct {
	inside bool
	rows   []cachedRow // one for each operation so far
}

type cachedRow struct {
	referred bool
	present  bool
	long     bool // it is not kept, because it would have been too much
	types    []column
	values   []driver.Value
}

func (k *rowCache) begin() {
	clear(k.rows)
	k.inside, k.rows = true, k.rows[:0]
}

func (k *rowCache) end() { k.inside = false }

func (k *rowCache) add(r cachedRow) { k.rows = append(k.rows, r) }

// value returns what a ref stands for, as appendArgument takes it.
func (k *rowCache) value(operation, at int) (any, error) {
	if !k.inside || operation >= len(k.rows) {
		return nil, fmt.Errorf("a ref names operation %d of its transaction, which has %d so far", operation, len(k.rows))
	}
	r := k.rows[operation]
	switch {
	case !r.referred:
		return nil, fmt.Errorf("a ref names operation %d of its transaction, which keeps no row", operation)
	case at >= len(r.types):
		return nil, fmt.Errorf("a ref names column %d of operation %d, whose statement returns %d columns", at, operation,
			len(r.types))
	case r.long:
		return nil, fmt.Errorf("a ref names the row of operation %d of its transaction, which has more than %d KB", operation,
			maxCachedBytes>>10)
	case !r.present:
		return nil, nil
	}
	v := r.values[at]
	if b, binary := v.([]byte); binary {
		return b, nil
	}
	if text, isText := v.(string); isText && r.types[at].kind == "BOOLEAN" {
		return text == "1" || text == "true" || text == "TRUE", nil
	}
	if t, isTime := v.(time.Time); isTime && r.types[at].kind == "TIME" {
		return t.Format("15:04:05.999999999"), nil
	}
	return v, nil // numbers are text, which loses nothing
}

// readCached counts the rows and keeps the first.
func readCached(rows driver.Rows) (cachedRow, int64, error) {
	r := cachedRow{referred: true}
	var err error
	if r.types, err = columnTypes(rows); err != nil {
		return r, 0, err
	}
	raw := make([]driver.Value, len(r.types))
	for n := int64(0); ; n++ {
		if err := rows.Next(raw); errors.Is(err, io.EOF) {
			return r, n, nil
		} else if err != nil {
			return r, n, err
		}
		if n > 0 {
			continue
		}
		size := 0
		for _, v := range raw {
			switch v := v.(type) {
			case string:
				size += len(v)
			case []byte:
				size += len(v)
			}
		}
		r.present = true
		if r.long = size > maxCachedBytes; !r.long {
			r.values = append([]driver.Value(nil), raw...)
		}
	}
}
