package column

import (
	"encoding/binary"
	"errors"
	"math"
)

// ErrWire says that what came from another process is not what it should be.
var ErrWire = errors.New("rows from another process cannot be read")

// MaxWireRows bounds the rows of a batch on its way between processes, and their values: what rows take does not follow
// from how many bytes have travelled.
const MaxWireRows = 1 << 17

// AppendWire appends the values of rows from … until-1 as they travel between processes. The type does not travel: who
// reads knows it.
func (v *Vec) AppendWire(to []byte, from, until int) []byte {
	to = append(to, byte(v.Type.Kind))
	to = appendBits(to, v.Null[from:until])
	switch v.Type.Kind {
	case Float:
		for _, x := range v.Floats[from:until] {
			to = binary.LittleEndian.AppendUint64(to, math.Float64bits(x))
		}
	case Boolean, Unknown:
		to = appendBits(to, v.Bools[from:until])
	case Text:
		for i := from; i < until; i++ {
			x := v.Text(i)
			to = append(binary.AppendUvarint(to, uint64(len(x))), x...)
		}
	default:
		for _, x := range v.Ints[from:until] {
			to = binary.LittleEndian.AppendUint64(to, uint64(x))
		}
	}
	return to
}

// appendBits appends truth values, eight to a byte, and a single 0 where none is true.
func appendBits(to []byte, bits []bool) []byte {
	some := false
	for _, b := range bits {
		some = some || b
	}
	if !some {
		return append(to, 0)
	}
	to = append(to, 1)
	for i := 0; i < len(bits); i += 8 {
		var packed byte
		for k, b := range bits[i:min(i+8, len(bits))] {
			if b {
				packed |= 1 << k
			}
		}
		to = append(to, packed)
	}
	return to
}

// Wire reads what came from another process. The first thing that is wrong ends it: what it returns from then on is
// nothing.
type Wire struct {
	rest []byte
	err  error
}

// NewWire reads data, which has to stay as it is.
func NewWire(data []byte) *Wire { return &Wire{rest: data} }

// Err is ErrWire once something was wrong.
func (w *Wire) Err() error { return w.err }

// Len is how many bytes are left.
func (w *Wire) Len() int { return len(w.rest) }

// Fail ends the reading.
func (w *Wire) Fail() { w.rest, w.err = nil, ErrWire }

// Bytes are the next n bytes, nil where there are fewer.
func (w *Wire) Bytes(n int) []byte {
	if n < 0 || n > len(w.rest) {
		w.Fail()
		return nil
	}
	b := w.rest[:n:n]
	w.rest = w.rest[n:]
	return b
}

// Byte is the next byte.
func (w *Wire) Byte() byte {
	if b := w.Bytes(1); b != nil {
		return b[0]
	}
	return 0
}

// Fixed is the next number of eight bytes.
func (w *Wire) Fixed() uint64 {
	if b := w.Bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// Count is a number of things, most at the most.
func (w *Wire) Count(most int) int {
	n, size := binary.Uvarint(w.rest)
	if size <= 0 || n > uint64(most) {
		w.Fail()
		return 0
	}
	w.rest = w.rest[size:]
	return int(n)
}

// Varint is the next signed number of variable length.
func (w *Wire) Varint() int64 {
	n, size := binary.Varint(w.rest)
	if size <= 0 {
		w.Fail()
		return 0
	}
	w.rest = w.rest[size:]
	return n
}

// Float is the next float.
func (w *Wire) Float() float64 { return math.Float64frombits(w.Fixed()) }

// bits reads n truth values.
func (w *Wire) bits(to []bool, n int) []bool {
	to = sized(to, n)
	clear(to)
	if w.Byte() == 0 {
		return to
	}
	packed := w.Bytes((n + 7) / 8)
	for i := range to {
		if packed == nil {
			break
		}
		to[i] = packed[i/8]&(1<<(i%8)) != 0
	}
	return to
}

// ReadWire replaces the values by n that travelled, of the type t. When w has failed the vector has n values
// nevertheless.
func (v *Vec) ReadWire(w *Wire, t Type, n int) {
	v.Reset(t)
	if Kind(w.Byte()) != t.Kind {
		w.Fail()
	}
	v.Null = w.bits(v.Null, n)
	switch t.Kind {
	case Float:
		v.Floats = sized(v.Floats, n)
		if b := w.Bytes(8 * n); b != nil {
			for i := range v.Floats {
				v.Floats[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
			}
		}
	case Boolean, Unknown:
		v.Bools = w.bits(v.Bools, n)
	case Text:
		for range n {
			if x := w.Bytes(w.Count(math.MaxInt32 - len(v.Bytes))); x != nil {
				v.Bytes = append(v.Bytes, x...)
			}
			v.Ends = append(v.Ends, int32(len(v.Bytes)))
		}
	default:
		v.Ints = sized(v.Ints, n)
		if b := w.Bytes(8 * n); b != nil {
			for i := range v.Ints {
				v.Ints[i] = int64(binary.LittleEndian.Uint64(b[8*i:]))
			}
		}
	}
}

// AppendWire appends rows from … until-1 of the batch.
func (b *Batch) AppendWire(to []byte, from, until int) []byte {
	to = binary.AppendUvarint(to, uint64(until-from))
	for i := range b.Cols {
		to = b.Cols[i].AppendWire(to, from, until)
	}
	return to
}

// ReadWire replaces the rows by those that travelled, of a schema.
func (b *Batch) ReadWire(w *Wire, columns []Column) {
	b.Reset(columns)
	n := w.Count(max(1, MaxWireRows/max(1, len(columns))))
	for i := range b.Cols {
		b.Cols[i].ReadWire(w, columns[i].Type, n)
	}
	if b.N = n; w.Err() != nil {
		b.Reset(columns)
	}
}
