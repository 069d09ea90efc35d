package main

import (
	"errors"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/gen"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

// maxBatch ends a batch early, so that large fields do not fill the memory.
const maxBatch = 1 << 20

// stream is one stream of operations.
type stream struct {
	options options
	plan    *plan
	rand    *gen.Rand
	choose  chooser
	lengths lengthSource
	scans   lengthSource
	bound   [numOps]float64 // running sums of the mix
	// A new record n of this slot has the number firstNew + n·step.
	firstNew, step int64
	// inserted counts the records made; visible those made before the last
	// batch, which have most likely been committed by now.
	inserted, visible, previous int64
	// held are the keys of all records, where numbers do not tell which there are; scatter puts neighbours of the index
	// apart, as hashed numbers are.
	held    *sdk.KeyList
	scatter gen.Scramble
	// owed: the record at owedPlace has been read and is yet to be updated.
	owed      bool
	owedPlace int64
}

// lengthSource draws numbers from least to most.
type lengthSource struct {
	min, max int64
	zipf     *gen.Zipf
}

func newLengths(minimum, limit int64, skewed bool) lengthSource {
	l := lengthSource{min: minimum, max: limit}
	if skewed {
		l.zipf = gen.NewZipf(limit-minimum+1, theta)
	}
	return l
}

func (l *lengthSource) next(r *gen.Rand) int64 {
	if l.zipf != nil {
		return l.min + l.zipf.Next(r)
	}
	return r.Between(l.min, l.max)
}

func (o *options) fieldLengthsOf() lengthSource {
	minimum := o.minField
	if o.fieldLengths == 0 {
		minimum = o.fieldLength
	}
	return newLengths(minimum, o.fieldLength, lengthDistributions[o.fieldLengths] == "zipfian")
}

// Open starts a stream.
func (ycsb) Open(req sdk.OpenRequest) (sdk.Generator, error) {
	o, err := readOptions(req.Params)
	if err != nil {
		return nil, err
	}
	p, err := makePlan(&o, req.Tables)
	if err != nil {
		return nil, err
	}
	if req.KeySlot < 0 || req.KeySlot >= req.KeySlots {
		return nil, errors.New("key_slot must be below key_slots")
	}
	base, held := o.population(p, req.Pools)
	if held == nil {
		if err := checkKeys(p, &o, req.Pools); err != nil {
			return nil, err
		}
	}
	s := &stream{options: o, plan: p, rand: gen.NewRand(req.Seed, req.KeySlot), choose: newChooser(&o, &req, base),
		lengths: o.fieldLengthsOf(),
		scans:   newLengths(o.minScan, o.maxScan, scanDistributions[o.scanLengths] == "zipfian"), step: int64(req.KeySlots)}
	s.firstNew = o.first
	if o.first == 0 {
		s.firstNew = unusedNumber(&req, p.table, base)
	}
	s.firstNew += int64(req.KeySlot)
	if s.held = held; held != nil && o.insertOrder != ordered {
		s.scatter = gen.NewScramble(base)
	}
	sum, last := 0.0, 0
	for i, share := range o.mix {
		sum += share
		s.bound[i] = sum
		if share > 0 {
			last = i
		}
	}
	// Sums of fractions may end a little below 1.
	for i := last; i < numOps; i++ {
		s.bound[i] = 1
	}
	return s, nil
}

// unusedNumber is where new records begin. A run that finds the table in another
// state, because an earlier one has inserted, begins elsewhere: half a million
// places, each with room for 2^32 records.
func unusedNumber(req *sdk.OpenRequest, t *sdk.Table, base int64) int64 {
	salt := gen.Mix(uint64(req.Seed)) ^ gen.Mix(uint64(t.Rows))
	for _, pool := range req.Pools {
		for i := range pool.Rows.Len() {
			for _, ch := range []byte(pool.Rows.At(i).At(0).Str()) {
				salt = salt*0x100000001b3 + uint64(ch) + 1
			}
		}
	}
	return base + int64(1+gen.Mix(salt)%(1<<19))<<32
}

// Fill writes the next operations.
func (s *stream) Fill(b *sdk.Batch, limit int) error {
	s.visible, s.previous = s.previous, s.inserted
	for b.Len() < limit && b.Size() < maxBatch {
		if s.owed {
			s.owed = false
			s.update(b, s.plan.modifyWrite, s.owedPlace)
			continue
		}
		u, op := s.rand.Float64(), 0
		for u >= s.bound[op] {
			op++
		}
		s.one(b, op)
	}
	return nil
}

func (s *stream) one(b *sdk.Batch, op int) {
	switch op {
	case opRead:
		b.Op(s.anyField(s.plan.at[op], s.options.readAll))
		s.putKey(b, s.place())
	case opUpdate:
		s.update(b, s.plan.at[op], s.place())
	case opInsert:
		b.Op(s.plan.at[op])
		s.putNumber(b, s.firstNew+s.inserted*s.step)
		s.inserted++
		for range s.plan.fields {
			s.putField(b)
		}
	case opScan:
		b.Op(s.anyField(s.plan.at[op], s.options.readAll))
		s.putKey(b, s.place())
		b.I64(s.scans.next(s.rand))
	case opModify:
		position := s.place()
		if s.options.modify == inTransaction {
			b.Begin()
		}
		b.Op(s.anyField(s.plan.at[op], s.options.readAll))
		s.putKey(b, position)
		if s.options.modify == inTransaction {
			s.update(b, s.plan.modifyWrite, position)
			b.Commit()
			return
		}
		s.owed, s.owedPlace = true, position
	}
}

func (s *stream) place() int64 { return s.choose.place(s.rand, s.visible) }

// anyField chooses among the statements of the fields.
func (s *stream) anyField(first uint16, all bool) uint16 {
	if all {
		return first
	}
	return first + uint16(s.rand.Int64n(int64(len(s.plan.fields))))
}

func (s *stream) update(b *sdk.Batch, first uint16, position int64) {
	b.Op(s.anyField(first, s.options.writeAll))
	n := 1
	if s.options.writeAll {
		n = len(s.plan.fields)
	}
	for range n {
		s.putField(b)
	}
	s.putKey(b, position)
}

func (s *stream) putField(b *sdk.Batch) {
	s.rand.Letters(b.TextSpace(int(s.lengths.next(s.rand))))
}

func (s *stream) putKey(b *sdk.Batch, position int64) {
	if s.held != nil && position < s.choose.base {
		if s.options.insertOrder != ordered {
			position = s.scatter.At(position)
		}
		b.Key(s.held.Pool, uint8(s.plan.keyPart), uint32(position))
		return
	}
	if position >= s.choose.base {
		position = s.firstNew + (position-s.choose.base)*s.step
	}
	s.putNumber(b, position)
}

func (s *stream) putNumber(b *sdk.Batch, number int64) {
	putKey(b, uint64(number), s.options.insertOrder, int(s.options.padding))
}

// Rows writes sample records. Every one is made from its number alone.
func (ycsb) Rows(doc *jsondoc.Value, b *sdk.Batch, table int, first int64, count int) error {
	o, err := readOptions(doc)
	if err != nil {
		return err
	}
	if table != 0 || first < 0 {
		return errors.New("there is no such table or row")
	}
	lengths := o.fieldLengthsOf()
	var r gen.Rand
	for n := first; n < first+int64(count) && b.Size() < maxBatch; n++ {
		r.Seed(1, n)
		b.Row()
		putKey(b, uint64(n), o.insertOrder, int(o.padding))
		for range o.fieldCount {
			r.Letters(b.TextSpace(int(lengths.next(&r))))
		}
	}
	return nil
}
