package compare

import (
	"cmp"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
	"github.com/loadstone-db/loadstone/engine/results/segment"
)

// bins cut a stretch of a run's time into pieces of whole seconds, counted from its start. The stretch begins and ends
// within seconds: a piece at an edge is shorter, and one that is nearly nothing belongs to its neighbour.
type bins struct {
	first, step int
	// low and high are the first and the last piece that there is.
	low, high int
	// length is how many seconds each covers.
	length []float64
	// lost are those of which a part of the record is lost: what is there of them is no rate.
	lost []bool
}

// lossMargin is how much of the time before and after a loss is recorded in part only, as where figures are computed.
const lossMargin = time.Second

// markLost marks the pieces that lie, in part at least, in what a run lost of its record.
func (b *bins) markLost(start time.Time, s *engine.Summary) {
	b.lost = make([]bool, len(b.length))
	if !s.RecordPartial {
		return
	}
	for _, c := range s.ValidityDetail.Causes {
		// What is said of the whole measurement does not say where it is.
		if c.Cause != engine.CauseIncompleteRecord || c.From.Sub(s.MeasuredFrom.Time) < lossMargin/2 {
			continue
		}
		from, to := c.From.Sub(start)-lossMargin, c.To.Sub(start)+lossMargin
		for i := range b.lost {
			begin := time.Duration(b.first+i*b.step) * time.Second
			b.lost[i] = b.lost[i] || begin < to && begin+time.Duration(b.step)*time.Second > from
		}
	}
}

// minBinFraction is the shortest piece, as a part of the others: the rate of less would be noise.
const minBinFraction = 0.25

// newBins returns at most about most pieces between two instants, nil when there is nothing between them.
func newBins(start, from, to time.Time, most int) *bins {
	a, z := max(from.Sub(start), 0), to.Sub(start)
	if start.IsZero() || from.IsZero() || z <= a {
		return nil
	}
	first, last := int(a/time.Second), int((z-1)/time.Second)
	b := &bins{first: first, step: (last - first + most) / most}
	for at := first; at <= last; at += b.step {
		begin, end := max(time.Duration(at)*time.Second, a), min(time.Duration(at+b.step)*time.Second, z)
		b.length = append(b.length, (end - begin).Seconds())
	}
	b.high = len(b.length) - 1
	least := minBinFraction * float64(b.step)
	if b.high > b.low && b.length[b.low] < least {
		b.length[b.low+1] += b.length[b.low]
		b.low++
	}
	if b.high > b.low && b.length[b.high] < least {
		b.length[b.high-1] += b.length[b.high]
		b.high--
	}
	return b
}

// index is the piece of a second of the run, false beyond them.
func (b *bins) index(second int) (int, bool) {
	if second < b.first || second >= b.first+b.step*len(b.length) {
		return 0, false
	}
	return min(max((second-b.first)/b.step, b.low), b.high), true
}

// ends is when each piece ends, in seconds from the start of the run.
func (b *bins) ends() []float64 {
	out := make([]float64, 0, b.high-b.low+1)
	for i := b.low; i <= b.high; i++ {
		out = append(out, float64(b.first+(i+1)*b.step))
	}
	return out
}

// binTotals is what ended in a piece; measured of the operations were not of the warm-up.
type binTotals struct {
	operations, errors, measured int64
	latency                      histogram.Compact
}

// statementSeconds are those of the parts of a run.
type statementSeconds struct {
	parts   map[PartKey][]binTotals
	total   map[PartKey]int64
	carried map[PartKey]*carriedOver
}

func (s *statementSeconds) add(p PartKey, at, n int, row *segment.Row, counts []int64) {
	if s.parts[p] == nil {
		s.parts[p] = make([]binTotals, n)
	}
	into := &s.parts[p][at]
	into.operations += row.Operations
	into.errors += row.Errors
	if !row.Warmup {
		into.measured += row.Operations
	}
	into.latency.MergeData(&engine.HistogramData{Schema: int(row.LatencySchema), Offset: int(row.LatencyOffset),
		Counts: counts, Sum: row.LatencySumNs, Min: row.LatencyMinNs, Max: row.LatencyMaxNs})
	s.total[p] += row.Operations
}

// cutLast leaves what ended after the measurement out of the rate of the last piece: seconds are whole, and the
// measurement ends within one. Of a run that lost parts of its record, or whose version did not say how many ended late
// of each part, it is left as it is.
func (s *statementSeconds) cutLast(b *bins, sum *engine.Summary) {
	late := int64(0)
	for _, k := range sum.ByKind {
		late += k.FinishedLate
	}
	if sum.RecordPartial || late != sum.FinishedLate {
		return
	}
	for p, pieces := range s.parts {
		count, late, known := p.finished(sum)
		if !known {
			continue
		}
		within := count - late
		for i := range b.high {
			within -= pieces[i].measured
		}
		last := &pieces[b.high]
		if after := last.measured - max(within, 0); after > 0 {
			left := max(last.operations-after, 0)
			last.errors = last.errors * left / last.operations
			last.operations = left
		}
	}
}

// finished is how many operations of a part were measured, and how many of them ended after the measurement.
func (p PartKey) finished(sum *engine.Summary) (count, late int64, known bool) {
	if p.StatementID == "" {
		k := sum.ByKind[p.Kind]
		if k == nil {
			return 0, 0, false
		}
		return k.Count, k.FinishedLate, true
	}
	for i := range sum.ByStatement {
		f := &sum.ByStatement[i]
		if f.StatementID == p.StatementID && f.Kind == p.Kind && f.InTransaction == p.InTransaction {
			return f.Count, f.FinishedLate, true
		}
	}
	return 0, 0, false
}

// order is the parts with the most frequent first.
func (s *statementSeconds) order() []PartKey {
	out := make([]PartKey, 0, len(s.parts))
	for p := range s.parts {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b PartKey) int { return cmp.Or(cmp.Compare(s.total[b], s.total[a]), a.compare(b)) })
	return out
}

func (p PartKey) compare(o PartKey) int {
	inside := func(x bool) int {
		if x {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(p.Kind, o.Kind), cmp.Compare(p.StatementID, o.StatementID),
		cmp.Compare(inside(p.InTransaction), inside(o.InTransaction)))
}

// measured is a part as comparisons take it.
func (s *statementSeconds) measured(p PartKey, b *bins) Run {
	run := make(Run, 0, b.high-b.low+1)
	all := !slices.Contains(b.lost[b.low:b.high+1], false)
	for i := b.low; i <= b.high; i++ {
		if b.lost[i] && !all {
			continue
		}
		of := &s.parts[p][i]
		m := Second{Operations: of.operations, Errors: of.errors, CarriedOver: s.carriedIn(p, i), Seconds: b.length[i]}
		if of.operations > 0 {
			data := of.latency.Data()
			m.Latency = &data
		}
		run = append(run, m)
	}
	return run
}
