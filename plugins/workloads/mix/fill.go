package main

import (
	"errors"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/gen"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

// generator is one stream of operations.
type generator struct {
	params params
	plan   *plan
	rand   *gen.Rand
	keys   *keySource
	pool   pool
	total  int64
	// fill says where each INSERT column comes from.
	fill   []source
	change source
	// thinkDue: the pause before the next operation has been issued.
	thinkDue bool
}

// source is where the values of one column come from: the key maker, the pool, a
// maker of unique values, or a maker of random ones.
type source struct {
	key    bool
	pooled *poolColumn
	unique *newKeys
	values values
}

// maxBatch ends a batch early, so that large values do not fill the memory.
const maxBatch = 1 << 20

// Open starts a stream.
func (mix) Open(req sdk.OpenRequest) (sdk.Generator, error) {
	p, err := readParams(req.Params)
	if err != nil {
		return nil, err
	}
	pl, err := makePlan(&p, req.Tables)
	if err != nil {
		return nil, err
	}
	if req.KeySlot < 0 || req.KeySlot >= req.KeySlots {
		return nil, errors.New("key_slot must be below key_slots")
	}
	g := &generator{params: p, plan: pl, rand: gen.NewRand(req.Seed, req.KeySlot)}
	t := pl.table
	for _, in := range req.Pools {
		if in.Table == t.Name || len(req.Pools) == 1 {
			if g.pool, err = readPool(in, t); err != nil {
				return nil, err
			}
			break
		}
	}
	// A later run on the same table sees another state of it, and so makes other keys.
	salt := gen.Mix(uint64(req.Seed)) ^ gen.Mix(uint64(t.Rows)+uint64(t.KeyMax)<<20) ^ g.pool.salt
	if g.keys, err = newKeySource(&p, &req, t, &g.pool, gen.Mix(salt)); err != nil {
		return nil, err
	}
	for _, w := range p.weights {
		g.total += w
	}
	if p.weights[insert] > 0 {
		if g.keys.maker.column != "" && g.keys.maker.full() {
			return nil, pl.planError(insert, pl.keyRangeExhausted(g.keys.maker.values.column))
		}
		for _, v := range pl.fill {
			s, err := g.sourceOf(v, &req, salt)
			if err != nil {
				return nil, err
			}
			g.fill = append(g.fill, s)
		}
	}
	if p.weights[update] > 0 {
		g.change = source{values: pl.change, pooled: g.pool.find(pl.change.column.Name)}
	}
	return g, nil
}

func (g *generator) sourceOf(v values, req *sdk.OpenRequest, salt uint64) (source, error) {
	name := v.column.Name
	s := source{values: v, pooled: g.pool.find(name)}
	switch {
	case name == g.keys.maker.column:
		return source{key: true}, nil
	case v.column.Unique:
		// One column stands for a key of its own.
		t := sdk.Table{Key: []string{name}, Columns: []sdk.Column{v.column}, PhysicalName: g.plan.table.PhysicalName}
		m := &newKeys{}
		m.prepare(req, &t, &g.pool, gen.Mix(salt+uint64(len(g.fill))+1))
		if m.column == "" {
			return s, g.plan.planError(insert, "new unique values for column "+quote(name)+" cannot be made")
		}
		if m.values.maker == makeInt {
			m.known = false
			m.startAt(&t, s.pooled)
		}
		s.unique = m
	case v.maker == makeNothing && s.pooled == nil:
		return s, g.plan.planError(insert, "values of type "+v.column.DBType+" for column "+quote(name)+
			" can only be taken from existing rows, and the sample has none")
	}
	return s, nil
}

func (g *generator) put(b *sdk.Batch, s *source) {
	switch {
	case s.key:
		g.keys.maker.put(b, g.keys.inserted)
	case s.unique != nil:
		s.unique.put(b, g.keys.inserted)
	case s.pooled != nil:
		s.pooled.put(b, g.rand.Int64n(int64(g.pool.rows)))
	default:
		s.values.put(b, g.rand)
	}
}

// Fill writes the next operations.
func (g *generator) Fill(b *sdk.Batch, max int) error {
	g.keys.beginBatch()
	for b.Len() < max && b.Size() < maxBatch {
		if g.params.thinkMicros > 0 && !g.thinkDue {
			b.Delay(g.params.thinkMicros)
			g.thinkDue = true
			continue
		}
		g.thinkDue = false
		if err := g.one(b); err != nil {
			return err
		}
	}
	return nil
}

func (g *generator) one(b *sdk.Batch) error {
	kind, x := 0, g.rand.Int64n(g.total)
	for x >= g.params.weights[kind] {
		x -= g.params.weights[kind]
		kind++
	}
	k := g.keys
	if kind == insert && k.maker.column != "" && k.maker.exhausted(k.inserted) {
		return g.plan.planError(
			insert,
			g.plan.keyRangeExhausted(k.maker.values.column)+", and this run has used the keys that were left",
		)
	}
	b.Op(g.plan.statement[kind])
	switch kind {
	case scan:
		// Scans that would run off the end start earlier, to read their full length.
		position := k.place(g.rand)
		if position < k.base {
			position = min(position, max(0, k.base-g.params.scanLength))
		}
		k.put(b, position)
	case insert:
		for i := range g.fill {
			g.put(b, &g.fill[i])
		}
		k.inserted++
	case update:
		g.put(b, &g.change)
		k.put(b, k.place(g.rand))
	case remove:
		k.put(b, k.victim(g.rand))
	default:
		k.put(b, k.place(g.rand))
	}
	return nil
}

// customers is how many customers the orders have. An order is made every orderGap
// µs, and the times begin anew after orderSpan.
const (
	customers = 100_000
	orderGap  = 7_000_000
	orderSpan = 700 * day
)

var statuses = [...]string{"new", "paid", "packed", "shipped", "delivered", "returned", "cancelled"}

// Rows writes sample orders. Every row is made from its number alone.
func (mix) Rows(doc *jsondoc.Value, b *sdk.Batch, table int, first int64, count int) error {
	p, err := readParams(doc)
	if err != nil {
		return err
	}
	if table != 0 || first < 0 {
		return errors.New("there is no such table or row")
	}
	var r gen.Rand
	for i := first; i < first+int64(count) && b.Size() < 4*maxBatch; i++ {
		r.Seed(1, i)
		b.Row()
		b.I64(i + 1)
		b.I64(1 + r.Int64n(customers))
		b.Text(statuses[r.Int64n(int64(len(statuses)))])
		putNumeric(b, r.Int64n(10_000), r.Int64n(100), 2)
		b.Timestamp(epoch2024 + i*orderGap%orderSpan)
		r.Letters(b.TextSpace(int(r.Between(p.minSize, p.maxSize))))
	}
	return nil
}
