package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// Form is how values of one server type travel.
type Form uint8

// How values travel.
const (
	FormText Form = iota // the type's text input, for whatever has no binary path here
	FormRaw              // text types: binary and text are the same bytes
	formInt2
	formInt4
	formInt8
	formOID
	formFloat4
	formFloat8
	FormBool
	FormBytea
	FormTimestamp // timestamp and timestamptz: µs since 2000-01-01
	FormDate      // days since 2000-01-01
	FormUUID
)

// FormOf returns how values of a server type travel.
func FormOf(oid uint32) Form {
	switch oid {
	case pgtype.TextOID, pgtype.VarcharOID, pgtype.BPCharOID, pgtype.NameOID, pgtype.UnknownOID:
		return FormRaw
	case pgtype.Int2OID:
		return formInt2
	case pgtype.Int4OID:
		return formInt4
	case pgtype.Int8OID:
		return formInt8
	case pgtype.OIDOID:
		return formOID
	case pgtype.Float4OID:
		return formFloat4
	case pgtype.Float8OID:
		return formFloat8
	case pgtype.BoolOID:
		return FormBool
	case pgtype.ByteaOID:
		return FormBytea
	case pgtype.TimestampOID, pgtype.TimestamptzOID:
		return FormTimestamp
	case pgtype.DateOID:
		return FormDate
	case pgtype.UUIDOID:
		return FormUUID
	}
	return FormText
}

// BinaryResult lists the types whose binary output is certain to exist and no
// dearer for the server than the text one.
func BinaryResult(oid uint32) bool {
	switch oid {
	case pgtype.NumericOID, pgtype.JSONOID, pgtype.JSONBOID, pgtype.TimeOID, pgtype.IntervalOID, pgtype.QCharOID:
		return true
	}
	return FormOf(oid) != FormText
}

// The formats of values, and the epochs that lie between theirs and ours.
const (
	TextFormat   = 0
	BinaryFormat = 1
	// µs and days between the epochs of Unix and PostgreSQL.
	epochMicros = 946684800 * 1000000
	dayMicros   = 24 * 3600 * 1000000
)

// AppendValue appends the length and the bytes of v for a parameter of the
// given form, and returns the format code used. What does not fit the binary
// form travels as text, so that the server judges it and reports its own error.
func AppendValue(out []byte, b *plugin.Batch, v plugin.Value, f Form) ([]byte, byte) {
	var data []byte
	switch v.Type {
	case engine.TypeI64:
		return AppendInt(out, v.I, f)
	case engine.TypeF64:
		return AppendFloat(out, v.F, f)
	case engine.TypeBool:
		if f == FormBool {
			return append(out, 0, 0, 0, 1, byte(v.I&1)), BinaryFormat
		}
		if v.I != 0 {
			return append(out, 0, 0, 0, 4, 't', 'r', 'u', 'e'), TextFormat
		}
		return append(out, 0, 0, 0, 5, 'f', 'a', 'l', 's', 'e'), TextFormat
	case engine.TypeTimestamp:
		return AppendTimestamp(out, v.I, f)
	case engine.TypeText:
		data = b.Bytes(v)
		out = binary.BigEndian.AppendUint32(out, uint32(len(data)))
		if f == FormRaw || f == FormBytea {
			return append(out, data...), BinaryFormat
		}
		return append(out, data...), TextFormat
	case engine.TypeBytes:
		data = b.Bytes(v)
		out = binary.BigEndian.AppendUint32(out, uint32(len(data)))
		if f == FormRaw || f == FormBytea || f == FormUUID && len(data) == 16 {
			return append(out, data...), BinaryFormat
		}
		return append(out, data...), TextFormat
	}
	return append(out, 0xff, 0xff, 0xff, 0xff), TextFormat // NULL
}

// AppendInt is AppendValue of an integer.
func AppendInt(out []byte, i int64, f Form) ([]byte, byte) {
	switch {
	case f == formInt8:
		return binary.BigEndian.AppendUint64(append(out, 0, 0, 0, 8), uint64(i)), BinaryFormat
	case f == formInt4 && i == int64(int32(i)):
		return binary.BigEndian.AppendUint32(append(out, 0, 0, 0, 4), uint32(i)), BinaryFormat
	case f == formInt2 && i == int64(int16(i)):
		return binary.BigEndian.AppendUint16(append(out, 0, 0, 0, 2), uint16(i)), BinaryFormat
	case f == formOID && i == int64(uint32(i)):
		return binary.BigEndian.AppendUint32(append(out, 0, 0, 0, 4), uint32(i)), BinaryFormat
	case f == formFloat8:
		return binary.BigEndian.AppendUint64(append(out, 0, 0, 0, 8), math.Float64bits(float64(i))), BinaryFormat
	case f == formFloat4:
		return binary.BigEndian.AppendUint32(append(out, 0, 0, 0, 4), math.Float32bits(float32(i))), BinaryFormat
	}
	at := len(out)
	out = strconv.AppendInt(append(out, 0, 0, 0, 0), i, 10)
	return PutLength(out, at), TextFormat
}

// AppendFloat is AppendValue of a floating point number.
func AppendFloat(out []byte, x float64, f Form) ([]byte, byte) {
	switch {
	case f == formFloat8:
		return binary.BigEndian.AppendUint64(append(out, 0, 0, 0, 8), math.Float64bits(x)), BinaryFormat
	case f == formFloat4:
		return binary.BigEndian.AppendUint32(append(out, 0, 0, 0, 4), math.Float32bits(float32(x))), BinaryFormat
	case x == math.Trunc(x) && math.Abs(x) < 1<<53:
		return AppendInt(out, int64(x), f)
	}
	at := len(out)
	out = strconv.AppendFloat(append(out, 0, 0, 0, 0), x, 'g', -1, 64)
	return PutLength(out, at), TextFormat
}

// AppendTimestamp is AppendValue of a time, in µs since 1970.
func AppendTimestamp(out []byte, micros int64, f Form) ([]byte, byte) {
	switch f {
	case FormTimestamp:
		return binary.BigEndian.AppendUint64(append(out, 0, 0, 0, 8), uint64(micros-epochMicros)), BinaryFormat
	case FormDate:
		return binary.BigEndian.AppendUint32(append(out, 0, 0, 0, 4), uint32(dayOf(micros))), BinaryFormat
	}
	at := len(out)
	out = AppendTime(append(out, 0, 0, 0, 0), time.UnixMicro(micros))
	return PutLength(out, at), TextFormat
}

// AppendTime writes a time as the server reads it: years before the common era have
// a mark behind them, and no sign.
func AppendTime(out []byte, t time.Time) []byte {
	t = t.UTC()
	if t.Year() > 0 {
		return t.AppendFormat(out, "2006-01-02 15:04:05.999999Z07:00")
	}
	out = fmt.Appendf(out, "%04d", 1-t.Year())
	return append(t.AppendFormat(out, "-01-02 15:04:05.999999Z07:00"), " BC"...)
}

func dayOf(micros int64) int32 {
	since := micros - epochMicros
	day := since / dayMicros
	if since%dayMicros < 0 {
		day--
	}
	return int32(day)
}

// PutLength writes the length of the value that begins after the four bytes at at.
func PutLength(out []byte, at int) []byte {
	binary.BigEndian.PutUint32(out[at:], uint32(len(out)-at-4))
	return out
}
