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
	// rows is the sample of whole rows that values are taken from.
	rows pool
	// fill says where each column of INSERT comes from, change each that UPDATE sets.
	fill, change []source
	// makers make the unique values, by column.
	makers []*newKeys
	// free gives new combinations of rows of other tables; nil where the plan has none.
	free *combinations
	// over says why there are no more operations.
	over error
	// thinkDue: the pause before the next operation has been issued.
	thinkDue bool
}

// source is where the values of one column come from: the key maker, the sample of rows, a
// maker of unique values, or a maker of random ones.
type source struct {
	key     bool
	free    *freeColumn
	sampled *poolColumn
	unique  *newKeys
	values  values
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
	if err := g.readRows(req.Values); err != nil {
		return nil, err
	}
	if g.keys, err = newKeySource(&p, &req, t, &g.pool); err != nil {
		return nil, err
	}
	for _, w := range p.weights {
		g.total += w
	}
	// A later run on the same table sees another state of it, and so makes other keys.
	salt := gen.Mix(
		uint64(req.Seed),
	) ^ gen.Mix(
		uint64(t.Rows)+uint64(t.KeyMax)<<20,
	) ^ gen.Mix(
		uint64(t.Nonce),
	) ^ g.pool.salt
	if pl.free != nil {
		if g.free, err = newCombinations(&req, pl); err != nil {
			return nil, err
		}
	}
	if p.weights[insert] > 0 {
		if g.fill, err = g.sources(insert, pl.fill, &req, salt); err != nil {
			return nil, err
		}
	}
	if p.weights[update] > 0 {
		if g.change, err = g.sources(update, pl.change, &req, salt); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// readRows reads the sample of whole rows. Where the adapter gives none, the sample of keys has what it has.
func (g *generator) readRows(samples []sdk.Pool) (err error) {
	g.rows = g.pool
	for _, in := range samples {
		if in.Table == g.plan.table.Name || len(samples) == 1 {
			g.rows, err = readPool(in, g.plan.table)
			break
		}
	}
	return err
}

func (g *generator) sources(kind int, columns []filled, req *sdk.OpenRequest, salt uint64) ([]source, error) {
	var list []source
	for i := range columns {
		s, err := g.sourceOf(kind, &columns[i], req, salt)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

func (g *generator) sourceOf(kind int, f *filled, req *sdk.OpenRequest, salt uint64) (source, error) {
	name, t := f.column.Name, g.plan.table
	s := source{values: f.values}
	if f.free {
		if s.free = g.free.column(name); s.free != nil {
			return s, nil
		}
	}
	switch f.from {
	case fresh:
		m := g.makerOf(&f.column, req, salt)
		if m.full() {
			return s, g.plan.planError(kind, g.plan.keyRangeExhausted(f.column))
		}
		if kind == insert && t.IsKey(name) {
			m.known = len(t.Key) == 1
			g.keys.maker = m
			return source{key: true}, nil
		}
		s.unique = m
	case fromRow:
		s.sampled = g.rows.find(name)
		switch b := newChooser(t, &g.params).binding(name); {
		case s.sampled != nil:
		case f.maker == makeNothing:
			return s, g.plan.planError(kind, "values of type "+f.column.DBType+" for column "+quote(name)+
				" can only be taken from existing rows, and the sample has none")
		case b != nil && b.Kind == sdk.ForeignKey:
			return s, g.plan.planError(kind, "the column "+quote(name)+" refers to the table "+b.References+
				", and no value that it may have is known")
		}
	}
	return s, nil
}

// makerOf is the maker of a column's unique values, the same one for INSERT and UPDATE.
func (g *generator) makerOf(c *sdk.Column, req *sdk.OpenRequest, salt uint64) *newKeys {
	for _, m := range g.makers {
		if m.column == c.Name {
			return m
		}
	}
	m := newMaker(c, g.plan.table, g.pool.find(c.Name), gen.Mix(salt+uint64(len(g.makers))))
	m.slot, m.slots = int64(req.KeySlot), int64(req.KeySlots)
	g.makers = append(g.makers, m)
	return m
}

// put writes a value; row is the sampled row that all columns of an operation take theirs from.
func (g *generator) put(b *sdk.Batch, s *source, row int64) {
	switch {
	case s.key:
		g.keys.maker.put(b, g.keys.inserted)
	case s.free != nil:
		g.free.put(b, s.free)
	case s.unique != nil:
		s.unique.next(b)
	case s.sampled != nil:
		s.sampled.put(b, row)
	default:
		s.values.put(b, g.rand)
	}
}

// row draws the sampled row of an operation.
func (g *generator) row() int64 {
	if g.rows.rows == 0 {
		return 0
	}
	return g.rand.Int64n(int64(g.rows.rows))
}

// checkRoom says which column has used up its new values.
func (g *generator) checkRoom(kind int, list []source) error {
	for i := range list {
		m := list[i].unique
		var n int64
		switch {
		case list[i].key:
			m, n = g.keys.maker, g.keys.inserted
		case m == nil:
			continue
		default:
			n = m.made
		}
		if m.exhausted(n) {
			return g.plan.planError(kind, g.plan.keyRangeExhausted(m.values.column)+
				", and this run has used the values that were left")
		}
	}
	return nil
}

// Fill writes the next operations.
func (g *generator) Fill(b *sdk.Batch, max int) error {
	if g.over != nil {
		return g.over
	}
	g.keys.beginBatch()
	for b.Len() < max && b.Size() < maxBatch {
		if g.params.thinkMicros > 0 && !g.thinkDue {
			b.Delay(g.params.thinkMicros)
			g.thinkDue = true
			continue
		}
		g.thinkDue = false
		if err := g.one(b); err != nil {
			if b.Len() == 0 {
				return err
			}
			// What was made before is executed first.
			g.over = err
			return nil
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
	switch kind {
	case insert:
		if err := g.checkRoom(insert, g.fill); err != nil {
			return err
		}
		if g.free != nil && !g.free.advance() {
			return g.plan.planError(insert, g.plan.usedUp())
		}
	case update:
		if err := g.checkRoom(update, g.change); err != nil {
			return err
		}
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
		row := g.row()
		for i := range g.fill {
			g.put(b, &g.fill[i], row)
		}
		k.inserted++
	case update:
		row := g.row()
		for i := range g.change {
			g.put(b, &g.change[i], row)
		}
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
