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

// Field is one column of a statement's result.
type Field struct {
	OID uint32
	// Binary is its format when the row is kept for refs.
	Binary bool
}

// maxCachedBytes bounds the rows that one transaction keeps, in bytes: each connection has them in memory.
const maxCachedBytes = 256 << 10

// RowCache holds, for the transaction under way, the first rows that later
// operations refer to, as the server sent them. Its memory is reused, so that a
// transaction in steady state allocates nothing.
type RowCache struct {
	rows   []cachedRow // one for each operation so far
	data   []byte
	Inside bool
}

// cachedRow is a DataRow's body in kept.data; there is none when there was no row,
// or when nothing refers to it.
type cachedRow struct {
	fields   []Field // its columns
	present  bool
	long     bool // it is not kept, because it would have been too much
	from, to int
}

// Begin forgets the rows of the transaction before.
func (k *RowCache) Begin() { k.Inside, k.rows, k.data = true, k.rows[:0], k.data[:0] }

// End notes that no transaction is under way.
func (k *RowCache) End() { k.Inside = false }

// Add notes that an operation of the transaction has ended. row is its first one;
// nil means none, or one that is too long.
func (k *RowCache) Add(fields []Field, row []byte, long bool) {
	r := cachedRow{fields: fields, present: row != nil, long: long, from: len(k.data)}
	if len(k.data)+len(row) > maxCachedBytes {
		r.long, row = true, nil
	}
	k.data = append(k.data, row...)
	r.to = len(k.data)
	k.rows = append(k.rows, r)
}

var errShortRow = &ProtocolError{"a row shorter than it says"}

// column returns the bytes of column c of a DataRow's body, nil for NULL.
func column(row []byte, c int) ([]byte, error) {
	if len(row) < 2 || int(binary.BigEndian.Uint16(row)) <= c {
		return nil, errShortRow
	}
	row = row[2:]
	for ; ; c-- {
		if len(row) < 4 {
			return nil, errShortRow
		}
		n := int32(binary.BigEndian.Uint32(row))
		row = row[4:]
		if int(n) > len(row) {
			return nil, errShortRow
		}
		switch {
		case c == 0 && n < 0:
			return nil, nil
		case c == 0:
			return row[:n:n], nil
		case n > 0:
			row = row[n:]
		}
	}
}

// AppendRef appends the value that v refers to, for a parameter of the type oid.
func (k *RowCache) AppendRef(out []byte, v plugin.Value, oid uint32) ([]byte, byte, error) {
	n, at := v.Ref()
	if !k.Inside || n >= len(k.rows) {
		return nil, 0, fmt.Errorf("a ref names operation %d of its transaction, which has %d so far", n, len(k.rows))
	}
	row := k.rows[n]
	fields := row.fields
	if at >= len(fields) {
		return nil, 0, fmt.Errorf("a ref names column %d of operation %d, whose statement returns %d columns", at, n,
			len(fields))
	}
	if row.long {
		return nil, 0, fmt.Errorf("a ref names the row of operation %d of its transaction, and its rows with refs have "+
			"more than %d KB", n, maxCachedBytes>>10)
	}
	if !row.present {
		return append(out, 0xff, 0xff, 0xff, 0xff), TextFormat, nil
	}
	raw, err := column(k.data[row.from:row.to], at)
	if err != nil {
		return nil, 0, err
	}
	if raw == nil {
		return append(out, 0xff, 0xff, 0xff, 0xff), TextFormat, nil
	}
	out, format := appendConverted(out, raw, fields[at], oid)
	return out, format, nil
}

// appendConverted appends a value that the server sent, for a parameter of the type
// oid. A value of the same type travels as it came. Between types it becomes what
// the server's assignment cast would make of it, as far as there is one; else it travels as
// text and the server judges.
func appendConverted(out, raw []byte, from Field, oid uint32) ([]byte, byte) {
	to := FormOf(oid)
	if from.OID == oid {
		if from.Binary {
			return appendSized(out, raw), BinaryFormat
		}
		return appendSized(out, raw), TextFormat
	}
	if !from.Binary {
		if from.OID == pgtype.NumericOID && (to == formInt2 || to == formInt4 || to == formInt8) {
			at := len(out)
			return PutLength(appendRounded(append(out, 0, 0, 0, 0), raw), at), TextFormat
		}
		return appendText(out, raw, to)
	}
	switch FormOf(from.OID) {
	case formInt2:
		if len(raw) == 2 {
			return AppendInt(out, int64(int16(binary.BigEndian.Uint16(raw))), to)
		}
	case formInt4:
		if len(raw) == 4 {
			return AppendInt(out, int64(int32(binary.BigEndian.Uint32(raw))), to)
		}
	case formInt8:
		if len(raw) == 8 {
			return AppendInt(out, int64(binary.BigEndian.Uint64(raw)), to)
		}
	case formOID:
		if len(raw) == 4 {
			return AppendInt(out, int64(binary.BigEndian.Uint32(raw)), to)
		}
	case formFloat4:
		if len(raw) == 4 {
			return appendReal(out, float64(math.Float32frombits(binary.BigEndian.Uint32(raw))), 32, to)
		}
	case formFloat8:
		if len(raw) == 8 {
			return appendReal(out, math.Float64frombits(binary.BigEndian.Uint64(raw)), 64, to)
		}
	case FormBool:
		if len(raw) == 1 {
			return AppendValue(out, nil, plugin.Value{Type: engine.TypeBool, I: int64(raw[0] & 1)}, to)
		}
	case FormTimestamp:
		if len(raw) == 8 {
			return appendInstant(out, int64(binary.BigEndian.Uint64(raw)), from.OID, to)
		}
	case FormDate:
		if len(raw) == 4 {
			return appendDay(out, int32(binary.BigEndian.Uint32(raw)), to)
		}
	case FormUUID:
		if len(raw) == 16 && to != FormBytea {
			at := len(out)
			return PutLength(appendUUID(append(out, 0, 0, 0, 0), raw), at), TextFormat
		}
	case FormRaw:
		if from.OID == pgtype.BPCharOID { // its padding is no part of the value
			for len(raw) > 0 && raw[len(raw)-1] == ' ' {
				raw = raw[:len(raw)-1]
			}
		}
	}
	return appendText(out, raw, to)
}

func appendSized(out, data []byte) []byte {
	out = binary.BigEndian.AppendUint32(out, uint32(len(data)))
	return append(out, data...)
}

// appendText appends text for a parameter of any form.
func appendText(out, text []byte, to Form) ([]byte, byte) {
	if to == FormRaw || to == FormBytea {
		return appendSized(out, text), BinaryFormat
	}
	return appendSized(out, text), TextFormat
}

// appendReal appends a float of 32 or 64 bits; integers get the nearest, halves
// to the even one, as the server's cast does.
func appendReal(out []byte, x float64, bits int, to Form) ([]byte, byte) {
	switch to {
	case formFloat4, formFloat8:
		return AppendFloat(out, x, to)
	case formInt2, formInt4, formInt8:
		if r := math.RoundToEven(x); math.Abs(r) < 1<<63 {
			return AppendInt(out, int64(r), to)
		}
	}
	switch {
	case math.IsInf(x, 1):
		return appendText(out, []byte("Infinity"), to)
	case math.IsInf(x, -1):
		return appendText(out, []byte("-Infinity"), to)
	}
	at := len(out)
	return PutLength(strconv.AppendFloat(append(out, 0, 0, 0, 0), x, 'g', -1, bits), at), TextFormat
}

// appendRounded appends the text of a numeric rounded to an integer, halves away
// from zero; what is no number stays as it is.
func appendRounded(out, text []byte) []byte {
	start, point := len(out), len(text)
	for i, b := range text {
		if b == '.' {
			point = i
			break
		}
	}
	out = append(out, text[:point]...)
	if point+1 >= len(text) || text[point+1] < '5' {
		return out
	}
	i := len(out) - 1
	for ; i >= start && out[i] == '9'; i-- {
		out[i] = '0'
	}
	if i >= start && out[i] >= '0' && out[i] <= '8' {
		out[i]++
		return out
	}
	// A carry out of the first digit.
	out = append(out, 0)
	copy(out[i+2:], out[i+1:])
	out[i+1] = '1'
	return out
}

// appendInstant appends µs since 2000; infinities have no number elsewhere.
func appendInstant(out []byte, micros int64, oid uint32, to Form) ([]byte, byte) {
	switch {
	case to == FormTimestamp:
		return binary.BigEndian.AppendUint64(append(out, 0, 0, 0, 8), uint64(micros)), BinaryFormat
	case micros == math.MaxInt64:
		return appendText(out, []byte("infinity"), to)
	case micros == math.MinInt64:
		return appendText(out, []byte("-infinity"), to)
	case to == FormDate:
		return AppendTimestamp(out, micros+epochMicros, to)
	}
	layout := "2006-01-02 15:04:05.999999"
	if oid == pgtype.TimestamptzOID {
		layout = "2006-01-02 15:04:05.999999-07"
	}
	at := len(out)
	out = time.UnixMicro(micros+epochMicros).UTC().AppendFormat(append(out, 0, 0, 0, 0), layout)
	return PutLength(out, at), TextFormat
}

// appendDay appends days since 2000.
func appendDay(out []byte, day int32, to Form) ([]byte, byte) {
	switch {
	case day == math.MaxInt32:
		return appendText(out, []byte("infinity"), to)
	case day == math.MinInt32:
		return appendText(out, []byte("-infinity"), to)
	case to == FormTimestamp:
		return binary.BigEndian.AppendUint64(append(out, 0, 0, 0, 8), uint64(int64(day)*dayMicros)), BinaryFormat
	}
	at := len(out)
	out = time.UnixMicro(int64(day)*dayMicros+epochMicros).UTC().AppendFormat(append(out, 0, 0, 0, 0), "2006-01-02")
	return PutLength(out, at), TextFormat
}

func appendUUID(out, raw []byte) []byte {
	const digits = "0123456789abcdef"
	for i, b := range raw {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			out = append(out, '-')
		}
		out = append(out, digits[b>>4], digits[b&15])
	}
	return out
}
