package engine

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// MaxPackedKeys is how many bytes the sampled keys and rows of all tables of a plan take at most together: a message
// to a node of another process takes 32 MB, and has them a third larger. Of keys that would take more, every second one
// is kept, then every fourth, and so on.
const MaxPackedKeys = 20 << 20

// PackedKeys are sampled keys of a table, in the order of the key, packed column by column: 8 bytes
// for a number or a time, 16 for a UUID, 1 for a bool, and 4 more than its own for any other text.
// They are never changed once they are made, and shared by all run workers of a process.
type PackedKeys struct {
	columns []packedColumn
	count   int
}

// packedColumn holds one column: fixed widths one after the other, others with the place where each ends.
type packedColumn struct {
	name string
	typ  ValueType
	uuid bool
	data []byte
	ends []uint32
}

// Len is the number of keys; a nil PackedKeys has none.
func (k *PackedKeys) Len() int {
	if k == nil {
		return 0
	}
	return k.count
}

// Columns are the names of the key's columns.
func (k *PackedKeys) Columns() []string {
	names := []string{}
	for i := range k.columns {
		names = append(names, k.columns[i].name)
	}
	return names
}

// Types are the types of the columns.
func (k *PackedKeys) Types() []ValueType {
	types := []ValueType{}
	for i := range k.columns {
		types = append(types, k.columns[i].typ)
	}
	return types
}

// Type is the type of a column; known is false where there is no such column.
func (k *PackedKeys) Type(column int) (t ValueType, known bool) {
	if column < 0 || column >= len(k.columns) {
		return "", false
	}
	return k.columns[column].typ, true
}

// Bytes is how many bytes the keys take.
func (k *PackedKeys) Bytes() int {
	if k == nil {
		return 0
	}
	n := 0
	for i := range k.columns {
		n += len(k.columns[i].data) + 4*len(k.columns[i].ends)
	}
	return n
}

// Number is the value of a column whose type is a number, a time or a bool: an i64, µs since 1970, 0 or 1, or the bits
// of an f64.
func (k *PackedKeys) Number(column, row int) uint64 {
	c := &k.columns[column]
	if c.typ == TypeBool {
		return uint64(c.data[row])
	}
	return binary.LittleEndian.Uint64(c.data[8*row:])
}

// AppendText appends the value of a column of text or bytes.
func (k *PackedKeys) AppendText(b []byte, column, row int) []byte {
	c := &k.columns[column]
	if c.uuid {
		return appendUUID(b, c.data[16*row:16*row+16])
	}
	from := uint32(0)
	if row > 0 {
		from = c.ends[row-1]
	}
	return append(b, c.data[from:c.ends[row]]...)
}

func appendUUID(b, raw []byte) []byte {
	for i, part := range [...]int{0, 4, 6, 8, 10} {
		end := 16
		if i < 4 {
			end = [...]int{4, 6, 8, 10}[i]
			b = hex.AppendEncode(b, raw[part:end])
			b = append(b, '-')
			continue
		}
		b = hex.AppendEncode(b, raw[part:end])
	}
	return b
}

// readUUID reads a UUID in its canonical form, lower case.
func readUUID(s string) (raw [16]byte, ok bool) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return raw, false
	}
	at := 0
	for i := 0; i < 36; i += 2 {
		if s[i] == '-' {
			i++
		}
		hi, lo := hexDigit(s[i]), hexDigit(s[i+1])
		if hi > 15 || lo > 15 {
			return raw, false
		}
		raw[at] = hi<<4 | lo
		at++
	}
	return raw, true
}

func hexDigit(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	}
	return 255
}

// KeyPacker packs keys as they come, in the order of the key.
type KeyPacker struct {
	keys PackedKeys
	// most keys are kept, of at most limit bytes.
	most, limit int
	// every so many keys one is kept; seen counts those that came.
	every, seen int
	// unusable counts keys that nothing finds: a part of them is NULL.
	unusable int
	// lowered: keys were left out because all would take too many bytes.
	lowered bool
}

// NewKeyPacker packs keys of these columns: at most so many, and into at most limit bytes.
func NewKeyPacker(columns []string, types []ValueType, most, limit int) *KeyPacker {
	p := &KeyPacker{most: most, limit: limit, every: 1}
	for i, name := range columns {
		p.keys.columns = append(p.keys.columns, packedColumn{name: name, typ: types[i], uuid: types[i] == TypeText})
	}
	return p
}

// Add adds a key: the values of its columns, as an adapter's sample has them. One with a NULL is left out.
func (p *KeyPacker) Add(values []any) error {
	if len(values) != len(p.keys.columns) {
		return fmt.Errorf("a key has %d columns, and %d were expected", len(values), len(p.keys.columns))
	}
	for _, v := range values {
		if v == nil {
			p.unusable++
			return nil
		}
	}
	p.seen++
	if (p.seen-1)%p.every != 0 {
		return nil
	}
	for i, v := range values {
		if err := p.keys.columns[i].add(v, p.keys.count); err != nil {
			return fmt.Errorf("column %s: %w", p.keys.columns[i].name, err)
		}
	}
	p.keys.count++
	for p.keys.count > 1 && (p.keys.count > p.most || p.keys.Bytes() > p.limit) {
		p.lowered = p.lowered || p.keys.count <= p.most
		p.halve()
	}
	return nil
}

// halve keeps every second key.
func (p *KeyPacker) halve() {
	k := &p.keys
	kept := (k.count + 1) / 2
	for i := range k.columns {
		k.columns[i].halve(kept)
	}
	k.count, p.every = kept, 2*p.every
}

// Unusable is how many keys were left out because a part of them is NULL.
func (p *KeyPacker) Unusable() int { return p.unusable }

// Lowered reports that keys were left out because all that were asked for would take too many bytes.
func (p *KeyPacker) Lowered() bool { return p.lowered }

// Keys are the packed keys; nothing may be added afterwards.
func (p *KeyPacker) Keys() *PackedKeys { return &p.keys }

func (c *packedColumn) add(v any, row int) error {
	switch c.typ {
	case TypeI64, TypeTimestamp:
		n, err := wholeNumber(v)
		if err != nil {
			return err
		}
		c.data = binary.LittleEndian.AppendUint64(c.data, uint64(n))
	case TypeF64:
		f, ok := v.(float64)
		if !ok {
			var err error
			if f, err = strconv.ParseFloat(fmt.Sprint(v), 64); err != nil {
				return fmt.Errorf("%q is no number", fmt.Sprint(v))
			}
		}
		c.data = binary.LittleEndian.AppendUint64(c.data, math.Float64bits(f))
	case TypeBool:
		b := byte(0)
		if s := fmt.Sprint(v); s == "true" || s == "t" || s == "1" {
			b = 1
		}
		c.data = append(c.data, b)
	case TypeBytes:
		raw, err := hex.DecodeString(fmt.Sprint(v))
		if err != nil {
			return errors.New("its bytes are not hexadecimal")
		}
		c.data = append(c.data, raw...)
		c.ends = append(c.ends, uint32(len(c.data)))
	default:
		c.addText(fmt.Sprint(v), row)
	}
	return nil
}

func wholeNumber(v any) (int64, error) {
	switch v := v.(type) {
	case int64:
		return v, nil
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<63 {
			return int64(v), nil
		}
	}
	n, err := strconv.ParseInt(fmt.Sprint(v), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no whole number", fmt.Sprint(v))
	}
	return n, nil
}

// addText adds a text. A column is one of UUIDs as long as all of it is.
func (c *packedColumn) addText(s string, row int) {
	if c.uuid {
		if raw, ok := readUUID(s); ok {
			c.data = append(c.data, raw[:]...)
			return
		}
		var texts []byte
		for i := range row {
			texts = appendUUID(texts, c.data[16*i:16*i+16])
			c.ends = append(c.ends, uint32(len(texts)))
		}
		c.uuid, c.data = false, texts
	}
	c.data = append(c.data, s...)
	c.ends = append(c.ends, uint32(len(c.data)))
}

// width is how many bytes each value takes, or 0.
func (c *packedColumn) width() int {
	switch {
	case c.uuid:
		return 16
	case c.typ == TypeBool:
		return 1
	case c.typ == TypeI64, c.typ == TypeF64, c.typ == TypeTimestamp:
		return 8
	}
	return 0
}

func (c *packedColumn) halve(kept int) {
	if w := c.width(); w > 0 {
		for i := range kept {
			copy(c.data[w*i:], c.data[2*w*i:2*w*i+w])
		}
		c.data = c.data[:w*kept]
		return
	}
	size, ends := 0, c.ends
	for i := range kept {
		from := uint32(0)
		if i > 0 {
			from = ends[2*i-1]
		}
		end := ends[2*i]
		size += copy(c.data[size:], c.data[from:end])
		// Of the old ends only those from 2i+1 on are still needed.
		ends[i] = uint32(size)
	}
	c.data, c.ends = c.data[:size], ends[:kept]
}

// packedJSON is how packed keys are stored and sent.
type packedJSON struct {
	Count   int                `json:"count"`
	Columns []packedColumnJSON `json:"columns"`
}

type packedColumnJSON struct {
	Name string    `json:"name"`
	Type ValueType `json:"type"`
	UUID bool      `json:"uuid,omitempty"`
	Data []byte    `json:"data"`
	// Ends are u32, little endian.
	Ends []byte `json:"ends,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (k *PackedKeys) MarshalJSON() ([]byte, error) {
	out := packedJSON{Count: k.count}
	for i := range k.columns {
		c := &k.columns[i]
		column := packedColumnJSON{Name: c.name, Type: c.typ, UUID: c.uuid, Data: c.data}
		for _, end := range c.ends {
			column.Ends = binary.LittleEndian.AppendUint32(column.Ends, end)
		}
		out.Columns = append(out.Columns, column)
	}
	return json.Marshal(out)
}

// UnmarshalJSON implements json.Unmarshaler. What does not fit together is an error.
func (k *PackedKeys) UnmarshalJSON(text []byte) error {
	var in packedJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return fmt.Errorf("reading packed keys: %w", err)
	}
	read := PackedKeys{count: in.Count}
	for _, c := range in.Columns {
		column := packedColumn{name: c.Name, typ: c.Type, uuid: c.UUID, data: c.Data}
		last := uint32(0)
		for at := 0; at+4 <= len(c.Ends); at += 4 {
			end := binary.LittleEndian.Uint32(c.Ends[at:])
			if end < last {
				return errors.New("packed keys end before they begin")
			}
			last = end
			column.ends = append(column.ends, end)
		}
		fits := len(column.ends) == in.Count && int(last) == len(column.data)
		if w := column.width(); w > 0 {
			fits = len(column.data) == w*in.Count
		}
		if !fits || in.Count < 0 {
			return fmt.Errorf("packed keys: the column %s has not %d values", c.Name, in.Count)
		}
		read.columns = append(read.columns, column)
	}
	*k = read
	return nil
}
