// Command go is the example workload "orders" in Go. The same generator stands
// beside it in C, AssemblyScript and Rust, and the golden files of the folder
// above prove that all four give the same stream.
package main

import (
	"errors"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/gen"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

// A reactor module has no main to run: the plugin registers itself.
func init() { sdk.ServeWorkload(orders{}) }

func main() {}

// The statements, in the order of the manifest; batches name them by this number.
const (
	byID uint16 = iota
	following
	add
	open
	pay
)

type orders struct{}

func (orders) Manifest() sdk.Manifest {
	id := sdk.Bind{Name: "id", Type: sdk.I64, Column: "id"}
	column := func(name, kind string) sdk.Bind { return sdk.Bind{Name: name, Type: kind, Column: name} }
	return sdk.Manifest{
		Name: "orders", Version: "1.0.0", Title: "Orders", Author: "Loadstone",
		Description: "Looks orders up, lists them, adds some and pays some, in a transaction.",
		Parameters: `{"type":"object","additionalProperties":false,"properties":{
			"pay":{"type":"number","title":"Share of payments","description":"How many of the operations are payments: transactions that read an order and change it.","minimum":0,"maximum":1,"default":0.1},
			"list":{"type":"number","title":"Share of lists","description":"How many of the operations read twenty orders in a row.","minimum":0,"maximum":1,"default":0.1},
			"add":{"type":"number","title":"Share of new orders","description":"How many of the operations add an order. The rest look one up.","minimum":0,"maximum":1,"default":0.1},
			"rollback":{"type":"number","title":"Share of rollbacks","description":"How many of the payments are undone.","minimum":0,"maximum":1,"default":0.01},
			"keys":{"type":"string","title":"Keys","description":"Whether some orders are wanted more than others.","enum":["zipfian","uniform"],"default":"zipfian"},
			"theta":{"type":"number","title":"Skew","description":"The exponent of the zipfian distribution.","minimum":0,"maximum":5,"default":0.99},
			"note_length":{"type":"integer","title":"Length of notes","description":"The most characters that a note has.","minimum":0,"maximum":200,"default":40},
			"pause_us":{"type":"integer","title":"Pause","description":"Think time before each operation, in microseconds.","minimum":0,"maximum":60000000,"default":0}}}`,
		Tables: []sdk.LogicalTable{{Name: "orders", Key: []string{"id"}, Columns: []sdk.LogicalColumn{
			{Name: "id", Type: sdk.I64},
			{Name: "customer", Type: sdk.I64},
			{Name: "total", Type: sdk.F64},
			{Name: "note", Type: sdk.Text, Nullable: true, DBType: map[string]string{"postgres": "varchar(200)"}},
			{Name: "paid", Type: sdk.Bool},
			{Name: "ordered_at", Type: sdk.Timestamp},
			{Name: "receipt", Type: sdk.Bytes},
		}}},
		Statements: []sdk.Statement{
			// The adapter writes the SQL of these three …
			{ID: "order by id", Kind: sdk.PointLookup, Table: "orders", Binds: []sdk.Bind{id},
				Columns: []string{"customer", "total", "note"}},
			{ID: "orders from id", Kind: sdk.RangeScan, Table: "orders", Binds: []sdk.Bind{id}, Columns: []string{"id", "total"},
				Limit: 20},
			{ID: "add order", Kind: sdk.Insert, Table: "orders", Writes: true, Binds: []sdk.Bind{id, column("customer", sdk.I64),
				column("total", sdk.F64), column("note", sdk.Text), column("paid", sdk.Bool), column("ordered_at", sdk.Timestamp),
				column("receipt", sdk.Bytes)}},
			// … and these two are the plugin's own.
			{ID: "open payment", Kind: sdk.PointLookup, Table: "orders", Binds: []sdk.Bind{id}, Columns: []string{"id", "total"},
				Transaction: "payment",
				SQL:         map[string]string{"postgres": "SELECT id, total FROM {table} WHERE id = $1 FOR UPDATE"}},
			{ID: "pay order", Kind: sdk.Update, Table: "orders", Writes: true,
				Binds: []sdk.Bind{column("note", sdk.Text), column("total", sdk.F64), id},
				SQL:   map[string]string{"postgres": "UPDATE {table} SET paid = true, note = $1, total = $2 WHERE id = $3"}},
		},
	}
}

// order writes the columns of one order.
func order(b *sdk.Batch, r *gen.Rand, id, noteLength int64) {
	b.I64(id)
	b.I64(r.Between(1, 1000))
	b.F64(float64(r.Between(100, 100_000)) / 100)
	if r.Int64n(8) == 0 {
		b.Null()
	} else {
		note(b, r, noteLength)
	}
	b.Bool(r.Int64n(2) == 1)
	const year2024, yearMicros = 1_704_067_200_000_000, 31_536_000_000_000
	b.Timestamp(year2024 + r.Int64n(yearMicros))
	r.Bytes(b.BlobSpace(16))
}

func note(b *sdk.Batch, r *gen.Rand, length int64) { r.Letters(b.TextSpace(int(r.Between(0, length)))) }

// Rows writes sample rows: what row n holds depends on the parameters and n alone.
func (orders) Rows(params *jsondoc.Value, b *sdk.Batch, _ int, first int64, most int) error {
	noteLength, ok := params.Get("note_length").Int()
	if !ok {
		noteLength = 40
	}
	var r gen.Rand
	for id := first + 1; id <= first+int64(most); id++ {
		r.Seed(1, id)
		b.Row()
		order(b, &r, id, noteLength)
	}
	return nil
}

type stream struct {
	rand *gen.Rand
	// hot is nil when keys are uniform.
	hot                      *gen.Zipf
	place                    gen.Scramble
	lowest, keys             int64
	next, step               int64
	pay, list, add, rollback float64
	noteLength, pause        int64
	paused                   bool
}

// Open starts a stream. It may depend on the request and on nothing else.
func (orders) Open(req sdk.OpenRequest) (sdk.Generator, error) {
	t := req.Tables[0]
	if !t.HasRange {
		return nil, errors.New("the table of orders is empty: have it loaded with target.prepare")
	}
	s := &stream{rand: gen.NewRand(req.Seed, req.KeySlot), lowest: t.KeyMin, keys: t.KeyMax - t.KeyMin + 1,
		// No two streams of a run have the same slot, so new keys never collide.
		next: t.KeyMax + 1 + int64(req.KeySlot), step: int64(req.KeySlots)}
	p := req.Params
	s.pay, _ = p.Get("pay").Float()
	s.list, _ = p.Get("list").Float()
	s.add, _ = p.Get("add").Float()
	s.rollback, _ = p.Get("rollback").Float()
	s.noteLength, _ = p.Get("note_length").Int()
	s.pause, _ = p.Get("pause_us").Int()
	if p.Get("keys").Str() != "uniform" {
		theta, _ := p.Get("theta").Float()
		s.hot, s.place = gen.NewZipf(s.keys, theta), gen.NewScramble(s.keys)
	}
	return s, nil
}

func (s *stream) key() int64 {
	if s.hot == nil {
		return s.lowest + s.rand.Int64n(s.keys)
	}
	return s.lowest + s.place.At(s.hot.Next(s.rand))
}

// Fill writes operations while there is room; the last transaction may end past it.
func (s *stream) Fill(b *sdk.Batch, most int) error {
	for b.Len() < most {
		if s.pause > 0 && !s.paused {
			b.Delay(s.pause)
			s.paused = true
			continue
		}
		s.paused = false
		switch x := s.rand.Float64(); {
		case x < s.pay:
			b.Begin()
			b.Op(open)
			b.I64(s.key())
			opened := b.Last()
			b.Op(pay)
			note(b, s.rand, s.noteLength)
			b.Ref(opened, 1)
			b.Ref(opened, 0)
			if s.rand.Float64() < s.rollback {
				b.Rollback()
			} else {
				b.Commit()
			}
		case x < s.pay+s.list:
			b.Op(following)
			b.I64(s.key())
		case x < s.pay+s.list+s.add:
			b.Op(add)
			order(b, s.rand, s.next, s.noteLength)
			s.next += s.step
		default:
			b.Op(byID)
			b.I64(s.key())
		}
	}
	return nil
}
