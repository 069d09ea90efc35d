package abi

import (
	"errors"
	"math"
	"strconv"
)

// ErrMalformed is wrapped by every error of this package's readers.
var ErrMalformed = errors.New("malformed batch")

// malformed stands in for fmt, which would double the size of a guest.
type malformed string

func (m malformed) Error() string { return "malformed batch: " + string(m) }
func (malformed) Unwrap() error   { return ErrMalformed }

func le16(b []byte) uint16 { return uint16(b[0]) | uint16(b[1])<<8 }
func le32(b []byte) uint32 { return uint32(le16(b)) | uint32(le16(b[2:]))<<16 }
func le64(b []byte) uint64 { return uint64(le32(b)) | uint64(le32(b[4:]))<<32 }

// Header reads a batch header.
func Header(b []byte) (nops uint32, err error) {
	if len(b) < HeaderSize {
		return 0, malformed(strconv.Itoa(len(b)) + " bytes, a header has " + strconv.Itoa(HeaderSize))
	}
	if v := le16(b); v != BatchVersion {
		return 0, malformed("version " + strconv.Itoa(int(v)) + ", expected " + strconv.Itoa(BatchVersion))
	}
	if f := le16(b[2:]); f != 0 {
		return 0, malformed("unknown flags " + strconv.Itoa(int(f)))
	}
	return le32(b[4:]), nil
}

// Value is one decoded value; Data points into the batch.
type Value struct {
	Type uint8
	I    int64 // i64, timestamp, bool; k<<8 | c of a ref; pool<<40 | column<<32 | number of a key
	F    float64
	Data []byte
}

// Op is one decoded operation.
type Op struct {
	Statement uint16
	Args      []Value
}

// Decode reads a whole batch. It checks lengths and types but knows no
// statements; it is made for tests and tools, the host has its own decoder.
func Decode(b []byte) ([]Op, error) {
	nops, err := Header(b)
	if err != nil {
		return nil, err
	}
	var ops []Op
	pos := HeaderSize
	for i := uint32(0); i < nops; i++ {
		if len(b)-pos < 3 {
			return nil, malformed("operation " + strconv.Itoa(int(i)) + " is cut off")
		}
		op := Op{Statement: le16(b[pos:])}
		n := int(b[pos+2])
		pos += 3
		for a := 0; a < n; a++ {
			v, next, err := ReadValue(b, pos)
			if err != nil {
				return nil, malformed("operation " + strconv.Itoa(int(i)) + ", argument " + strconv.Itoa(a) + ": " + err.Error())
			}
			op.Args = append(op.Args, v)
			pos = next
		}
		ops = append(ops, op)
	}
	if pos != len(b) {
		return nil, malformed(strconv.Itoa(len(b)-pos) + " bytes follow the last operation")
	}
	return ops, nil
}

// ReadValue reads the value at pos and returns the position after it.
func ReadValue(b []byte, pos int) (v Value, next int, err error) {
	if pos < 0 || pos >= len(b) {
		return v, 0, malformed("cut off")
	}
	v.Type = b[pos]
	pos++
	rest := len(b) - pos
	switch v.Type {
	case TypeNull:
		return v, pos, nil
	case TypeI64, TypeTimestamp, TypeF64:
		if rest < 8 {
			return v, 0, malformed("cut off")
		}
		x := le64(b[pos:])
		if v.Type == TypeF64 {
			v.F = math.Float64frombits(x)
		} else {
			v.I = int64(x)
		}
		return v, pos + 8, nil
	case TypeBool:
		if rest < 1 || b[pos] > 1 {
			return v, 0, malformed("a bool is 0 or 1")
		}
		v.I = int64(b[pos])
		return v, pos + 1, nil
	case TypeRef:
		if rest < 2 {
			return v, 0, malformed("cut off")
		}
		v.I = int64(b[pos])<<8 | int64(b[pos+1])
		return v, pos + 2, nil
	case TypeKey:
		if rest < 6 {
			return v, 0, malformed("cut off")
		}
		v.I = int64(b[pos])<<40 | int64(b[pos+1])<<32 | int64(le32(b[pos+2:]))
		return v, pos + 6, nil
	case TypeText, TypeBytes:
		if rest < 4 {
			return v, 0, malformed("cut off")
		}
		n := le32(b[pos:])
		pos += 4
		if uint64(n) > uint64(len(b)-pos) {
			return v, 0, malformed("a " + TypeName(v.Type) + " of " + strconv.FormatUint(uint64(n), 10) +
				" bytes reaches past the end")
		}
		v.Data = b[pos : pos+int(n)]
		return v, pos + int(n), nil
	}
	return v, 0, malformed("unknown value type " + strconv.Itoa(int(v.Type)))
}
