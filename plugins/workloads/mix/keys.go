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
	// maker makes the keys of new rows; made by the generator, where it inserts.
	maker *newKeys

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

func newKeySource(p *params, req *sdk.OpenRequest, t *sdk.Table, pl *pool) (*keySource, error) {
	k := &keySource{table: t, pool: pl, dist: p.keys, base: int64(pl.rows), maker: &newKeys{},
		deletes: p.weights[remove] > 0, workers: max(1, int64(req.KeySlots)/slotsPerWorker)}
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
