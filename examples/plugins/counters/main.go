// Command counters is a workload plugin to start one's own from: pages that are
// read and whose visits are counted, hot pages most often.
package main

import (
	"errors"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/gen"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

// A reactor module has no main to run: the plugin registers itself.
func init() { sdk.ServeWorkload(counters{}) }

func main() {}

// The statements, in the order of the manifest; batches name them by this number.
const (
	read uint16 = iota
	visit
	add
)

type counters struct{}

func (counters) Manifest() sdk.Manifest {
	page := sdk.Bind{Name: "page", Type: sdk.I64, Column: "page"}
	return sdk.Manifest{
		Name: "counters", Version: "1.0.0", Title: "Page counters", Author: "Loadstone",
		Description: "Reads pages and counts their visits; a few pages are hot.",
		Parameters: `{"type":"object","additionalProperties":false,"properties":{
			"visits":{"type":"number","title":"Share of visits","description":"How many of the operations count a visit.","minimum":0,"maximum":1,"default":0.2},
			"new_pages":{"type":"number","title":"Share of new pages","description":"How many of the operations add a page.","minimum":0,"maximum":1,"default":0.01}}}`,
		Tables: []sdk.LogicalTable{{
			Name: "pages", Key: []string{"page"},
			Columns: []sdk.LogicalColumn{
				{Name: "page", Type: sdk.I64},
				{Name: "title", Type: sdk.Text, DBType: map[string]string{"postgres": "varchar(80)"}},
				{Name: "visits", Type: sdk.I64},
			},
		}},
		Statements: []sdk.Statement{
			// The adapter writes the SQL of these two …
			{ID: "read page", Kind: sdk.PointLookup, Table: "pages", Binds: []sdk.Bind{page},
				Columns: []string{"title", "visits"}},
			// … and this one is the plugin's own.
			{ID: "count visit", Kind: sdk.Update, Table: "pages", Binds: []sdk.Bind{page}, Writes: true,
				SQL: map[string]string{"postgres": "UPDATE {table} SET visits = visits + 1 WHERE page = $1"}},
			{ID: "add page", Kind: sdk.Insert, Table: "pages", Writes: true, Binds: []sdk.Bind{page,
				{Name: "title", Type: sdk.Text, Column: "title"}, {Name: "visits", Type: sdk.I64, Column: "visits"}}},
		},
	}
}

// Rows writes sample rows: what row n holds depends on n alone.
func (counters) Rows(_ *jsondoc.Value, b *sdk.Batch, _ int, first int64, most int) error {
	var r gen.Rand
	for i := range int64(most) {
		page := first + i + 1
		r.Seed(1, page)
		b.Row()
		b.I64(page)
		title(b, &r)
		b.I64(0)
	}
	return nil
}

func title(b *sdk.Batch, r *gen.Rand) { r.Letters(b.TextSpace(int(r.Between(10, 40)))) }

type stream struct {
	rand             *gen.Rand
	hot              *gen.Zipf
	lowest           int64
	next, step       int64
	visits, newPages float64
}

// Open starts a stream. It may depend on the request and on nothing else.
func (counters) Open(req sdk.OpenRequest) (sdk.Generator, error) {
	t := req.Tables[0]
	if !t.HasRange {
		return nil, errors.New("the table of pages is empty: have it loaded with target.prepare")
	}
	s := &stream{rand: gen.NewRand(req.Seed, req.KeySlot), lowest: t.KeyMin,
		hot: gen.NewZipf(t.KeyMax-t.KeyMin+1, 0.99),
		// No two streams of a run have the same slot, so new keys never collide.
		next: t.KeyMax + 1 + int64(req.KeySlot), step: int64(max(1, req.KeySlots))}
	s.visits, _ = req.Params.Get("visits").Float()
	s.newPages, _ = req.Params.Get("new_pages").Float()
	return s, nil
}

// Fill writes the next operations.
func (s *stream) Fill(b *sdk.Batch, most int) error {
	for range most {
		switch x := s.rand.Float64(); {
		case x < s.newPages:
			b.Op(add)
			b.I64(s.next)
			title(b, s.rand)
			b.I64(0)
			s.next += s.step
			continue
		case x < s.newPages+s.visits:
			b.Op(visit)
		default:
			b.Op(read)
		}
		b.I64(s.lowest + s.hot.Next(s.rand))
	}
	return nil
}
