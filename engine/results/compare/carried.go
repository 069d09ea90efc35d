package compare

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// carriedOver are operations of a part that were due in the warm-up and ended in seconds of the measurement: those of
// its first and of its last second, which may be outside of it, and those of the pieces without them.
type carriedOver struct {
	first, last, between int64
	pieces               []int64
}

// edges are the first and the last second of a measurement, counted from the start of its run.
type edges struct{ first, last int }

func edgesOf(d *engine.RunDetail, b *bins) edges {
	return edges{b.first, int((d.Summary.MeasuredTo.Sub(d.StartTime.Time) - 1) / time.Second)}
}

// carry counts operations of the warm-up that ended in a second of the piece.
func (s *statementSeconds) carry(p PartKey, second int, at int, b *bins, e edges, operations int64) {
	c := s.carried[p]
	if c == nil {
		c = &carriedOver{pieces: make([]int64, len(b.length))}
		s.carried[p] = c
	}
	switch second {
	case e.first:
		c.first += operations
	case e.last:
		c.last += operations
	default:
		c.between += operations
		c.pieces[at] += operations
	}
}

// settleCarried gives the edges what the figures of the run have beyond the seconds between them: what ended in the
// same second before or after the measurement is in no rate. Figures of an earlier version have none, nor have these.
func (s *statementSeconds) settleCarried(sum *engine.Summary, b *bins, e edges) {
	for p, c := range s.carried {
		known := p.carriedOver(sum)
		if known == 0 {
			delete(s.carried, p)
			continue
		}
		first := min(c.first, max(known-c.between, 0))
		last := min(c.last, max(known-c.between-first, 0))
		if at, ok := b.index(e.first); ok {
			c.pieces[at] += first
		}
		if at, ok := b.index(e.last); ok {
			c.pieces[at] += last
		}
	}
}

// carriedIn is how many were carried over into a piece.
func (s *statementSeconds) carriedIn(p PartKey, piece int) int64 {
	if c := s.carried[p]; c != nil {
		return c.pieces[piece]
	}
	return 0
}

// carriedOver is how many operations of the part the run's figures say were carried over.
func (p PartKey) carriedOver(sum *engine.Summary) int64 {
	if p.StatementID == "" {
		if k := sum.ByKind[p.Kind]; k != nil {
			return k.CarriedOver
		}
		return 0
	}
	for i := range sum.ByStatement {
		if f := &sum.ByStatement[i]; f.StatementID == p.StatementID && f.Kind == p.Kind &&
			f.InTransaction == p.InTransaction {
			return f.CarriedOver
		}
	}
	return 0
}
