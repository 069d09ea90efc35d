package column

import (
	"math"
	"strconv"
	"time"
)

// Column is a column of a schema. Table is what it may be qualified with.
type Column struct {
	Table, Name string
	Type        Type
	NotNull     bool
}

// Vec holds the values of one column. Of the slices only that of its kind is in use; Null has one entry for each row.
type Vec struct {
	Type   Type
	Ints   []int64
	Floats []float64
	Bools  []bool
	// Text i is Bytes[Ends[i-1]:Ends[i]].
	Bytes []byte
	Ends  []int32
	// Same says that Bytes is the text of every row, and that Ends is not in use. Nothing is appended to such a vector.
	Same bool
	Null []bool
}

// MaxText is how many bytes of text a vector holds that is computed: Ends count up to 2 GiB, and a batch of rows with
// long texts would take more.
const MaxText = 256 << 20

// Len is the number of values.
func (v *Vec) Len() int { return len(v.Null) }

// Reset empties the vector and gives it a type; it keeps its memory.
func (v *Vec) Reset(t Type) {
	v.Type, v.Same = t, false
	v.Ints, v.Floats, v.Bools, v.Bytes, v.Ends, v.Null = v.Ints[:0], v.Floats[:0], v.Bools[:0], v.Bytes[:0],
		v.Ends[:0], v.Null[:0]
}

// ResetSized empties the vector and makes room for n values that are to be set by index; texts have to be appended.
func (v *Vec) ResetSized(t Type, n int) {
	v.Reset(t)
	if t.Kind == Text {
		return
	}
	v.Null = sized(v.Null, n)
	clear(v.Null)
	switch t.Kind {
	case Float:
		v.Floats = sized(v.Floats, n)
	case Boolean, Unknown:
		v.Bools = sized(v.Bools, n)
	default:
		v.Ints = sized(v.Ints, n)
	}
}

func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/2)
	}
	return s[:n]
}

// Text is the text of a row; it is valid until the vector changes.
func (v *Vec) Text(i int) []byte {
	if v.Same {
		return v.Bytes
	}
	if i == 0 {
		return v.Bytes[:v.Ends[0]]
	}
	return v.Bytes[v.Ends[i-1]:v.Ends[i]]
}

// AppendNull appends NULL.
func (v *Vec) AppendNull() {
	switch v.Type.Kind {
	case Float:
		v.Floats = append(v.Floats, 0)
	case Boolean, Unknown:
		v.Bools = append(v.Bools, false)
	case Text:
		v.Ends = append(v.Ends, int32(len(v.Bytes)))
	default:
		v.Ints = append(v.Ints, 0)
	}
	v.Null = append(v.Null, true)
}

// AppendInt appends an integer, decimal or time.
func (v *Vec) AppendInt(x int64) { v.Ints, v.Null = append(v.Ints, x), append(v.Null, false) }

// AppendFloat appends a float.
func (v *Vec) AppendFloat(x float64) { v.Floats, v.Null = append(v.Floats, x), append(v.Null, false) }

// AppendBool appends a truth value.
func (v *Vec) AppendBool(x bool) { v.Bools, v.Null = append(v.Bools, x), append(v.Null, false) }

// AppendText appends a text, which is copied; NULL where the vector would hold more than MaxText.
func (v *Vec) AppendText(x []byte) {
	if len(v.Bytes)+len(x) > MaxText {
		v.AppendNull()
		return
	}
	v.Bytes = append(v.Bytes, x...)
	v.Ends, v.Null = append(v.Ends, int32(len(v.Bytes))), append(v.Null, false)
}

// AppendFrom appends row i of a vector of the same kind, or of NULLs.
func (v *Vec) AppendFrom(o *Vec, i int) {
	if o.Null[i] || o.Type.Kind == Unknown {
		v.AppendNull()
		return
	}
	switch v.Type.Kind {
	case Float:
		v.AppendFloat(o.Floats[i])
	case Boolean:
		v.AppendBool(o.Bools[i])
	case Text:
		v.AppendText(o.Text(i))
	case Unknown:
		v.AppendNull()
	default:
		v.AppendInt(o.Ints[i])
	}
}

// Gather makes the vector the given rows of another.
func (v *Vec) Gather(o *Vec, rows []int32) {
	v.Reset(o.Type)
	switch o.Type.Kind {
	case Float:
		for _, r := range rows {
			v.Floats = append(v.Floats, o.Floats[r])
		}
	case Boolean, Unknown:
		for _, r := range rows {
			v.Bools = append(v.Bools, o.Bools[r])
		}
	case Text:
		if v.Same = o.Same; v.Same {
			v.Bytes = append(v.Bytes, o.Bytes...)
			break
		}
		for _, r := range rows {
			v.Bytes = append(v.Bytes, o.Text(int(r))...)
			v.Ends = append(v.Ends, int32(len(v.Bytes)))
		}
	default:
		for _, r := range rows {
			v.Ints = append(v.Ints, o.Ints[r])
		}
	}
	for _, r := range rows {
		v.Null = append(v.Null, o.Null[r])
	}
}

// Size is about how many bytes the values take.
func (v *Vec) Size() int {
	return 8*cap(v.Ints) + 8*cap(v.Floats) + cap(v.Bools) + cap(v.Bytes) + 4*cap(v.Ends) + cap(v.Null)
}

// timeLayout shows microseconds where there are any.
const timeLayout = "2006-01-02T15:04:05.999999Z"

// AppendValue appends row i as text, as sinks write it; NULL appends nothing.
func (v *Vec) AppendValue(to []byte, i int) []byte {
	if v.Null[i] {
		return to
	}
	switch v.Type.Kind {
	case Int:
		return strconv.AppendInt(to, v.Ints[i], 10)
	case Decimal:
		return appendDecimal(to, v.Ints[i], v.Type.Scale)
	case Float:
		return appendFloat(to, v.Floats[i], int(v.Type.Bits))
	case Boolean:
		return strconv.AppendBool(to, v.Bools[i])
	case Timestamp:
		return time.UnixMicro(v.Ints[i]).UTC().AppendFormat(to, timeLayout)
	case Text:
		return append(to, v.Text(i)...)
	}
	return to
}

func appendFloat(to []byte, f float64, bits int) []byte {
	switch {
	case math.IsNaN(f):
		return append(to, "NaN"...)
	case math.IsInf(f, 1):
		return append(to, "Infinity"...)
	case math.IsInf(f, -1):
		return append(to, "-Infinity"...)
	case math.Abs(f) >= 1e-6 && math.Abs(f) < 1e15 || f == 0:
		return strconv.AppendFloat(to, f+0, 'f', -1, bits)
	}
	return strconv.AppendFloat(to, f, 'e', -1, bits)
}

func appendDecimal(to []byte, v int64, scale uint8) []byte {
	if v < 0 {
		to = append(to, '-')
	}
	u := uint64(v)
	if v < 0 {
		u = -u
	}
	p := uint64(Pow10[scale])
	to = strconv.AppendUint(to, u/p, 10)
	if scale == 0 {
		return to
	}
	to = append(to, '.')
	begin := len(to)
	to = strconv.AppendUint(to, u%p+p, 10) // a leading 1 keeps the zeros
	copy(to[begin:], to[begin+1:])
	return to[:len(to)-1]
}

// SetSame makes n rows of one text, which is the vector's to read until it is reset.
func (v *Vec) SetSame(text []byte, n int) {
	v.Reset(TextType)
	v.Same, v.Bytes, v.Null = true, append(v.Bytes, text...), sized(v.Null, n)
	clear(v.Null)
}

// Batch is rows by columns; all columns have N values.
type Batch struct {
	N    int
	Cols []Vec
	// Watermark, where Marked is set, is how far the source has come: no row that comes behind this batch has an earlier
	// time, in microseconds since 1970. Else the latest time of its rows says that. A batch without rows may be marked.
	Watermark    int64
	HasWatermark bool
	// More says that the next batch goes on with this one: no clock moves between them. It may be without rows.
	More bool
}

// Reset empties the batch and gives it columns.
func (b *Batch) Reset(columns []Column) {
	b.N, b.Watermark, b.HasWatermark, b.More = 0, 0, false, false
	if len(b.Cols) != len(columns) {
		b.Cols = make([]Vec, len(columns))
	}
	for i := range b.Cols {
		b.Cols[i].Reset(columns[i].Type)
	}
}

// Size is about how many bytes the values of the batch take.
func (b *Batch) Size() (bytes int) {
	for i := range b.Cols {
		bytes += b.Cols[i].Size()
	}
	return bytes
}

// Truncate keeps the first n values.
func (v *Vec) Truncate(n int) {
	if v.Len() <= n {
		return
	}
	v.Null = v.Null[:n]
	switch v.Type.Kind {
	case Float:
		v.Floats = v.Floats[:n]
	case Boolean, Unknown:
		v.Bools = v.Bools[:n]
	case Text:
		if v.Same {
			return
		}
		v.Ends = v.Ends[:n]
		if v.Bytes = v.Bytes[:0]; n > 0 {
			v.Bytes = v.Bytes[:v.Ends[n-1]]
		}
	default:
		v.Ints = v.Ints[:n]
	}
}
