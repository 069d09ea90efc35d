package wire

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// errZeroByte is what the server would say of a text with a zero byte, which ends a text of SQL where it stands.
var errZeroByte = &pgconn.PgError{Severity: "ERROR", Code: "22021",
	Message: `invalid byte sequence for encoding "UTF8": 0x00`}

// AppendLiteral writes a value as a constant of SQL, for statements that have no parameters of the protocol.
func AppendLiteral(out []byte, b *plugin.Batch, v plugin.Value) ([]byte, error) {
	switch v.Type {
	case engine.TypeI64:
		if v.I < 0 { // a minus behind another one would begin a comment
			return append(strconv.AppendInt(append(out, '('), v.I, 10), ')'), nil
		}
		return strconv.AppendInt(out, v.I, 10), nil
	case engine.TypeF64:
		if math.IsInf(v.F, 0) || math.IsNaN(v.F) || v.F < 0 || math.Signbit(v.F) {
			return append(strconv.AppendFloat(append(out, '\''), v.F, 'g', -1, 64), '\''), nil
		}
		return strconv.AppendFloat(out, v.F, 'g', -1, 64), nil
	case engine.TypeBool:
		return strconv.AppendBool(out, v.I != 0), nil
	case engine.TypeTimestamp:
		return append(AppendTime(append(out, '\''), time.UnixMicro(v.I)), '\''), nil
	case engine.TypeBytes:
		return append(hex.AppendEncode(append(out, `E'\\x`...), b.Bytes(v)), '\''), nil
	case engine.TypeText:
		return appendQuoted(out, b.Bytes(v))
	}
	return append(out, "NULL"...), nil
}

// appendQuoted writes a text as a constant, whatever standard_conforming_strings says.
func appendQuoted(out, text []byte) ([]byte, error) {
	at, escaped := len(out), false
	out = append(out, 'E', '\'')
	for _, c := range text {
		switch c {
		case 0:
			return out[:at], errZeroByte
		case '\'':
			out = append(out, '\'')
		case '\\':
			out, escaped = append(out, '\\'), true
		}
		out = append(out, c)
	}
	out = append(out, '\'')
	if !escaped {
		out = append(out[:at], out[at+1:]...) // without the E, as people write it
	}
	return out, nil
}

// AppendField writes a value as a field of COPY's text format.
func AppendField(out []byte, b *plugin.Batch, v plugin.Value) ([]byte, error) {
	switch v.Type {
	case engine.TypeI64:
		return strconv.AppendInt(out, v.I, 10), nil
	case engine.TypeF64:
		return strconv.AppendFloat(out, v.F, 'g', -1, 64), nil
	case engine.TypeBool:
		return strconv.AppendBool(out, v.I != 0), nil
	case engine.TypeTimestamp:
		return AppendTime(out, time.UnixMicro(v.I)), nil
	case engine.TypeBytes:
		return hex.AppendEncode(append(out, `\\x`...), b.Bytes(v)), nil
	case engine.TypeText:
		return AppendEscaped(out, b.Bytes(v))
	}
	return append(out, `\N`...), nil
}

// AppendEscaped writes a text as a field of COPY's text format.
func AppendEscaped(out, text []byte) ([]byte, error) {
	for _, c := range text {
		switch c {
		case '\\':
			out = append(out, '\\', '\\')
		case '\n':
			out = append(out, '\\', 'n')
		case '\r':
			out = append(out, '\\', 'r')
		case '\t':
			out = append(out, '\\', 't')
		default:
			out = append(out, c)
		}
	}
	return out, nil
}

// AppendRefLiteral writes the value that v refers to as a constant of SQL.
func (k *RowCache) AppendRefLiteral(out []byte, v plugin.Value) ([]byte, error) {
	return k.appendRefText(out, v, "NULL", appendQuoted)
}

// AppendRefField writes the value that v refers to as a field of COPY's text format.
func (k *RowCache) AppendRefField(out []byte, v plugin.Value) ([]byte, error) {
	return k.appendRefText(out, v, `\N`, AppendEscaped)
}

// appendRefText writes the text of what v refers to behind out, and then as write has it in its place.
func (k *RowCache) appendRefText(out []byte, v plugin.Value, null string,
	write func(out, text []byte) ([]byte, error)) ([]byte, error) {
	at := len(out)
	out, _, err := k.AppendRef(out, v, 0)
	if err != nil {
		return out[:at], err
	}
	if int32(binary.BigEndian.Uint32(out[at:])) < 0 {
		return append(out[:at], null...), nil
	}
	from, end := at+4, len(out)
	text := out[from:end:end]
	if n, c := v.Ref(); k.rows[n].fields[c] == (Field{OID: pgtype.ByteaOID, Binary: true}) {
		text = hex.AppendEncode([]byte(`\x`), text)
	}
	if out, err = write(out, text); err != nil {
		return out[:at], err
	}
	return append(out[:at], out[end:]...), nil
}

// A COPY FROM STDIN is sent with its rows: what executes it, then the rows, then what ends them and the round trip. A
// server that refuses it passes over the rows.
var (
	ExecuteOnly = ExecuteAndSync[:len(ExecuteAndSync)-len(syncMessage)]
	DoneAndSync = append([]byte{'c', 0, 0, 0, 4}, syncMessage...)
)

var syncMessage = []byte{'S', 0, 0, 0, 4}
