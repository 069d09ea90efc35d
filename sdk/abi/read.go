package abi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrMalformed is wrapped by every error of this package's readers.
var ErrMalformed = errors.New("malformed batch")

// Header reads a batch header.
func Header(b []byte) (nops uint32, err error) {
	if len(b) < HeaderSize {
		return 0, fmt.Errorf("%w: %d bytes, a header has %d", ErrMalformed, len(b), HeaderSize)
	}
	if v := binary.LittleEndian.Uint16(b); v != BatchVersion {
		return 0, fmt.Errorf("%w: version %d, expected %d", ErrMalformed, v, BatchVersion)
	}
	if f := binary.LittleEndian.Uint16(b[2:]); f != 0 {
		return 0, fmt.Errorf("%w: unknown flags %#x", ErrMalformed, f)
	}
	return binary.LittleEndian.Uint32(b[4:]), nil
}

// Value is one decoded value; Data points into the batch.
type Value struct {
	Type uint8
	I    int64 // i64, timestamp, bool; k<<8 | c of a ref
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
			return nil, fmt.Errorf("%w: operation %d is cut off", ErrMalformed, i)
		}
		op := Op{Statement: binary.LittleEndian.Uint16(b[pos:])}
		n := int(b[pos+2])
		pos += 3
		for a := 0; a < n; a++ {
			v, next, err := ReadValue(b, pos)
			if err != nil {
				return nil, fmt.Errorf("operation %d, argument %d: %w", i, a, err)
			}
			op.Args = append(op.Args, v)
			pos = next
		}
		ops = append(ops, op)
	}
	if pos != len(b) {
		return nil, fmt.Errorf("%w: %d bytes follow the last operation", ErrMalformed, len(b)-pos)
	}
	return ops, nil
}

// ReadValue reads the value at pos and returns the position after it.
func ReadValue(b []byte, pos int) (v Value, next int, err error) {
	if pos < 0 || pos >= len(b) {
		return v, 0, fmt.Errorf("%w: cut off", ErrMalformed)
	}
	v.Type = b[pos]
	pos++
	rest := len(b) - pos
	switch v.Type {
	case TypeNull:
		return v, pos, nil
	case TypeI64, TypeTimestamp, TypeF64:
		if rest < 8 {
			return v, 0, fmt.Errorf("%w: cut off", ErrMalformed)
		}
		x := binary.LittleEndian.Uint64(b[pos:])
		if v.Type == TypeF64 {
			v.F = math.Float64frombits(x)
		} else {
			v.I = int64(x)
		}
		return v, pos + 8, nil
	case TypeBool:
		if rest < 1 || b[pos] > 1 {
			return v, 0, fmt.Errorf("%w: a bool is 0 or 1", ErrMalformed)
		}
		v.I = int64(b[pos])
		return v, pos + 1, nil
	case TypeRef:
		if rest < 2 {
			return v, 0, fmt.Errorf("%w: cut off", ErrMalformed)
		}
		v.I = int64(b[pos])<<8 | int64(b[pos+1])
		return v, pos + 2, nil
	case TypeText, TypeBytes:
		if rest < 4 {
			return v, 0, fmt.Errorf("%w: cut off", ErrMalformed)
		}
		n := binary.LittleEndian.Uint32(b[pos:])
		pos += 4
		if uint64(n) > uint64(len(b)-pos) {
			return v, 0, fmt.Errorf("%w: a %s of %d bytes reaches past the end", ErrMalformed, TypeName(v.Type), n)
		}
		v.Data = b[pos : pos+int(n)]
		return v, pos + int(n), nil
	}
	return v, 0, fmt.Errorf("%w: unknown value type %d", ErrMalformed, v.Type)
}
