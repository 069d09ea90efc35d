package main

import (
	"errors"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/gen"
)

// distribution says which rows are touched.
type distribution uint8

const (
	uniform distribution = iota
	zipfian
	latest
	sequential
)

var distributions = [...]string{"uniform", "zipfian", "latest", "sequential"}

// keySource names existing rows by place: places below base are rows that were there
// when the run began, from base on rows that this slot has inserted. Ranks say how hot a row is: 0 is
// the hottest, base-1 the coldest.
type keySource struct {
	table *sdk.Table
	pool  *pool
	// ranged: place i is key first+i; otherwise key i of those that the host holds, or row i of the pool.
	ranged  bool
	first   int64
	base    int64
	held    sdk.KeyList
	parts   []uint8 // the columns of the key among those of held
	columns []*poolColumn
	maker   newKeys

	dist       distribution
	zipf       *gen.Zipf // over the table's rows, also where fewer keys are known
	scramble   *gen.Scramble
	sequential *gen.Sequential

	// deletes: there are DELETEs. The rows are dealt to the workers, each of which deletes its own, the coldest
	// first, so that no row is deleted twice; deleted counts them. deletedOwn counts rows that this slot has inserted
	// and deleted.
	deletes             bool
	worker, workers     int64
	deleted, deletedOwn int64
	// inserted counts the keys made; visible those made before the last batch,
	// which have most likely been committed by now.
	inserted, visible, previous int64
}

func newKeySource(p *params, req *sdk.OpenRequest, t *sdk.Table, pl *pool, salt uint64) (*keySource, error) {
	k := &keySource{table: t, pool: pl, dist: p.keys, base: int64(pl.rows), deletes: p.weights[remove] > 0,
		workers: max(1, int64(req.KeySlots)/slotsPerWorker)}
	k.worker = int64(req.KeySlot) % k.workers
	switch {
	case t.HasRange && t.Dense:
		k.ranged, k.first, k.base = true, t.KeyMin, t.KeyMax-t.KeyMin+1
	case k.heldKeys(pl.held):
		k.base = pl.held.Count
	case t.HasRange && t.DenseMax >= t.KeyMin && (t.DenseMax-t.KeyMin+1 >= t.Rows/2 || pl.rows == 0):
		k.ranged, k.first, k.base = true, t.KeyMin, t.DenseMax-t.KeyMin+1
	case pl.rows > 0 && k.poolColumns():
	case t.HasRange:
		// Keys with gaps and no sample of them: lookups may miss.
		k.ranged, k.first, k.base = true, t.KeyMin, t.KeyMax-t.KeyMin+1
	case p.weights[lookup]+p.weights[scan]+p.weights[update]+p.weights[remove] == 0:
		k.base = 0
	default:
		return nil, errors.New("there is neither a range nor a sample of the keys of table " + t.PhysicalName)
	}
	if k.base < 0 {
		return nil, errors.New("the range of keys of table " + t.PhysicalName + " is too wide")
	}
	k.maker.prepare(req, t, pl, salt)
	if p.keys == zipfian && p.scrambled || p.keys == uniform && k.deletes {
		s := gen.NewScramble(k.base)
		k.scramble = &s
	}
	switch p.keys {
	case zipfian, latest:
		k.zipf = gen.NewZipf(max(k.base, min(t.Rows, maxPopulation)), p.theta)
	case sequential:
		k.sequential = gen.NewSequential(k.base, k.base/int64(req.KeySlots)*int64(req.KeySlot))
	}
	return k, nil
}

// slotsPerWorker is how many slots the host keeps for each run worker: the first of all workers come first, the others
// are for those that replace them.
const slotsPerWorker = 4

// maxPopulation bounds the rows over which a distribution is defined.
const maxPopulation = 1 << 40

// heldKeys takes the keys that the host holds, if they have all columns of the key.
func (k *keySource) heldKeys(held sdk.KeyList) bool {
	if held.Count == 0 || len(k.table.Key) == 0 {
		return false
	}
	var parts []uint8
	for _, name := range k.table.Key {
		at := held.Column(name)
		if at < 0 {
			return false
		}
		parts = append(parts, uint8(at))
	}
	k.held, k.parts = held, parts
	return true
}

// poolColumns finds the key's columns in the pool.
func (k *keySource) poolColumns() bool {
	k.columns = nil
	for _, name := range k.table.Key {
		c := k.pool.find(name)
		if c == nil {
			return false
		}
		k.columns = append(k.columns, c)
	}
	return len(k.columns) > 0
}

// beginBatch moves the horizon behind which inserted keys are used.
func (k *keySource) beginBatch() {
	k.visible, k.previous = k.previous, k.inserted
	if !k.maker.known {
		k.visible = 0
	}
}

// live is how many ranks of base are still there: other workers delete as this one does, more or less. When there is
// none any more, all are asked for again, and not found.
func (k *keySource) live() int64 {
	most, margin := k.base/k.workers, int64(0)
	if k.deleted >= most {
		return k.base
	}
	if k.workers > 1 && k.deleted > 0 {
		margin = k.deleted/8 + 2
	}
	return max(1, k.base-min(k.deleted+margin, most)*k.workers)
}

// placeOf is the place of the row of that rank.
func (k *keySource) placeOf(rank int64) int64 {
	switch {
	case k.dist == latest:
		return k.base - 1 - rank
	case k.scramble != nil:
		return k.scramble.At(rank)
	}
	return rank
}

// maxDraws bounds how often a draw that names no row is repeated.
const maxDraws = 16

// place draws the place of a row.
func (k *keySource) place(r *gen.Rand) int64 {
	live := k.live()
	switch k.dist {
	case zipfian, latest:
		for range maxDraws {
			rank := k.zipf.Next(r)
			if k.dist == latest {
				// The newest are those that this slot has inserted.
				if rank < k.visible-k.deletedOwn {
					return k.base + k.visible - 1 - rank
				}
				rank -= max(0, k.visible-k.deletedOwn)
			}
			if rank >= k.base {
				break // a row whose key is not known: it is one of the many that are cold alike
			}
			if rank < live {
				return k.placeOf(rank)
			}
		}
	case sequential:
		return k.sequential.Next() % live
	}
	// Whether a row that was inserted meanwhile is there nobody here knows: its INSERT
	// may have failed. What was there when the run began is looked for.
	return k.placeOf(r.Int64n(live))
}

// victim is the place of a row to delete: one that this slot has inserted, if there is one, or else the coldest of
// those that this slot deletes. When there is none left, rows are deleted again without effect.
func (k *keySource) victim(r *gen.Rand) int64 {
	if k.deletedOwn < k.visible {
		k.deletedOwn++
		return k.base + k.deletedOwn - 1
	}
	if i := k.worker + k.deleted*k.workers; i < k.base {
		k.deleted++
		return k.placeOf(k.base - 1 - i)
	}
	return r.Int64n(k.base)
}

// put writes the key at a place.
func (k *keySource) put(b *sdk.Batch, position int64) {
	switch {
	case position >= k.base:
		k.maker.put(b, position-k.base)
	case k.ranged:
		b.I64(k.first + position)
	case k.parts != nil:
		for _, c := range k.parts {
			b.Key(k.held.Pool, c, uint32(position))
		}
	default:
		for _, c := range k.columns {
			c.put(b, position)
		}
	}
}

// newKeys makes keys that no row has and no other slot makes.
type newKeys struct {
	// known: the key is one column that is filled here, so key n can be named again.
	known bool
	// column that makes the key unique; "" when the database does.
	column      string
	values      values
	start, step int64
	salt        uint64
	slot, slots int64
}

// prepare chooses the column of the key whose values are made unique.
func (m *newKeys) prepare(req *sdk.OpenRequest, t *sdk.Table, pl *pool, salt uint64) {
	m.salt, m.slot, m.slots = salt, int64(req.KeySlot), int64(req.KeySlots)
	best := -1
	for _, name := range t.Key {
		c := t.Column(name)
		if c == nil || c.HasDefault || c.Generated || len(t.Key) > 1 && pl.find(name) != nil && len(pl.columns) > 0 &&
			c.Type == sdk.Bool {
			continue
		}
		v := newValues(*c, &params{})
		rank := 0
		switch v.maker {
		case makeNothing, makeBool:
			continue
		case makeUUID:
			rank = 5
		case makeInt:
			rank = 3
			if intMax(*c) > 1<<32 {
				rank = 4
			}
		case makeText, makeTimestamp, makeNumeric:
			rank = 2
		}
		if rank > best {
			best, m.column, m.values = rank, name, v
		}
	}
	if m.column == "" {
		return
	}
	m.known = len(t.Key) == 1
	m.startAt(t, pl.find(m.column))
}

// startAt finds the first free number of the unique column.
func (m *newKeys) startAt(t *sdk.Table, sampled *poolColumn) {
	m.step = 1
	switch m.values.maker {
	case makeInt:
		switch {
		case m.known && t.HasRange:
			m.start = t.KeyMax + 1
		case m.known:
			m.start = 1
		case intMax(m.values.column) > 1<<32:
			m.start = 1<<52 | int64(m.salt&(1<<19-1))<<32
		default:
			m.start = (intMax(m.values.column) + 1) / 2
			m.start += int64(m.salt % uint64(m.start/2+1))
		}
	case makeNumeric, makeTimestamp, makeDate:
		if m.values.maker != makeNumeric {
			m.start = epoch2024
		}
		if sampled != nil {
			m.start = max(m.start, sampled.top())
		}
		if m.values.maker == makeDate {
			m.step = day
		}
		m.start += m.step
		if m.values.maker == makeTimestamp {
			// A sample's newest row need not be the table's: leave a gap of days.
			m.start += 30*day + int64(m.salt%uint64(day))
		}
	}
}

// exhausted reports that key n of this slot is beyond what the column holds.
func (m *newKeys) exhausted(n int64) bool {
	return m.values.maker == makeInt && m.known && n > (intMax(m.values.column)-m.start-m.slot)/m.slots
}

// full reports that the column has no room for new keys.
func (m *newKeys) full() bool {
	return m.values.maker == makeInt &&
		(m.start < 0 && m.known && m.start == -1<<63 || m.start > intMax(m.values.column)-m.slots)
}

// put writes key n of this slot.
func (m *newKeys) put(b *sdk.Batch, n int64) {
	number := m.slot + n*m.slots
	switch m.values.maker {
	case makeInt:
		b.I64(m.start + number)
	case makeTimestamp, makeDate:
		b.Timestamp(m.start + m.step*number)
	case makeNumeric:
		putNumeric(b, m.start+number, 0, 0)
	case makeFloat:
		b.F64(float64(m.start + number))
	case makeUUID:
		putUUID(b, gen.Mix(m.salt^uint64(number)), gen.Mix(m.salt+uint64(number)))
	case makeText:
		m.putText(b, number)
	case makeInet:
		putInet(b, uint64(number)+m.salt<<12)
	case makeTime:
		putTime(b, number%86_400)
	case makeBytes:
		x := gen.Mix(m.salt + uint64(number))
		s := b.BlobSpace(16)
		for i := range s {
			if i == 8 {
				x = m.salt
			}
			s[i] = byte(x)
			x >>= 8
		}
	default:
		m.putText(b, number)
	}
}

// putText writes 20 letters that no other number gives, fewer where the column is shorter.
func (m *newKeys) putText(b *sdk.Batch, number int64) {
	const letters = "abcdefghijklmnopqrstuvwxyz234567"
	size := 20
	if n := m.values.column.MaxLength; n > 0 && n < size {
		size = n
	}
	s := b.TextSpace(size)
	// Mix is one to one, so 13 letters of 5 bits never repeat; the rest is the slot's salt.
	x, rest := gen.Mix(m.salt+uint64(number)), m.salt
	if size < 13 {
		x = m.salt>>40 + uint64(number)
	}
	for i := size - 1; i >= 0; i-- {
		if size-1-i >= 13 {
			s[i] = letters[rest&31]
			rest >>= 5
			continue
		}
		s[i] = letters[x&31]
		x >>= 5
	}
}
