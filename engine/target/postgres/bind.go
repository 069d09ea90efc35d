package postgres

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

// form is how values of one server type travel.
type form uint8

const (
	formText form = iota // the type's text input, for whatever has no binary path here
	formRaw              // text types: binary and text are the same bytes
	formInt2
	formInt4
	formInt8
	formOID
	formFloat4
	formFloat8
	formBool
	formBytea
	formTimestamp // timestamp and timestamptz: µs since 2000-01-01
	formDate      // days since 2000-01-01
	formUUID
)

func formOf(oid uint32) form {
	switch oid {
	case pgtype.TextOID, pgtype.VarcharOID, pgtype.BPCharOID, pgtype.NameOID, pgtype.UnknownOID:
		return formRaw
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
		return formBool
	case pgtype.ByteaOID:
		return formBytea
	case pgtype.TimestampOID, pgtype.TimestamptzOID:
		return formTimestamp
	case pgtype.DateOID:
		return formDate
	case pgtype.UUIDOID:
		return formUUID
	}
	return formText
}

// binaryResult lists the types whose binary output is certain to exist and no
// dearer for the server than the text one.
func binaryResult(oid uint32) bool {
	switch oid {
	case pgtype.NumericOID, pgtype.JSONOID, pgtype.JSONBOID, pgtype.TimeOID, pgtype.IntervalOID, pgtype.QCharOID:
		return true
	}
	return formOf(oid) != formText
}

const (
	textFormat   = 0
	binaryFormat = 1
	// µs and days between the epochs of Unix and PostgreSQL.
	epochMicros = 946684800 * 1000000
	dayMicros   = 24 * 3600 * 1000000
)

// appendValue appends the length and the bytes of v for a parameter of the
// given form, and returns the format code used. What does not fit the binary
// form travels as text, so that the server judges it and reports its own error.
func appendValue(out []byte, b *plugin.Batch, v plugin.Value, f form) ([]byte, byte) {
	var data []byte
	switch v.Type {
	case engine.TypeI64:
		return appendInt(out, v.I, f)
	case engine.TypeF64:
		return appendFloat(out, v.F, f)
	case engine.TypeBool:
		if f == formBool {
			return append(out, 0, 0, 0, 1, byte(v.I&1)), binaryFormat
		}
		if v.I != 0 {
			return append(out, 0, 0, 0, 4, 't', 'r', 'u', 'e'), textFormat
		}
		return append(out, 0, 0, 0, 5, 'f', 'a', 'l', 's', 'e'), textFormat
	case engine.TypeTimestamp:
		return appendTimestamp(out, v.I, f)
	case engine.TypeText:
		data = b.Bytes(v)
		out = binary.BigEndian.AppendUint32(out, uint32(len(data)))
		if f == formRaw || f == formBytea {
			return append(out, data...), binaryFormat
		}
		return append(out, data...), textFormat
	case engine.TypeBytes:
		data = b.Bytes(v)
		out = binary.BigEndian.AppendUint32(out, uint32(len(data)))
		if f == formRaw || f == formBytea || f == formUUID && len(data) == 16 {
			return append(out, data...), binaryFormat
		}
		return append(out, data...), textFormat
	}
	return append(out, 0xff, 0xff, 0xff, 0xff), textFormat // NULL
}

func appendInt(out []byte, i int64, f form) ([]byte, byte) {
	switch {
	case f == formInt8:
		return binary.BigEndian.AppendUint64(append(out, 0, 0, 0, 8), uint64(i)), binaryFormat
	case f == formInt4 && i == int64(int32(i)):
		return binary.BigEndian.AppendUint32(append(out, 0, 0, 0, 4), uint32(i)), binaryFormat
	case f == formInt2 && i == int64(int16(i)):
		return binary.BigEndian.AppendUint16(append(out, 0, 0, 0, 2), uint16(i)), binaryFormat
	case f == formOID && i == int64(uint32(i)):
		return binary.BigEndian.AppendUint32(append(out, 0, 0, 0, 4), uint32(i)), binaryFormat
	case f == formFloat8:
		return binary.BigEndian.AppendUint64(append(out, 0, 0, 0, 8), math.Float64bits(float64(i))), binaryFormat
	case f == formFloat4:
		return binary.BigEndian.AppendUint32(append(out, 0, 0, 0, 4), math.Float32bits(float32(i))), binaryFormat
	}
	at := len(out)
	out = strconv.AppendInt(append(out, 0, 0, 0, 0), i, 10)
	return sized(out, at), textFormat
}

func appendFloat(out []byte, x float64, f form) ([]byte, byte) {
	switch {
	case f == formFloat8:
		return binary.BigEndian.AppendUint64(append(out, 0, 0, 0, 8), math.Float64bits(x)), binaryFormat
	case f == formFloat4:
		return binary.BigEndian.AppendUint32(append(out, 0, 0, 0, 4), math.Float32bits(float32(x))), binaryFormat
	case x == math.Trunc(x) && math.Abs(x) < 1<<53:
		return appendInt(out, int64(x), f)
	}
	at := len(out)
	out = strconv.AppendFloat(append(out, 0, 0, 0, 0), x, 'g', -1, 64)
	return sized(out, at), textFormat
}

func appendTimestamp(out []byte, micros int64, f form) ([]byte, byte) {
	switch f {
	case formTimestamp:
		return binary.BigEndian.AppendUint64(append(out, 0, 0, 0, 8), uint64(micros-epochMicros)), binaryFormat
	case formDate:
		return binary.BigEndian.AppendUint32(append(out, 0, 0, 0, 4), uint32(dayOf(micros))), binaryFormat
	}
	at := len(out)
	out = appendTime(append(out, 0, 0, 0, 0), time.UnixMicro(micros))
	return sized(out, at), textFormat
}

// appendTime writes a time as the server reads it: years before the common era have
// a mark behind them, and no sign.
func appendTime(out []byte, t time.Time) []byte {
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

// sized writes the length of the value that begins after the four bytes at at.
func sized(out []byte, at int) []byte {
	binary.BigEndian.PutUint32(out[at:], uint32(len(out)-at-4))
	return out
}
