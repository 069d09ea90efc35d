package main

import (
	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/gen"
)

// maxBatch ends a batch early, so that large values do not fill the memory.
const maxBatch = 1 << 20

// stream is one stream of operations.
type stream struct {
	rand   *gen.Rand
	groups []issued
	total  float64
}

// issued is a group ready to be issued.
type issued struct {
	bound       float64 // running sum of the weights
	first       uint16
	statements  [][]*maker
	rows        [][]int // to which of several rows each bind belongs
	transaction bool
	rollback    float64 // share
	shared      []*maker
}

func newStream(p *parsed, req *sdk.OpenRequest) (*stream, error) {
	s := &stream{rand: gen.NewRand(req.Seed, req.KeySlot)}
	for _, g := range p.groups {
		s.total += g.weight
		out := issued{bound: s.total, first: uint16(g.first), transaction: g.transaction, rollback: g.rollback / 100}
		made := map[*bind]*maker{}
		for _, b := range g.shared {
			m := newMaker(b, req)
			m.shared, m.n = true, -1
			made[b] = m
			out.shared = append(out.shared, m)
		}
		for i := g.first; i < g.last; i++ {
			var list []*maker
			own := map[*bind]*maker{}
			for _, b := range p.statements[i].binds {
				m := made[b]
				if m == nil {
					m = own[b]
				}
				if m == nil {
					m = newMaker(b, req)
					own[b] = m
				}
				list = append(list, m)
			}
			out.statements = append(out.statements, list)
			out.rows = append(out.rows, p.statements[i].rows)
		}
		s.groups = append(s.groups, out)
	}
	return s, nil
}

// Fill writes the next statements and transactions. A transaction is written
// whole, and so may end past most.
func (s *stream) Fill(b *sdk.Batch, limit int) error {
	for b.Len() < limit && b.Size() < maxBatch {
		x, i := s.rand.Float64()*s.total, 0
		for i < len(s.groups)-1 && x >= s.groups[i].bound {
			i++
		}
		s.issue(b, &s.groups[i])
	}
	return nil
}

func (s *stream) issue(b *sdk.Batch, g *issued) {
	row := s.rand.Uint64()
	for _, m := range g.shared {
		m.redraw(s.rand)
	}
	if g.transaction {
		b.Begin()
	}
	for i, binds := range g.statements {
		b.Op(g.first + uint16(i))
		at, of := row, 0
		for j, m := range binds {
			if rows := g.rows[i]; rows != nil && rows[j] != of {
				if of = rows[j]; of == 0 {
					at = row // a parameter behind the rows
				} else {
					at = s.rand.Uint64()
				}
			}
			m.put(b, s.rand, at)
		}
	}
	if !g.transaction {
		return
	}
	if g.rollback > 0 && s.rand.Float64() < g.rollback {
		b.Rollback()
		return
	}
	b.Commit()
}
