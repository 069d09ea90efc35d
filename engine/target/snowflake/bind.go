package snowflake

import (
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	sf "github.com/snowflakedb/gosnowflake/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// bindMode writes values as gosnowflake takes them. It does not ask for the types
// of parameters: the type of a bind is that of its Go value, and for a few types that of a
// marker before it, which holds for all that follow.
//
//	i64        FIXED
//	f64        TEXT: gosnowflake v2.1.0 writes a REAL with the digits of a float32.
//	           Snowflake reads the text as the number it is compared with or stored as.
//	text       TEXT
//	bool       BOOLEAN
//	timestamp  TIMESTAMP_NTZ, in UTC as the session's time zone is, so that it is the same
//	           instant for NTZ, LTZ and TZ columns
//	bytes      BINARY, with a marker; empty ones are TEXT, because gosnowflake writes
//	           them as "[]"
//
// While the marker is BINARY, every []byte is a value, further markers too: it is
// written once, until a timestamp sets another mode.
type bindMode struct{ binary bool }

func (m *bindMode) append(out []driver.NamedValue, v driver.Value) []driver.NamedValue {
	return append(out, driver.NamedValue{Ordinal: len(out) + 1, Value: v})
}

func (m *bindMode) appendBytes(out []driver.NamedValue, v []byte) []driver.NamedValue {
	if len(v) == 0 {
		return m.append(out, "")
	}
	if !m.binary {
		out = m.append(out, sf.DataTypeBinary)
		m.binary = true
	}
	return m.append(out, v)
}

func (m *bindMode) appendTime(out []driver.NamedValue, at time.Time) []driver.NamedValue {
	m.binary = false
	return m.append(out, sf.TypedNullTime{Time: sql.NullTime{Time: at.UTC(), Valid: true}, TzType: sf.TimestampNTZType})
}

func floatText(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// appendValue adds a value of a batch.
func (m *bindMode) appendValue(out []driver.NamedValue, b *plugin.Batch, v plugin.Value) ([]driver.NamedValue, error) {
	switch v.Type {
	case "":
		return m.append(out, nil), nil
	case engine.TypeI64:
		return m.append(out, v.I), nil
	case engine.TypeF64:
		return m.append(out, floatText(v.F)), nil
	case engine.TypeText:
		return m.append(out, string(b.Bytes(v))), nil
	case engine.TypeBytes:
		// The batch is filled again only when the operation has ended.
		return m.appendBytes(out, b.Bytes(v)), nil
	case engine.TypeBool:
		return m.append(out, v.I != 0), nil
	case engine.TypeTimestamp:
		return m.appendTime(out, time.UnixMicro(v.I)), nil
	}
	return nil, fmt.Errorf("a value of type %q cannot be bound", v.Type)
}

// appendArgument adds an argument of Query, or a value that Snowflake returned.
func (m *bindMode) appendArgument(out []driver.NamedValue, a any) ([]driver.NamedValue, error) {
	switch a := a.(type) {
	case nil, int64, bool, string:
		return m.append(out, a), nil
	case int:
		return m.append(out, int64(a)), nil
	case float64:
		return m.append(out, floatText(a)), nil
	case json.Number:
		return m.append(out, a.String()), nil
	case []byte:
		return m.appendBytes(out, a), nil
	case time.Time:
		return m.appendTime(out, a), nil
	}
	return nil, fmt.Errorf("a %T cannot be sent", a)
}
