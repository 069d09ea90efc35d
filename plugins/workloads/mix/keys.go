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
// when the run began, from base on rows that this slot has inserted.
type keySource struct {
	table *sdk.Table
	pool  *pool
	// ranged: place i is key first+i; otherwise row i of the pool.
	ranged  bool
	first   int64
	base    int64
	columns []*poolColumn
	// maker makes the keys of new rows; made by the generator, where it inserts.
	maker *newKeys

	dist       distribution
	zipf       *gen.Zipf
	scramble   *gen.Scramble
	sequential *gen.Sequential
	// inserted counts the keys made; visible those made before the last batch,
	// which have most likely been committed by now.
	inserted, visible, previous int64
}

func newKeySource(p *params, req *sdk.OpenRequest, t *sdk.Table, pl *pool) (*keySource, error) {
	k := &keySource{table: t, pool: pl, dist: p.keys, base: int64(pl.rows), maker: &newKeys{}}
	switch {
	case t.HasRange && t.Dense:
		k.ranged, k.first, k.base = true, t.KeyMin, t.KeyMax-t.KeyMin+1
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
	switch p.keys {
	case zipfian, latest:
		k.zipf = gen.NewZipf(k.base, p.theta)
		if p.keys == zipfian && p.scrambled {
			s := gen.NewScramble(k.base)
			k.scramble = &s
		}
	case sequential:
		k.sequential = gen.NewSequential(k.base, k.base/int64(req.KeySlots)*int64(req.KeySlot))
	}
	return k, nil
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

// place draws the place of a row.
func (k *keySource) place(r *gen.Rand) int64 {
	all := k.base + k.visible
	switch k.dist {
	case zipfian:
		rank := k.zipf.Next(r)
		if k.scramble != nil {
			rank = k.scramble.At(rank)
		}
		return rank
	case latest:
		return all - 1 - k.zipf.Next(r)
	case sequential:
		return k.sequential.Next()
	}
	// Whether a row that was inserted meanwhile is there nobody here knows: its INSERT
	// may have failed. What was there when the run began is looked for.
	return r.Int64n(k.base)
}

// put writes the key at a place.
func (k *keySource) put(b *sdk.Batch, position int64) {
	switch {
	case position >= k.base:
		k.maker.put(b, position-k.base)
	case k.ranged:
		b.I64(k.first + position)
	default:
		for _, c := range k.columns {
			c.put(b, position)
		}
	}
}
