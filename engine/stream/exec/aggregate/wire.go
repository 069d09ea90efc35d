package aggregate

import (
	"encoding/binary"
	"math"

	"github.com/loadstone-db/loadstone/engine/base/histogram"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
)

// portable is a state that travels between processes, group by group.
type portable interface {
	// appendWire appends a group.
	appendWire(to []byte, group int) []byte
	// mergeWire adds a group that travelled.
	mergeWire(group int, w *column.Wire)
}

// groupsPerPiece is how many groups travel in a piece.
const groupsPerPiece = 256

// Pieces calls fn for pieces of the table as it travels, in an order of their own; buffer is memory for them. Merging
// all of them elsewhere, with MergeWire, is merging the table.
func (t *Table) Pieces(buffer []byte, fn func(piece []byte) error) error {
	for from := 0; from < t.Len(); from += groupsPerPiece {
		until := min(from+groupsPerPiece, t.Len())
		buffer = binary.AppendUvarint(buffer[:0], uint64(until-from))
		for i := range t.Values {
			buffer = t.Values[i].AppendWire(buffer, from, until)
		}
		for _, s := range t.States {
			for g := from; g < until; g++ {
				buffer = s.(portable).appendWire(buffer, g)
			}
		}
		if err := fn(buffer); err != nil {
			return err
		}
	}
	return nil
}

// Piece holds the groups of a piece while it is merged; one may be used for many.
type Piece struct {
	cols []column.Vec
	refs []*column.Vec
}

// MergeWire merges a piece of another table of the same groups and functions, and returns how many groups it had. keys
// are those of the table. After an error, which is column.ErrWire, the table is not what it was.
func (t *Table) MergeWire(keys *Keys, p *Piece, w *column.Wire) (int, error) {
	n := w.Count(groupsPerPiece)
	if len(p.cols) != len(t.Values) {
		p.cols = make([]column.Vec, len(t.Values))
	}
	p.refs = p.refs[:0]
	for i := range p.cols {
		p.cols[i].ReadWire(w, t.Values[i].Type, n)
		p.refs = append(p.refs, &p.cols[i])
	}
	if w.Err() != nil {
		return 0, w.Err()
	}
	keys.Encode(p.refs, n)
	var groups [groupsPerPiece]int32
	for i := range n {
		groups[i] = t.Group(keys, p.refs, i)
	}
	for _, s := range t.States {
		for _, g := range groups[:n] {
			if s.(portable).mergeWire(int(g), w); w.Err() != nil {
				return 0, w.Err()
			}
		}
	}
	return n, nil
}

func appendFixed(to []byte, x uint64) []byte { return binary.LittleEndian.AppendUint64(to, x) }

func appendFloat(to []byte, x float64) []byte { return appendFixed(to, math.Float64bits(x)) }

func appendBool(to []byte, b bool) []byte {
	if b {
		return append(to, 1)
	}
	return append(to, 0)
}

func (s *count) appendWire(to []byte, g int) []byte { return binary.AppendVarint(to, s.n[g]) }

func (s *count) mergeWire(g int, w *column.Wire) { s.n[g] += w.Varint() }

func (s *sumInt) appendWire(to []byte, g int) []byte {
	x := s.sums[g]
	return binary.AppendVarint(appendFixed(binary.AppendVarint(to, x.hi), x.lo), x.n)
}

func (s *sumInt) mergeWire(g int, w *column.Wire) {
	hi, lo, n := w.Varint(), w.Fixed(), w.Varint()
	s.sums[g].add(hi, lo)
	s.sums[g].n += n
}

// A sum of floats travels as a sum with what rounding lost, as versions without great parts read it: they come to the
// same, and where the whole has no room to NULL.

func (s *sumFloat) appendWire(to []byte, g int) []byte {
	x := &s.sums[g]
	whole := x.whole()
	return appendBool(binary.AppendVarint(appendFloat(appendFloat(to, whole.sum), whole.lost), x.n), x.infinite)
}

func (s *sumFloat) mergeWire(g int, w *column.Wire) {
	whole := compensatedSum{w.Float(), w.Float()}
	x := floatSum{n: w.Varint(), infinite: w.Byte() == 1}
	if w.Err() == nil {
		x.setWhole(whole)
		s.sums[g].merge(&x)
	}
}

func (s *deviation) appendWire(to []byte, g int) []byte {
	x := s.groups[g]
	return appendFloat(appendFloat(appendFloat(to, x.n), x.mean), x.m2)
}

func (s *deviation) mergeWire(g int, w *column.Wire) {
	x := moments{n: w.Float(), mean: w.Float(), m2: w.Float()}
	s.Merge(g, &deviation{groups: []moments{x}}, 0)
}

func (s *extremeInt) appendWire(to []byte, g int) []byte {
	if to = appendBool(to, s.seen[g]); s.seen[g] {
		to = binary.AppendVarint(to, s.values[g])
	}
	return to
}

func (s *extremeInt) mergeWire(g int, w *column.Wire) {
	if w.Byte() == 1 {
		if x := w.Varint(); w.Err() == nil {
			s.one(int32(g), x)
		}
	}
}

func (s *extremeFloat) appendWire(to []byte, g int) []byte {
	if to = appendBool(to, s.seen[g]); s.seen[g] {
		to = appendFloat(to, s.values[g])
	}
	return to
}

func (s *extremeFloat) mergeWire(g int, w *column.Wire) {
	if w.Byte() == 1 {
		if x := w.Float(); w.Err() == nil {
			s.one(int32(g), x)
		}
	}
}

func (s *extremeBool) appendWire(to []byte, g int) []byte {
	return appendBool(appendBool(to, s.seen[g]), s.values[g])
}

func (s *extremeBool) mergeWire(g int, w *column.Wire) {
	if seen, x := w.Byte() == 1, w.Byte() == 1; seen && w.Err() == nil {
		s.one(int32(g), x)
	}
}

func (s *extremeText) appendWire(to []byte, g int) []byte {
	if to = appendBool(to, s.seen[g]); s.seen[g] {
		to = append(binary.AppendUvarint(to, uint64(len(s.values[g]))), s.values[g]...)
	}
	return to
}

func (s *extremeText) mergeWire(g int, w *column.Wire) {
	if w.Byte() == 1 {
		if x := w.Bytes(w.Count(math.MaxInt32)); w.Err() == nil {
			s.one(int32(g), x)
		}
	}
}

func (s *last) appendWire(to []byte, g int) []byte {
	l := &s.groups[g]
	if to = appendBool(to, l.seen); l.seen {
		to = l.v.AppendWire(binary.AppendVarint(to, l.time), 0, 1)
	}
	return to
}

func (s *last) mergeWire(g int, w *column.Wire) {
	if w.Byte() != 1 {
		return
	}
	t := w.Varint()
	if s.read.ReadWire(w, s.arg, 1); w.Err() == nil {
		s.one(g, t, &s.read, 0)
	}
}

// maxBuckets is how many a histogram can have.
const maxBuckets = 63<<histogram.Schema + 1

func (s *quantile) appendWire(to []byte, g int) []byte {
	for _, h := range []*histogram.Compact{s.above[g], s.below[g]} {
		if to = appendBool(to, h != nil); h == nil {
			continue
		}
		d := h.Data()
		to = binary.AppendVarint(to, int64(d.Offset))
		to = binary.AppendUvarint(to, uint64(len(d.Counts)))
		for _, c := range d.Counts {
			to = binary.AppendUvarint(to, uint64(c))
		}
		to = appendFixed(appendFixed(appendFixed(to, uint64(d.Sum)), uint64(d.Min)), uint64(d.Max))
	}
	return to
}

func (s *quantile) mergeWire(g int, w *column.Wire) {
	for _, side := range [][]*histogram.Compact{s.above, s.below} {
		if w.Byte() != 1 {
			continue
		}
		d := new(histogram.Compact).Data()
		d.Offset = int(w.Varint())
		n := w.Count(maxBuckets)
		if d.Offset < 0 || d.Offset+n > maxBuckets || n > w.Len() {
			w.Fail()
			return
		}
		d.Counts = make([]int64, n)
		for i := range d.Counts {
			d.Counts[i] = int64(w.Count(math.MaxInt))
		}
		d.Sum, d.Min, d.Max = int64(w.Fixed()), int64(w.Fixed()), int64(w.Fixed())
		if w.Err() == nil {
			s.record(side, g).MergeData(&d)
		}
	}
}
