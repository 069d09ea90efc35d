package main

import (
	"errors"
	"math"
	"math/bits"
	"strconv"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/gen"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

// generatorTypes says which types a generator makes; nil stands for those of the value or the column.
var generatorTypes = [...][]string{
	fromSequence: {sdk.I64, sdk.F64, sdk.Text}, fromUniform: {sdk.I64, sdk.F64, sdk.Text},
	fromZipfian: {sdk.I64, sdk.F64, sdk.Text}, fromNormal: {sdk.I64, sdk.F64, sdk.Text},
	fromUUID: {sdk.Text}, fromText: {sdk.Text, sdk.Bytes}, fromTimestamp: {sdk.Timestamp}, fromNewKey: {sdk.I64},
	fromChoice: nil, fromConstant: nil, fromKey: nil, fromRow: nil, fromRef: nil,
}

// resolve settles what depends on the table: types of keys and rows and, with
// pools, their values.
func (p *parsed) resolve(tables []sdk.Table, pools []sdk.Pool) error {
	var t *sdk.Table
	if p.usesTable {
		if len(tables) == 0 {
			return errors.New("the statements speak of the template's table, and there is none: set target.table_name")
		}
		t = &tables[0]
	}
	rowsOnly := p.rowsOnly(pools)
	for i := range p.statements {
		for _, b := range p.statements[i].binds {
			if err := b.resolve(t, pools, rowsOnly); err != nil {
				return err
			}
		}
	}
	return nil
}

// rowsOnly: columns of a row are asked for that are none of the key's. All columns of a row are taken from one place,
// and the keys that the host holds are not it.
func (p *parsed) rowsOnly(pools []sdk.Pool) bool {
	for n := range pools {
		for i := range p.statements {
			for _, b := range p.statements[i].binds {
				if b.source == fromRow && pools[n].Keys.Column(b.column) < 0 {
					return true
				}
			}
		}
	}
	return false
}

func (b *bind) resolve(t *sdk.Table, pools []sdk.Pool, rowsOnly bool) error {
	if list := generatorTypes[b.source]; list != nil && b.typ != "" {
		known := false
		for _, typ := range list {
			known = known || typ == b.typ
		}
		if !known {
			return b.wrong("does not make values of type " + b.typ)
		}
	}
	switch b.source {
	case fromNewKey:
		b.setOnlyType(sdk.I64)
		if b.integerKey(t) == nil {
			return b.wrong("needs a table whose key is one integer column")
		}
		b.keyMin = t.KeyMax + 1
		if !t.HasRange {
			b.keyMin = 1
		}
	case fromKey:
		if len(t.Key) != 1 {
			return b.wrong("needs a table whose key is one column; use row, with the column, for keys of several")
		}
		b.column = t.Key[0]
		return b.resolveColumn(t, pools, rowsOnly)
	case fromRow:
		return b.resolveColumn(t, pools, rowsOnly)
	}
	return nil
}

func (b *bind) integerKey(t *sdk.Table) *sdk.Column {
	if len(t.Key) != 1 {
		return nil
	}
	if c := t.Column(t.Key[0]); c != nil && c.Type == sdk.I64 {
		return c
	}
	return nil
}

// resolveColumn finds the values of the bind's column: the range of an integer
// key, or the table's sample.
func (b *bind) resolveColumn(t *sdk.Table, pools []sdk.Pool, rowsOnly bool) error {
	c := t.Column(b.column)
	if c == nil {
		return b.wrong("names the column " + strconv.Quote(b.column) + ", which the table does not have")
	}
	if b.typ != "" && b.typ != c.Type {
		return b.wrong("makes values of type " + c.Type + ", as the column " + c.Name + " has, and not " + b.typ)
	}
	b.typ = c.Type
	if pools == nil {
		return nil
	}
	if t.Rows == 0 {
		return b.wrong("takes values from the table, and it is empty")
	}
	key := b.integerKey(t) == c
	if last := max(t.DenseMax, t.KeyMin-1); key && t.HasRange && (t.Dense || last-t.KeyMin+1 >= t.Rows/2) {
		if t.Dense {
			last = t.KeyMax
		}
		b.keyMin, b.keyCount = t.KeyMin, last-t.KeyMin+1
		return nil
	}
	for i := range pools {
		pool := &pools[i]
		if at := pool.Keys.Column(c.Name); at >= 0 && pool.Keys.Count > 0 && (b.source != fromRow || !rowsOnly) {
			b.held, b.heldPool, b.heldColumn = true, pool.Keys.Pool, uint8(at)
			b.keyCount, b.population = pool.Keys.Count, t.Rows
			return nil
		}
	}
	for _, pool := range pools {
		for i, name := range pool.Columns {
			if name == c.Name && pool.Rows.Len() > 0 {
				return b.readPool(pool.Rows, i)
			}
		}
	}
	if key && t.HasRange {
		// Keys with gaps and no sample of them: lookups may miss.
		b.keyMin, b.keyCount = t.KeyMin, t.KeyMax-t.KeyMin+1
		return nil
	}
	return b.wrong("takes values from the table's sample, and that does not hold the column " + c.Name +
		": keys are sampled, and columns whose values cannot be invented, such as foreign keys")
}

func (b *bind) readPool(rows *jsondoc.Value, column int) error {
	b.keyCount = int64(rows.Len())
	for i := range rows.Len() {
		v := rows.At(i).At(column)
		b.missing = append(b.missing, v.IsNull())
		switch b.typ {
		case sdk.I64, sdk.Timestamp:
			n, _ := v.Int()
			b.ints = append(b.ints, n)
		case sdk.Bool:
			n := int64(0)
			if v.Bool() || v.Str() == "t" || v.Str() == "true" {
				n = 1
			}
			b.ints = append(b.ints, n)
		case sdk.F64:
			f, _ := v.Float()
			b.floats = append(b.floats, f)
		case sdk.Bytes:
			raw := make([]byte, 0, len(v.Str())/2)
			for at := 0; at+1 < len(v.Str()); at += 2 {
				n, err := strconv.ParseUint(v.Str()[at:at+2], 16, 8)
				if err != nil {
					return b.wrong("found bytes in the table's sample that are not hexadecimal")
				}
				raw = append(raw, byte(n))
			}
			b.texts = append(b.texts, string(raw))
		default:
			b.texts = append(b.texts, v.Str())
		}
	}
	return nil
}

// maker makes the values of a bind in one stream.
type maker struct {
	*bind
	lo, span   int64 // of whole numbers, scaled by 10^decimals
	scale      float64
	zipf       *gen.Zipf
	scramble   gen.Scramble
	cumulative []float64
	ascii      bool
	first      int64 // of a sequence of this slot
	stride     int64
	n          int64
	// shared makers repeat one value until it is redrawn.
	shared bool
	seed   gen.Rand
}

func newMaker(b *bind, req *sdk.OpenRequest) *maker {
	m := &maker{bind: b, scale: math.Pow10(int(b.decimals))}
	m.lo, m.span = int64(math.Ceil(b.min*m.scale)), 1
	if hi := int64(math.Floor(b.max * m.scale)); hi > m.lo {
		m.span = hi - m.lo + 1
	}
	slot, slots := int64(req.KeySlot), int64(req.KeySlots)
	switch b.source {
	case fromSequence:
		m.first, m.stride = b.start+slot*b.step, slots*b.step
	case fromNewKey:
		m.first, m.stride = b.keyMin+slot, slots
	case fromZipfian:
		m.zipf, m.scramble = gen.NewZipf(m.span, b.theta), gen.NewScramble(m.span)
	case fromKey:
		if b.hasTheta {
			m.zipf, m.scramble = gen.NewZipf(max(b.keyCount, b.population), b.theta), gen.NewScramble(b.keyCount)
		}
	case fromChoice:
		sum := 0.0
		for i := range b.values {
			w := 1.0
			if b.weights != nil {
				w = b.weights[i]
			}
			sum += w
			m.cumulative = append(m.cumulative, sum)
		}
	case fromText:
		m.ascii = true
		for _, c := range b.alphabet {
			m.ascii = m.ascii && c < 0x80
		}
	}
	return m
}

// redraw begins a new value of a shared maker.
func (m *maker) redraw(r *gen.Rand) {
	m.seed.Seed(int64(r.Uint64()), 0)
	m.n++
}

// put writes the next value. row is the same for all of a transaction.
func (m *maker) put(b *sdk.Batch, r *gen.Rand, row uint64) {
	if m.shared {
		second := m.seed
		r = &second
	}
	if m.nulls > 0 && r.Float64()*100 < m.nulls {
		b.Null()
		return
	}
	switch m.source {
	case fromSequence, fromNewKey:
		m.number(b, m.first+m.n*m.stride)
		if !m.shared {
			m.n++
		}
	case fromUniform:
		if m.typ == sdk.F64 {
			b.F64(m.min + r.Float64()*(m.max-m.min))
			return
		}
		m.number(b, m.lo+r.Int64n(m.span))
	case fromZipfian:
		m.number(b, m.lo+m.rank(r))
	case fromNormal:
		m.normal(b, r)
	case fromChoice:
		x, i := r.Float64()*m.cumulative[len(m.cumulative)-1], 0
		for i < len(m.cumulative)-1 && x >= m.cumulative[i] {
			i++
		}
		m.value(b, &m.values[i])
	case fromConstant:
		m.value(b, &m.values[0])
	case fromUUID:
		gen.UUID(b.TextSpace(gen.UUIDSize), r.Uint64(), r.Uint64())
	case fromText:
		m.putText(b, r)
	case fromTimestamp:
		b.Timestamp(m.from + r.Int64n(m.to-m.from+1))
	case fromKey:
		if m.zipf != nil {
			m.at(b, m.known(r))
		} else {
			m.at(b, r.Int64n(m.keyCount))
		}
	case fromRow:
		position, _ := bits.Mul64(row, uint64(m.keyCount))
		m.at(b, int64(position))
	case fromRef:
		b.Ref(m.refK, m.refC)
	}
}

func (m *maker) rank(r *gen.Rand) int64 {
	rank := m.zipf.Next(r)
	if m.scrambled {
		return m.scramble.At(rank)
	}
	return rank
}

// known is rank for keys. Of rows whose keys are not known, others stand for them: those are cold alike.
func (m *maker) known(r *gen.Rand) int64 {
	rank := m.zipf.Next(r)
	if rank >= m.keyCount {
		return r.Int64n(m.keyCount)
	}
	if m.scrambled {
		return m.scramble.At(rank)
	}
	return rank
}

// number writes a whole number, scaled by 10^decimals, as the bind's type.
func (m *maker) number(b *sdk.Batch, n int64) {
	switch m.typ {
	case sdk.I64:
		b.I64(n)
	case sdk.F64:
		b.F64(float64(n) / m.scale)
	default:
		putDecimal(b, n, int(m.decimals))
	}
}

// putDecimal writes n with a point before its last digits.
func putDecimal(b *sdk.Batch, n int64, decimals int) {
	rest, size := uint64(n), 0
	if n < 0 {
		rest, size = -rest, 1
	}
	whole, fraction := rest, uint64(0)
	if decimals > 0 {
		power := uint64(1)
		for range decimals {
			power *= 10
		}
		whole = rest / power
		fraction = rest - whole*power
	}
	sign := size
	size++
	for x := whole; x >= 10; x /= 10 {
		size++
	}
	if decimals == 0 {
		s := b.TextSpace(size)
		gen.Digits(s[sign:], whole)
		s[0] = minus(sign, s[0])
		return
	}
	s := b.TextSpace(size + 1 + decimals)
	gen.Digits(s[sign:size], whole)
	s[0] = minus(sign, s[0])
	s[size] = '.'
	gen.Digits(s[size+1:], fraction)
}

func minus(sign int, digit byte) byte {
	if sign == 1 {
		return '-'
	}
	return digit
}

func (m *maker) normal(b *sdk.Batch, r *gen.Rand) {
	x := m.mean + m.stddev*math.Sqrt(-2*math.Log(1-r.Float64()))*math.Cos(2*math.Pi*r.Float64())
	if m.hasMin {
		x = max(x, m.min)
	}
	if m.hasMax {
		x = min(x, m.max)
	}
	if m.typ == sdk.F64 {
		b.F64(x)
		return
	}
	const limit = 1 << 62
	m.number(b, int64(math.Round(max(-limit, min(limit, x*m.scale)))))
}

func (m *maker) value(b *sdk.Batch, v *value) {
	switch {
	case v.null:
		b.Null()
	case m.typ == sdk.I64:
		b.I64(v.i)
	case m.typ == sdk.F64:
		b.F64(v.f)
	case m.typ == sdk.Bool:
		b.Bool(v.i == 1)
	case m.typ == sdk.Timestamp:
		b.Timestamp(v.i)
	case m.typ == sdk.Bytes:
		b.Blob([]byte(v.text))
	default:
		b.Text(v.text)
	}
}

// at writes the value of a place among the keys or the sampled rows.
func (m *maker) at(b *sdk.Batch, position int64) {
	if m.held {
		b.Key(m.heldPool, m.heldColumn, uint32(position))
		return
	}
	if m.missing == nil {
		b.I64(m.keyMin + position)
		return
	}
	v := value{null: m.missing[position]}
	switch {
	case m.floats != nil:
		v.f = m.floats[position]
	case m.ints != nil:
		v.i = m.ints[position]
	default:
		v.text = m.texts[position]
	}
	m.value(b, &v)
}

func (m *maker) putText(b *sdk.Batch, r *gen.Rand) {
	if m.pattern != nil {
		m.putPattern(b, r)
		return
	}
	n := int(r.Between(m.minLen, m.maxLen))
	switch {
	case m.typ == sdk.Bytes:
		r.Bytes(b.BlobSpace(n))
	case len(m.alphabet) == 0:
		r.Letters(b.TextSpace(n))
	case m.ascii:
		s := b.TextSpace(n)
		for i := range s {
			s[i] = byte(m.alphabet[r.Int64n(int64(len(m.alphabet)))])
		}
	default:
		text := make([]rune, n)
		for i := range text {
			text[i] = m.alphabet[r.Int64n(int64(len(m.alphabet)))]
		}
		b.Text(string(text))
	}
}

func (m *maker) putPattern(b *sdk.Batch, r *gen.Rand) {
	const digitsAndLetters = "0123456789abcdefghijklmnopqrstuvwxyz"
	size := 0
	for _, t := range m.pattern {
		size += max(1, len(t.text))
	}
	s := b.TextSpace(size)
	for _, t := range m.pattern {
		from, n := 0, int64(36)
		switch t.class {
		case 0:
			s = s[copy(s, t.text):]
			continue
		case '#':
			n = 10
		case '?':
			from, n = 10, 26
		}
		s[0] = digitsAndLetters[from+int(r.Int64n(n))]
		s = s[1:]
	}
}
