package aggregate

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/exec/expression"
)

// Keys are the groups of the rows of a batch, each as bytes that are equal where the groups are.
type Keys struct {
	bytes  []byte
	ends   []int
	hashes []uint64
	seed   maphash.Seed
}

// NewKeys returns keys whose hashes nobody can foresee.
func NewKeys() *Keys { return &Keys{seed: maphash.MakeSeed()} }

// Encode makes the keys of n rows. NULLs are one group, and so are NaNs, and both zeros.
func (k *Keys) Encode(cols []*column.Vec, n int) {
	k.bytes, k.ends, k.hashes = k.bytes[:0], k.ends[:0], k.hashes[:0]
	for i := range n {
		begin := len(k.bytes)
		for _, c := range cols {
			k.bytes = appendKey(k.bytes, c, i)
		}
		k.ends = append(k.ends, len(k.bytes))
		k.hashes = append(k.hashes, maphash.Bytes(k.seed, k.bytes[begin:]))
	}
}

// Size is how many bytes the keys take.
func (k *Keys) Size() int { return cap(k.bytes) + 8*cap(k.ends) + 8*cap(k.hashes) }

// Key is the key of a row; it is valid until the next Encode.
func (k *Keys) Key(i int) []byte {
	if i == 0 {
		return k.bytes[:k.ends[0]]
	}
	return k.bytes[k.ends[i-1]:k.ends[i]]
}

func appendKey(to []byte, c *column.Vec, i int) []byte {
	if c.Null[i] {
		return append(to, 0)
	}
	to = append(to, 1)
	switch c.Type.Kind {
	case column.Float:
		f := c.Floats[i] + 0
		if f != f {
			f = math.NaN()
		}
		if f == 0 {
			f = 0
		}
		return binary.LittleEndian.AppendUint64(to, math.Float64bits(f))
	case column.Boolean:
		if c.Bools[i] {
			return append(to, 1)
		}
		return append(to, 0)
	case column.Text:
		to = binary.LittleEndian.AppendUint32(to, uint32(len(c.Text(i))))
		return append(to, c.Text(i)...)
	case column.Unknown:
		return to
	}
	return binary.LittleEndian.AppendUint64(to, uint64(c.Ints[i]))
}

// Table holds the states of groups.
type Table struct {
	// Values are the columns of the groups, a row each, in the order in which they came.
	Values []column.Vec
	States []State
	// Rows are how many were added, as far as who adds them counts.
	Rows int64

	keys   []byte
	ends   []int
	hashes []uint64
	slots  []int32 // open addressing: group+1, or 0
	// groupBytes is about how many bytes a group takes, and empty what the table takes besides.
	groupBytes, empty int
}

// What a table takes that has one group or none: vectors and states have room for several as soon as they have one.
const (
	tableBytes  = 512
	vectorBytes = 256 // of a column of groups, or of a function
)

// NewTable returns an empty table of groups with the given columns.
func NewTable(groups []column.Type, functions []Function, faults *expression.Faults) *Table {
	t := &Table{Values: make([]column.Vec, len(groups)), slots: make([]int32, 16)}
	t.groupBytes, t.empty = 48, tableBytes+vectorBytes*(len(groups)+len(functions))
	for i, g := range groups {
		t.Values[i].Reset(g)
		t.groupBytes += 16
	}
	for _, f := range functions {
		s := f.state(faults)
		t.States = append(t.States, s)
		t.groupBytes += s.Size()
	}
	return t
}

// Len is the number of groups.
func (t *Table) Len() int { return len(t.ends) }

// Size is about how many bytes the table takes with its groups.
func (t *Table) Size() int {
	size := t.empty + 2*len(t.keys) + t.groupBytes*len(t.ends)
	for _, s := range t.States {
		if h, ok := s.(textSizer); ok {
			size += h.TextBytes()
		}
	}
	return size
}

// Reset forgets all groups and keeps memory.
func (t *Table) Reset() {
	t.Rows = 0
	t.keys, t.ends, t.hashes = t.keys[:0], t.ends[:0], t.hashes[:0]
	clear(t.slots)
	for i := range t.Values {
		t.Values[i].Reset(t.Values[i].Type)
	}
	for _, s := range t.States {
		s.Reset()
	}
}

// Group returns the group of row i, which is added when it is new.
func (t *Table) Group(k *Keys, cols []*column.Vec, i int) int32 {
	g, added := t.find(k.Key(i), k.hashes[i])
	if added {
		t.appendValues(cols, i)
	}
	return g
}

// appendValues keeps the columns of a group that is new: row i of others.
func (t *Table) appendValues(cols []*column.Vec, i int) {
	for c := range t.Values {
		bytes := 0
		if cols[c].Type.Kind == column.Text && !cols[c].Null[i] {
			bytes = len(cols[c].Text(i))
		}
		t.Values[c].Reserve(1, bytes)
		t.Values[c].AppendFrom(cols[c], i)
	}
}

func (t *Table) key(g int) []byte {
	if g == 0 {
		return t.keys[:t.ends[0]]
	}
	return t.keys[t.ends[g-1]:t.ends[g]]
}

func (t *Table) find(key []byte, hash uint64) (g int32, added bool) {
	mask := uint64(len(t.slots) - 1)
	for at := hash & mask; ; at = (at + 1) & mask {
		s := t.slots[at]
		if s == 0 {
			break
		}
		if t.hashes[s-1] == hash && bytes.Equal(t.key(int(s-1)), key) {
			return s - 1, false
		}
	}
	g = int32(len(t.ends))
	t.keys = append(column.GrowSlice(t.keys, len(key)), key...)
	t.ends = append(column.GrowSlice(t.ends, 1), len(t.keys))
	t.hashes = append(column.GrowSlice(t.hashes, 1), hash)
	if 2*len(t.ends) > len(t.slots) {
		t.slots = make([]int32, 2*len(t.slots))
		for g := range t.ends {
			t.place(int32(g))
		}
	} else {
		t.place(g)
	}
	for _, s := range t.States {
		s.Grow(len(t.ends))
	}
	return g, true
}

func (t *Table) place(g int32) {
	mask := uint64(len(t.slots) - 1)
	at := t.hashes[g] & mask
	for t.slots[at] != 0 {
		at = (at + 1) & mask
	}
	t.slots[at] = g + 1
}

// checkGroups is after how many groups it is asked whether a merge has to end.
const checkGroups = 1 << 12

// Merge adds all groups of another table of the same groups and functions. ended is asked now and then; its error ends
// that.
func (t *Table) Merge(o *Table, ended func() error) error {
	for g := range o.ends {
		if g%checkGroups == 0 {
			if err := ended(); err != nil {
				return err
			}
		}
		to, added := t.find(o.key(g), o.hashes[g])
		if added {
			for c := range t.Values {
				t.Values[c].AppendFrom(&o.Values[c], g)
			}
		}
		for i, s := range t.States {
			s.Merge(int(to), o.States[i], g)
		}
	}
	return nil
}

// Append appends groups from … until-1 as rows: their columns, then the results.
func (t *Table) Append(to []column.Vec, from, until int) {
	for c := range to {
		bytes := 0
		if c < len(t.Values) && t.Values[c].Type.Kind == column.Text {
			bytes = t.textBytes(c, from, until)
		}
		to[c].Reserve(until-from, bytes)
	}
	for g := from; g < until; g++ {
		for c := range t.Values {
			to[c].AppendFrom(&t.Values[c], g)
		}
		for i, s := range t.States {
			s.Append(&to[len(t.Values)+i], g)
		}
	}
}

// textBytes is how many bytes the texts of groups take in a column.
func (t *Table) textBytes(c, from, until int) int {
	ends := t.Values[c].Ends
	if from == until {
		return 0
	}
	if from == 0 {
		return int(ends[until-1])
	}
	return int(ends[until-1] - ends[from-1])
}

// Until is up to which group the groups from … are given out together: at most rows of them, and no more than one where
// their texts take more than so many bytes.
func (t *Table) Until(from, rows, bytes int) int {
	until := min(from+rows, t.Len())
	texts := false
	for _, s := range t.States {
		_, keeps := s.(textSizer)
		texts = texts || keeps
	}
	if !texts && len(t.keys) <= bytes {
		return until
	}
	size := 0
	for g := from; g < until; g++ {
		size += len(t.key(g))
		for _, s := range t.States {
			if of, keeps := s.(textSizer); keeps {
				size += of.textBytes(g)
			}
		}
		if size > bytes && g > from {
			return g
		}
	}
	return until
}
